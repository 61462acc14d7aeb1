//go:build linux

package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// What pid 1 keeps in a user namespace with ids of its own: to give steps their id, and to end them.
const kept = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_KILL

// Bits of PR_SET_SECUREBITS, each with its lock: being root gives no capabilities at exec, none can be made ambient, none
// are kept across a change of id, and a change of id takes them.
const securebits = 1<<0 | 1<<1 | 1<<3 | 1<<5 | 1<<6 | 1<<7

const (
	ambientClearAll = 4
	lastCapability  = 63 // that fits the kernel's sets
)

// bound empties the sets that steps would get capabilities from. It needs CAP_SETPCAP.
//
// The ambient and the bounding set are this thread's alone, which is the one that steps are started from: to empty those of
// all threads takes a round through them for each capability, and as long as all the rest together. Nothing depends on the
// others': they start nothing, and had one of them called execve, it would gain no capability by the secure bits and by
// no_new_privs, which are on every thread, as is the loss of what is permitted.
func bound() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, ambientClearAll, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	for c := uintptr(0); c <= lastCapability; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			break // one past the kernel's last
		}
		if err != nil {
			return fmt.Errorf("take a capability out of the bounding set: %w", err)
		}
	}
	return prctl("lock the secure bits", unix.PR_SET_SECUREBITS, securebits, 0)
}
