package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
)

// heapBytes is what the launcher's heap is to stay below: a fork with a user namespace copies its page tables.
const heapBytes = 24 << 20

// runLauncher is the launcher's main. Its exit code is 0 when its agent has gone and nothing is alive.
func runLauncher() int {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(heapBytes)
	l := &launcher{
		events: make(chan func()), cells: map[*cell]struct{}{}, boxes: map[uint64]*cell{}, spaces: map[spaceKey]*os.File{},
		calm: time.NewTimer(refillPause),
	}
	if err := l.begin(); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: this is for the agent itself: %v\n", sandbox.LauncherArg, err)
		return 2
	}
	l.out = newOutbox(l.agent)
	l.out.put(sandbox.Answer{Speaks: sandbox.Revision}, nil)
	if err := l.configure(); err != nil {
		l.out.put(sandbox.Answer{Failed: err.Error()}, nil)
		l.out.close()
		return 1
	}
	l.loop()
	l.out.close()
	if err := l.tree.Close(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// begin makes this process the launcher.
func (l *launcher) begin() error {
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil { // whatever the agent had inherited
		return fmt.Errorf("close descriptors: %w", err)
	}
	agent, err := packet.New(sandbox.LauncherFDAgent, "agent")
	if err != nil {
		return err
	}
	l.agent = agent
	l.lock = os.NewFile(sandbox.LauncherFDLock, "lock")
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	core.Cur = 0 // pid 1 of a sandbox does the same with the hard limit
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	ignoreSignals()
	for _, open := range []struct {
		to   **os.File
		path string
	}{{&l.null, os.DevNull}, {&l.mountNS, "/proc/self/ns/mnt"}, {&l.userNS, "/proc/self/ns/user"}} {
		if *open.to, err = os.Open(open.path); err != nil {
			return err
		}
	}
	if l.alarm, err = newAlarm(); err != nil {
		return err
	}
	l.cloner = newCloner()
	return nil
}

// configure takes the agent's first request.
func (l *launcher) configure() error {
	var first sandbox.Request
	files, err := l.agent.Receive(&first)
	packet.CloseFiles(files)
	switch {
	case err != nil:
		return fmt.Errorf("the agent's first request: %w", err)
	case first.Configure == nil:
		return errors.New("the agent's first request is not its configuration")
	}
	l.cfg = *first.Configure
	r, err := sandbox.NewRecord(os.Getpid())
	if err == nil {
		err = r.Fill(l.lock)
	}
	if err != nil {
		return fmt.Errorf("record of the launcher: %w", err)
	}
	l.uid, l.gid = uint32(os.Geteuid()), uint32(os.Getegid())
	if !l.cfg.Rootless {
		if err := syscall.Setgroups(nil); err != nil {
			return fmt.Errorf("leave groups: %w", err)
		}
	}
	if !l.cfg.NoCgroups {
		l.tree, l.groups = cgroup.Open(cgroup.Config{State: l.cfg.State, Agent: l.cfg.Agent})
		l.sweep()
	}
	l.tryDisks()
	l.slots = newSlots(sandbox.Ranges(l.cfg.Slots, l.cfg.Pool))
	l.setups, err = newSetups(&l.cfg)
	return err
}

// tryDisks finds out whether attempts can have disks of their own, while the first sandbox is built.
func (l *launcher) tryDisks() {
	if l.cfg.Rootless || l.cfg.NoImages {
		return
	}
	l.disks, l.diskErr = newDisks(l.cloner, l.cfg.Pool), make(chan error, 1)
	go func() { l.diskErr <- l.disks.try(l.cfg.State) }()
}

// sweep removes control groups that earlier launchers left, and lets the kernel take a sandbox's memory before the launcher's.
func (l *launcher) sweep() {
	if l.tree == nil {
		return
	}
	if _, err := l.tree.Sweep(); err != nil {
		l.notice("%v", err)
	}
	if err := cgroup.Protect(os.Getpid()); err != nil { // what it starts is exposed again, when it joins its group
		l.notice("%v", err)
	}
}
