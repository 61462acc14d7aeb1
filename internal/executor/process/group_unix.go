//go:build unix

package process

import (
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
)

// group is the sessions of an attempt's steps, one for each.
type group struct {
	mu  sync.Mutex
	ids []int
}

func newGroup() (*group, error) { return &group{}, nil }

func (g *group) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	g.ids = append(g.ids, cmd.Process.Pid)
	return nil
}

func (g *group) soft() {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// signal signals each group, and forgets those that are empty: their id may become another's.
func (g *group) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids = slices.DeleteFunc(g.ids, func(id int) bool { return syscall.Kill(-id, s) == syscall.ESRCH })
}

func (g *group) empty() bool {
	g.signal(0)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.ids) == 0
}

func (g *group) close() {}

// endOf tells an exit code from a signal.
func endOf(state *os.ProcessState) (code, signal int) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 0, int(status.Signal())
	}
	return state.ExitCode(), 0
}
