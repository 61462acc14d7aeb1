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

// asUser calls f while this thread's effective id is another one, with all of its capabilities. The thread is one that only
// its caller uses. Nothing can go on where it does not come back.
func asUser(uid int, f func()) error {
	if err := effective(uid); err != nil {
		return errors.Join(fmt.Errorf("be user %d: %w", uid, err), effective(0))
	}
	f()
	if err := effective(0); err != nil {
		panic(fmt.Sprintf("be root again: %v", err))
	}
	return nil
}

// effective sets the effective id of this thread alone, and raises the capabilities that the kernel lowers then.
func effective(uid int) error {
	// Not by package syscall, which changes every thread.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(uid), unchanged); errno != 0 {
		return errno
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
