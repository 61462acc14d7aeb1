package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Prepare starts a supervisor and tells it everything but the secrets.
func (e *Executor) Prepare(ctx context.Context, order executor.Order) (executor.Workload, error) {
	p, err := e.newPlan(ctx, &order)
	if err != nil {
		return nil, err
	}
	attempt := order.Context.Attempt
	if err := e.live.Take(attempt); err != nil {
		return nil, keeper.Setup(err)
	}
	opened := false
	w, err := keeper.Prepare(ctx, keeper.Job{
		Order: &order, Plan: p, Warning: warning, Log: e.cfg.Log,
		Open: func(ends keeper.Ends) (keeper.Host, error) {
			s, err := e.launch(&order, ends)
			if err != nil {
				return nil, err
			}
			opened = true
			return s, nil
		},
		Over: func() { e.forget(attempt) },
	})
	if err != nil && !opened {
		e.live.Drop(attempt)
	}
	return w, err
}

// supervisor is the host of a workload's keeper.
type supervisor struct {
	e       *Executor
	attempt forge.AttemptID
	folder  string
	cmd     *exec.Cmd
	proc    proc
	pipes   map[string]bool // that the steps print to, as /proc names them
}

// launch starts a supervisor, and records it.
func (e *Executor) launch(order *executor.Order, ends keeper.Ends) (*supervisor, error) {
	attempt := order.Context.Attempt
	s := &supervisor{e: e, attempt: attempt, folder: order.Folder, pipes: map[string]bool{}}
	files := []*os.File{ends.Agent, ends.Stdout, ends.Stderr}
	for _, file := range files[1:] {
		if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd())); err == nil {
			s.pipes[link] = true
		}
	}
	s.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"forgeyard", superviseArg}, Dir: "/",
		Env:        []string{envMark + "=" + e.markOf(attempt)},
		ExtraFiles: files, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	var err error
	if s.proc, err = readProc(s.cmd.Process.Pid); err == nil {
		err = e.record(attempt, s.proc)
	}
	if err != nil {
		return nil, fmt.Errorf("record the supervisor: %w", errors.Join(err, s.cmd.Process.Kill(), s.cmd.Wait()))
	}
	return s, nil
}

// Gone is known to Wait alone, which ends what the supervisor leaves.
func (s *supervisor) Gone() <-chan struct{} { return nil }

// Wait waits for the supervisor's end. One that did not end by itself has left processes behind: they are killed.
func (s *supervisor) Wait() keeper.Death {
	err := s.cmd.Wait()
	if err == nil {
		return keeper.Death{}
	}
	s.e.cfg.Log.Warn("a supervisor ended before its attempt", "attempt", s.attempt, "error", err)
	s.e.sweep(func(attempt string) bool { return attempt == s.attempt.String() }, s.pipes)
	return keeper.Death{Signal: s.deadly()}
}

// deadly is the signal that the supervisor died of, or 0.
func (s *supervisor) deadly() uint8 {
	if s.cmd.ProcessState == nil {
		return 0
	}
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0
	}
	return uint8(status.Signal())
}

// Kill kills all that descends from the supervisor, and then the supervisor.
func (s *supervisor) Kill() { killTree(s.proc) }

// MoveDeadline has nobody to tell besides the keeper.
func (s *supervisor) MoveDeadline(forge.Instant) {}

// Pid is the supervisor, who has the children of the dead too.
func (s *supervisor) Pid() int { return s.proc.PID }

// Files opens the attempt's folder, in which the inputs are copies.
func (s *supervisor) Files() (*os.Root, error) { return os.OpenRoot(s.folder) }

// Close has nothing to give back.
func (s *supervisor) Close() error { return nil }

// Bounded says that only the keeper's watch bounds what is written.
func (s *supervisor) Bounded() bool { return false }

// Finished knows nothing besides.
func (s *supervisor) Finished(forge.StepResult) keeper.Finding { return keeper.Finding{} }
