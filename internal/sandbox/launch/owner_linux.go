package launch

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// The kernel counts much of what it lends against the user who made a user namespace, on top of who uses it: inotify's
// instances, messages, signals that wait. Were that root, one sandbox could take all that root and every other sandbox may
// have. So the thread that clones a sandbox is, for that moment, its user.

// unchanged leaves an id of setresuid as it is.
const unchanged = ^uintptr(0)

// asUser calls f while this thread's ids, of user and group, are another one, with all of its capabilities. The thread is one
// that only its caller uses. Nothing can go on where it does not come back.
func asUser(id int, f func()) error {
	if err := become(id); err != nil {
		return errors.Join(fmt.Errorf("be user %d: %w", id, err), become(0))
	}
	f()
	if err := become(0); err != nil {
		panic(fmt.Sprintf("be root again: %v", err))
	}
	return nil
}

// become sets the real and effective ids of this thread alone, and raises the capabilities that the kernel lowers then. The
// saved ones stay root's, which lets it come back; a program that is started does not keep them.
func become(id int) error {
	// Not by package syscall, which changes every thread.
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.RawSyscall(call, uintptr(id), uintptr(id), unchanged); errno != 0 {
			return errno
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	for i := range sets {
		sets[i].Effective = sets[i].Permitted
	}
	err := unix.Capset(&header, &sets[0])
	runtime.KeepAlive(&sets)
	if err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // a change of ids sets it as the machine is configured
}
