//go:build linux

package confine

import (
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

const (
	mayRead  = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir)
	mayWrite = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSTruncate)
	// Without the making of devices, which nobody in a sandbox has use for.
	mayChange = mayRead | mayWrite | landlock.AccessFSSet(ll.AccessFSRemoveDir|ll.AccessFSRemoveFile|ll.AccessFSMakeDir|
		ll.AccessFSMakeReg|ll.AccessFSMakeSock|ll.AccessFSMakeFifo|ll.AccessFSMakeSym|ll.AccessFSRefer|ll.AccessFSResolveUnix)
	mayUse = mayRead | mayWrite | landlock.AccessFSSet(ll.AccessFSIoctlDev)
)

// Landlock's first interface cannot let files move between folders; ordinary work does that all the time.
const leastLandlock = 2

// ruleset is a Landlock wall that is not up yet: everything may be read and run, devices used; folders that may be changed
// come last, because the attempt's are attached late.
type ruleset struct {
	file  *os.File
	flags uint32
	known landlock.AccessFSSet // rights that this kernel's Landlock knows
}

// openRules lets everything be read and run. Sockets by path are then reached in the attempt's own folders only, abstract ones
// and signals in this sandbox only, where the kernel can tell.
func (p *Prepared) openRules() error {
	if landlockGrade() < leastLandlock {
		return nil // Probe says so, and with it the machine's levels
	}
	config := landlock.Config{HandledAccessFS: landlock.V9.HandledAccessFS, Scoped: landlock.V9.Scoped}
	if p.walls.Switches.off(DefenceLandlockScopes) {
		config.Scoped = 0
	}
	fd, flags, err := config.BestEffort().NewRulesetFD(
		landlock.PathAccess(mayRead, "/"),
		landlock.PathAccess(mayUse, p.walls.Devices...).IgnoreIfMissing(),
	)
	if err != nil {
		return fmt.Errorf("build the Landlock wall: %w", err)
	}
	p.rules = &ruleset{file: os.NewFile(uintptr(fd), "ruleset"), flags: flags, known: knownTo(landlockGrade())}
	return nil
}

// knownTo are the rights over files that an interface of Landlock knows.
func knownTo(grade int) landlock.AccessFSSet {
	switch {
	case grade >= 9:
		return landlock.V9.HandledAccessFS
	case grade >= 5:
		return landlock.V5.HandledAccessFS
	case grade >= 3:
		return landlock.V3.HandledAccessFS
	}
	return landlock.V2.HandledAccessFS
}

// restrict lets the attempt's own folders be changed, and puts the wall up on every thread.
func (p *Prepared) restrict() error {
	if p.rules == nil {
		return nil
	}
	defer p.rules.file.Close()
	fd := int(p.rules.file.Fd())
	for _, folder := range p.walls.Writable {
		if err := allowChange(fd, folder, mayChange&p.rules.known); err != nil {
			return fmt.Errorf("build the Landlock wall: let %s be changed: %w", folder, err)
		}
	}
	if err := ll.AllThreadsLandlockRestrictSelf(fd, p.rules.flags); err != nil {
		return fmt.Errorf("put up the Landlock wall: %w", err)
	}
	return nil
}

func allowChange(ruleset int, folder string, rights landlock.AccessFSSet) error {
	at, err := unix.Open(folder, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: uint64(rights), ParentFd: at}, 0)
}

func landlockGrade() int {
	grade, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return grade
}
