package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// cloner starts processes from one thread that ends with the launcher and not before: the death of a parent, which is to end
// its sandboxes, means to the kernel that of the thread.
type cloner struct {
	jobs   chan func()
	copied atomic.Pointer[os.File] // of the program; nil before there is one, and where there cannot be
}

func newCloner() *cloner {
	c := &cloner{jobs: make(chan func())}
	go c.run()
	go c.copy()
	return c
}

// Pauses between attempts to copy the program, each twice the one before. The kernel refuses to seal memory of which it moves
// pages itself at that moment.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 3200 * time.Millisecond
)

// copy gets a copy of the program, for what is started from then on. It ends once it has, or cannot have one.
func (c *cloner) copy() {
	for pause := firstPause; pause <= lastPause; pause *= 2 {
		copied, err := copyProgram()
		if err == nil {
			c.copied.Store(copied)
			return
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENOMEM) {
			return // each start takes longer, no more
		}
		time.Sleep(pause)
	}
}

// itself is this program, wherever it was moved.
const itself = "/proc/self/exe"

// program calls start with what is to be started and the files that it gets. The copy is one of them: its number in this
// process means something else in a child, where package syscall moves descriptors before the execve. A copy that the machine
// does not let anybody execute is given up; others may be about to start it, so it stays open.
func (c *cloner) program(files []*os.File, start func(path string, files []*os.File) error) error {
	copied := c.copied.Load()
	if copied == nil {
		return start(itself, files)
	}
	err := start("/proc/self/fd/"+strconv.Itoa(len(files)), append(files[:len(files):len(files)], copied))
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		if rerr := start(itself, files); rerr == nil {
			c.copied.Store(nil)
			return nil
		}
	}
	return err
}

// run ends with the process.
func (c *cloner) run() {
	runtime.LockOSThread()
	for job := range c.jobs {
		job()
	}
}

// environment is that of pid 1. Its runtime does not wake one thread to help another, which costs more here than it brings:
// what pid 1 does is little, and waits for nothing in the kernel while there is more. Steps get none of it.
var environment = []string{"GOMAXPROCS=1"}

// child is a process that was started.
type child struct {
	process *os.Process
	pidfd   *os.File
}

// start starts this executable with an argument and files from descriptor 3 on, as a child of the user with an id and in a
// user namespace with the ids of ids. The child may find one descriptor more behind those, of its own program.
func (c *cloner) start(user int, ids idMaps, arg string, stdio [3]*os.File, files []*os.File, sys *syscall.SysProcAttr) (child, error) {
	pidfd := -1
	sys.PidFD = &pidfd
	sys.Cloneflags |= lent
	var started child
	var err, uerr error
	begin := func() {
		err = c.program(append(stdio[:], files...), func(path string, files []*os.File) error {
			var err error
			started.process, err = os.StartProcess(path, []string{"forgeyard", arg}, &os.ProcAttr{
				Dir: "/", Env: environment, Files: files, Sys: sys,
			})
			return err
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
	err = ids.write(started.process.Pid)
	if pidfd < 0 {
		err = errors.New("this kernel gives no descriptors of processes")
	}
	if err != nil {
		_ = started.process.Kill() // it is waited for
		_, werr := started.process.Wait()
		return child{}, errors.Join(err, werr)
	}
	started.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	return started, nil
}

// lent lets a child use this process's memory until its execve, for which its thread waits: package syscall copies the
// memory's tables for a child in a user namespace, because it writes the child's ids before that.
const lent = syscall.CLONE_VFORK | syscall.CLONE_VM

// idMaps are the ids of a user namespace. They are written after the execve of its first process, which has its
// capabilities over that by the ambient set, and does nothing before it hears from the launcher.
type idMaps struct {
	uids, gids syscall.SysProcIDMap
	noGroups   bool // nobody inside may leave groups
}

// write gives its ids to the user namespace of a child that was not waited for.
func (m idMaps) write(pid int) error {
	type entry struct{ name, content string }
	entries := []entry{{"uid_map", idMap(m.uids)}, {"gid_map", idMap(m.gids)}}
	if m.noGroups {
		entries = append([]entry{{"setgroups", "deny"}}, entries...)
	}
	for _, e := range entries {
		if err := writeOnce(fmt.Sprintf("/proc/%d/%s", pid, e.name), e.content); err != nil {
			return fmt.Errorf("ids of a sandbox: %w", err)
		}
	}
	return nil
}

func idMap(m syscall.SysProcIDMap) string {
	return fmt.Sprintf("%d %d %d", m.ContainerID, m.HostID, m.Size)
}

// writeOnce writes a file of the kernel's that takes its content in one piece.
func writeOnce(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// namespaces of every sandbox that it is cloned with. The network's is besides, and pid 1 makes that of control groups itself.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// insideAttributes are those of pid 1 of a sandbox. It keeps its capabilities over the execve by the ambient set, because it
// has no ids yet.
func insideAttributes(network forge.Network) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	if network == forge.NetworkNone {
		sys.Cloneflags |= syscall.CLONE_NEWNET
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		sys.AmbientCaps = append(sys.AmbientCaps, c)
	}
	return sys
}

// idsOf are the ids of a slot's sandbox. With ids of its own pid 1 is root inside; else it has the steps' only id.
func (l *launcher) idsOf(slot int) idMaps {
	if l.cfg.Rootless {
		return idMaps{
			uids:     syscall.SysProcIDMap{ContainerID: sandbox.StepUID, HostID: os.Geteuid(), Size: 1},
			gids:     syscall.SysProcIDMap{ContainerID: sandbox.StepGID, HostID: os.Getegid(), Size: 1},
			noGroups: true,
		}
	}
	own := syscall.SysProcIDMap{HostID: l.firstID(slot), Size: sandbox.SlotIDs}
	return idMaps{uids: own, gids: own}
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
	c, err := l.cloner.start(os.Geteuid(), idMaps{
		uids:     syscall.SysProcIDMap{ContainerID: int(uid), HostID: l.firstID(slot) + sandbox.StepUID, Size: 1},
		gids:     syscall.SysProcIDMap{ContainerID: int(gid), HostID: l.firstID(slot) + sandbox.StepGID, Size: 1},
		noGroups: true,
	}, idleArg, [3]*os.File{r, l.null, l.null}, nil, &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUSER,
	})
	if err != nil {
		return nil, fmt.Errorf("user namespace of a folder: %w", err)
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", c.process.Pid))
	_ = c.process.Kill() // it is waited for
	_, werr := c.process.Wait()
	return space, errors.Join(err, werr, c.pidfd.Close())
}
