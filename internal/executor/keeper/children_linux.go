package keeper

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// Children are all that descends from this process, which the kernel makes the parent of every orphan among them: a
// subreaper, or the first process of a namespace. Its goroutine ends with the process.
type Children struct {
	exits   chan Exit
	started atomic.Uint64
	wake    chan struct{}  // a program was started
	ended   chan os.Signal // some child has ended since this was last empty

	// mu is held while a program is started, so that its end is not taken for an orphan's before its id is known.
	mu   sync.Mutex
	main int // id of the program that was started last
}

// NewChildren begins to wait for children. There is one Children in a process, and nobody else waits for any.
func NewChildren() *Children {
	c := &Children{exits: make(chan Exit), wake: make(chan struct{}, 1), ended: make(chan os.Signal, 1)}
	signal.Notify(c.ended, syscall.SIGCHLD)
	go c.reap()
	return c
}

// Exits has news of the program that was started last, and of there being no child left.
func (c *Children) Exits() <-chan Exit { return c.exits }

// Starts counts the programs that were started.
func (c *Children) Starts() uint64 { return c.started.Load() }

// Fork starts the program at a path.
func (c *Children) Fork(argv []string, path string, attr *syscall.ProcAttr) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	c.main = pid
	c.started.Add(1)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return pid, Explain(argv[0], err)
}

// isMain reports whether a process that was reaped is the program that was started last. Nobody waits for the others:
// there may be thousands.
func (c *Children) isMain(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return pid == c.main
}

// reap takes every child that has ended, forever. It waits for the signal and not in a call: that would hold a thread, and
// what else this process has to do until the runtime finds out.
func (c *Children) reap() {
	for {
		starts := c.started.Load()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: nothing descends from this process
			c.exits <- Exit{None: true, Starts: starts}
			<-c.wake
		case pid == 0: // nobody has ended yet
			<-c.ended
		case !c.isMain(pid):
		case status.Signaled():
			c.exits <- Exit{ID: pid, Signal: int(status.Signal())}
		default:
			c.exits <- Exit{ID: pid, Code: status.ExitStatus()}
		}
	}
}
