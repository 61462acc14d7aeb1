//go:build linux

package confine

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

const (
	mayRead  = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir)
	mayWrite = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSTruncate)
	// Device nodes are left out: nobody in a sandbox can make one, and nothing of ours needs the attempt to be refused later.
	mayChange = mayRead | mayWrite | landlock.AccessFSSet(ll.AccessFSRemoveDir|ll.AccessFSRemoveFile|ll.AccessFSMakeDir|
		ll.AccessFSMakeReg|ll.AccessFSMakeSock|ll.AccessFSMakeFifo|ll.AccessFSMakeSym|ll.AccessFSRefer|ll.AccessFSResolveUnix)
	mayUse = mayRead | mayWrite | landlock.AccessFSSet(ll.AccessFSIoctlDev)
)

// Landlock's first interface cannot let files move between folders; ordinary work does that all the time.
const leastLandlock = 2

// landlocked lets everything be read and run, and only the attempt's own folders be changed, whatever owners and modes say.
// Sockets by path are reached in those folders only, abstract ones and signals in this sandbox only, where the kernel can.
func landlocked(w Walls) error {
	config := landlock.Config{HandledAccessFS: landlock.V9.HandledAccessFS, Scoped: landlock.V9.Scoped}
	if w.Switches.off(DefenceLandlockScopes) {
		config.Scoped = 0
	}
	if grade := landlockGrade(); grade < leastLandlock {
		return nil // Probe says so, and with it the machine's levels
	}
	err := config.BestEffort().Restrict(
		landlock.PathAccess(mayRead, "/"),
		landlock.PathAccess(mayChange, w.Writable...).IgnoreIfMissing(),
		landlock.PathAccess(mayUse, w.Devices...).IgnoreIfMissing(),
	)
	if err != nil {
		return fmt.Errorf("build the Landlock wall: %w", err)
	}
	return nil
}

func landlockGrade() int {
	grade, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return grade
}
