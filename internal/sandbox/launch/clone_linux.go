package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// cloner starts processes from one thread that ends with the launcher and not before: the death of a parent, which is to end
// its sandboxes, means to the kernel that of the thread.
type cloner struct {
	jobs chan func()
}

func newCloner() *cloner {
	c := &cloner{jobs: make(chan func())}
	go c.run()
	return c
}

// run ends with the process.
func (c *cloner) run() {
	runtime.LockOSThread()
	for job := range c.jobs {
		job()
	}
}

// environment is that of pid 1. Its runtime neither makes threads for every processor of the machine nor looks for a limit of
// them; one more than it needs keeps a call that waits in the kernel from holding up the rest. Steps get none of it.
var environment = []string{"GOMAXPROCS=2"}

// child is a process that was started.
type child struct {
	process *os.Process
	pidfd   *os.File
}

// start starts this executable with an argument and files from descriptor 3 on, as a child of the user with an id.
func (c *cloner) start(user int, arg string, stdio [3]*os.File, files []*os.File, sys *syscall.SysProcAttr) (child, error) {
	pidfd := -1
	sys.PidFD = &pidfd
	var started child
	var err, uerr error
	begin := func() {
		started.process, err = os.StartProcess("/proc/self/exe", []string{"forgeyard", arg}, &os.ProcAttr{
			Dir: "/", Env: environment, Files: append(stdio[:], files...), Sys: sys,
		})
	}
	done := make(chan struct{})
	c.jobs <- func() {
		defer close(done)
		if user == os.Geteuid() {
			begin()
			return
		}
		uerr = asUser(user, begin)
	}
	<-done
	if err := errors.Join(uerr, err); err != nil {
		return child{}, err
	}
	if pidfd < 0 {
		return started, errors.Join(errors.New("this kernel gives no descriptors of processes"), started.process.Kill())
	}
	started.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	return started, nil
}

// namespaces of every sandbox. The network's is besides.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS |
	syscall.CLONE_NEWCGROUP

// insideAttributes are those of pid 1 of a sandbox. With ids of its own it is root inside; else it is the steps' only id, and
// keeps its capabilities over the execve by the ambient set.
func (l *launcher) insideAttributes(slot int, network forge.Network) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	if network == forge.NetworkNone {
		sys.Cloneflags |= syscall.CLONE_NEWNET
	}
	if l.cfg.Rootless {
		sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: sandbox.StepUID, HostID: os.Geteuid(), Size: 1}}
		sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: sandbox.StepGID, HostID: os.Getegid(), Size: 1}}
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			sys.AmbientCaps = append(sys.AmbientCaps, c)
		}
		return sys
	}
	first := l.firstID(slot)
	sys.UidMappings = []syscall.SysProcIDMap{{HostID: first, Size: sandbox.SlotIDs}}
	sys.GidMappings = []syscall.SysProcIDMap{{HostID: first, Size: sandbox.SlotIDs}}
	sys.GidMappingsEnableSetgroups = true
	sys.Credential = &syscall.Credential{}
	return sys
}

// owner is the user to whom a sandbox's namespaces belong: the first of its slot's ids, where it has ids of its own.
func (l *launcher) owner(slot int) int {
	if l.cfg.Rootless {
		return os.Geteuid()
	}
	return l.firstID(slot)
}

// firstID is the first of a slot's ids on the host.
func (l *launcher) firstID(slot int) int { return int(l.cfg.UIDBase) + slot*sandbox.SlotIDs }

// runIdle is a process that has a user namespace and does nothing. It ends at the end of its input.
func runIdle() int {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // nothing depends on it
	var b [1]byte
	_, _ = os.Stdin.Read(b[:])
	return 0
}

// idSpace makes a user namespace in which the owner of an attempt's folder is the step of a slot, for a mount to show it so.
// The caller closes it.
func (l *launcher) idSpace(slot int, uid, gid uint32) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	defer func() { _ = r.Close() }()
	c, err := l.cloner.start(os.Geteuid(), idleArg, [3]*os.File{r, l.null, l.null}, nil, &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(uid), HostID: l.firstID(slot) + sandbox.StepUID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(gid), HostID: l.firstID(slot) + sandbox.StepGID, Size: 1}},
	})
	if err != nil {
		return nil, fmt.Errorf("user namespace of a folder: %w", err)
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", c.process.Pid))
	_ = c.process.Kill() // it is waited for
	_, werr := c.process.Wait()
	return space, errors.Join(err, werr, c.pidfd.Close())
}
