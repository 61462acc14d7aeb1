package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// pipeBytes is asked for each of the two pipes of an attempt: what the steps can print before they wait for the agent.
const pipeBytes = 1 << 20

// Prepare starts a supervisor and tells it everything but the secrets.
func (e *Executor) Prepare(ctx context.Context, order executor.Order) (executor.Workload, error) {
	p, err := e.newPlan(&order)
	if err != nil {
		return nil, err
	}
	if err := e.take(order.Context.Attempt); err != nil {
		return nil, setup(err)
	}
	w, err := e.launch(&order)
	if err != nil {
		e.drop(order.Context.Attempt)
		return nil, setup(err)
	}
	w.helpers.Go(w.wait)
	w.helpers.Go(w.enforce)
	go w.pump()
	if err := w.tell(&request{Setup: p}); err != nil {
		return nil, setup(errors.Join(err, w.Close()))
	}
	select {
	case <-w.ready:
		return w, nil
	case <-w.done:
		return nil, setup(errors.New("the supervisor ended before it was ready"))
	case <-ctx.Done():
		return nil, setup(errors.Join(context.Cause(ctx), w.Close()))
	}
}

func setup(err error) error {
	class := forge.SandboxSetup
	if errors.Is(err, syscall.ENOSPC) {
		class = forge.DiskInsufficient
	}
	return &executor.SetupError{Class: class, Err: err}
}

// launch starts the supervisor of a new workload, and records it.
func (e *Executor) launch(order *executor.Order) (*workload, error) {
	w := &workload{
		e: e, order: *order, dog: watchdog.New(order.Policy, order.Deadline),
		ready: make(chan struct{}), started: make(chan error, 1), overdue: make(chan struct{}, 1),
		gone: make(chan struct{}), done: make(chan struct{}),
	}
	ends, err := w.open()
	if err != nil {
		w.shut()
		return nil, err
	}
	w.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"forgeyard", superviseArg}, Dir: "/",
		Env:        []string{envMark + "=" + e.markOf(order.Context.Attempt)},
		ExtraFiles: ends, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = w.cmd.Start()
	for _, end := range ends {
		err = errors.Join(err, end.Close())
	}
	if err != nil {
		w.shut()
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	if w.supervisor, err = readProc(w.cmd.Process.Pid); err == nil {
		err = e.record(order.Context.Attempt, w.supervisor)
	}
	if err != nil {
		w.shut() // by which the supervisor ends
		return nil, fmt.Errorf("record the supervisor: %w", errors.Join(err, w.cmd.Wait()))
	}
	return w, nil
}

// open makes the socket pair and the pipes, and returns the supervisor's ends.
func (w *workload) open() ([]*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	ends := []*os.File{os.NewFile(uintptr(pair[1]), "agent")}
	err = unix.SetNonblock(pair[0], true)
	w.conn = os.NewFile(uintptr(pair[0]), "supervisor")
	w.fds[0] = pair[0]
	w.pipes = map[string]bool{}
	for i, name := range []string{"stdout", "stderr"} {
		var pipe [2]int
		if perr := unix.Pipe2(pipe[:], unix.O_CLOEXEC); perr != nil {
			err = errors.Join(err, fmt.Errorf("pipe: %w", perr))
			break
		}
		_, _ = unix.FcntlInt(uintptr(pipe[1]), unix.F_SETPIPE_SZ, pipeBytes) // a smaller pipe works too
		w.fds[1+i] = pipe[0]
		w.reads = append(w.reads, os.NewFile(uintptr(pipe[0]), name))
		ends = append(ends, os.NewFile(uintptr(pipe[1]), name))
		err = errors.Join(err, unix.SetNonblock(pipe[0], true))
		if link, lerr := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", pipe[0])); lerr == nil {
			w.pipes[link] = true
		}
	}
	if err == nil {
		return ends, nil
	}
	for _, end := range ends {
		err = errors.Join(err, end.Close())
	}
	return nil, err
}

// shut closes what open opened. Nothing is written to these, so there is nothing that could fail.
func (w *workload) shut() {
	_ = w.conn.Close()
	for _, r := range w.reads {
		_ = r.Close()
	}
}
