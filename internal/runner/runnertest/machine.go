// Package runnertest is what tests of an agent stand on: a machine whose workloads are functions of the test, and a
// daemon that says what the test tells it to.
//
// It decides nothing: the rules of a daemon are those of package authority and are tested there. Whoever starts a Machine's
// workload ends it, with Close; a Daemon is closed by its test.
package runnertest

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Workload is what a test's function knows of the workload that it plays.
type Workload struct {
	executor.Order
	Secrets []executor.Secret // with copies of the values
}

// Machine is an executor whose workloads are calls of Run. It keeps the contract of package executor as far as it can be
// kept without processes.
type Machine struct {
	// Run plays a workload. Its context ends with a stop, a bite or a kill; the result counts all the same, as that of a
	// program which handled the signal, except after a kill. A nil Run succeeds at once.
	Run func(ctx context.Context, w *Workload) forge.Result
	// Preparing is called within Prepare, if it is set.
	Preparing func(ctx context.Context, o executor.Order) error
	// Late makes every Start too late.
	Late bool

	mu    sync.Mutex
	swept int
	alive int
	moved []forge.Instant
}

// Sandbox implements executor.Executor.
func (m *Machine) Sandbox() forge.Sandbox { return forge.Sandbox{Kind: forge.SandboxProcess} }

// KillLeftovers implements executor.Executor.
func (m *Machine) KillLeftovers(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swept++
	return nil
}

// Swept is how often KillLeftovers was called.
func (m *Machine) Swept() int { return m.count(func() int { return m.swept }) }

// Alive is how many workloads have begun and not ended.
func (m *Machine) Alive() int { return m.count(func() int { return m.alive }) }

// Moved lists every deadline that a workload was told.
func (m *Machine) Moved() []forge.Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]forge.Instant(nil), m.moved...)
}

func (m *Machine) count(f func() int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f()
}

// Prepare implements executor.Executor.
func (m *Machine) Prepare(ctx context.Context, o executor.Order) (executor.Workload, error) {
	if m.Preparing != nil {
		if err := m.Preparing(ctx, o); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, &executor.SetupError{Class: forge.SandboxSetup, Err: context.Cause(ctx)}
	}
	w := &workload{machine: m, order: o, done: make(chan struct{})}
	w.running, w.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return w, nil
}

// workload is one of them.
type workload struct {
	machine *Machine
	order   executor.Order
	running context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{}

	mu      sync.Mutex
	began   bool
	over    bool
	killed  bool
	outcome executor.Outcome
}

var errEnded = errors.New("runnertest: ended")

// Start implements executor.Workload.
func (w *workload) Start(secrets []executor.Secret) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.machine.Late {
		if !w.over {
			w.outcome.Bitten = true
			w.endLocked(forge.Result{Class: forge.Lost})
		}
		return executor.ErrTooLate
	}
	w.began = true
	w.machine.count(func() int { w.machine.alive++; return 0 })
	given := &Workload{Order: w.order}
	for _, s := range secrets {
		given.Secrets = append(given.Secrets, executor.Secret{Use: s.Use, Value: forge.NewSecret(s.Value.Reveal())})
	}
	go w.play(given)
	return nil
}

func (w *workload) play(given *Workload) {
	w.order.Output.Event(forge.StepStarted{Step: 0})
	result := forge.Result{Class: forge.Succeeded}
	if w.machine.Run != nil {
		result = w.machine.Run(w.running, given)
	}
	w.order.Output.Event(forge.StepFinished{Result: forge.StepResult{Class: result.Class, ExitCode: result.ExitCode}})
	w.machine.count(func() int { w.machine.alive--; return 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed {
		result = forge.Result{Class: forge.Signal, Signal: 9}
	}
	w.endLocked(result)
}

func (w *workload) endLocked(r forge.Result) {
	if w.over {
		return
	}
	w.over = true
	w.outcome.Result = r
	close(w.done)
}

// end notes something and ends what runs, or what would have.
func (w *workload) end(note func(), unborn forge.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	note()
	w.cancel(errEnded)
	if !w.began {
		w.endLocked(unborn)
	}
}

// MoveDeadline implements executor.Workload.
func (w *workload) MoveDeadline(deadline forge.Instant) {
	w.machine.mu.Lock()
	defer w.machine.mu.Unlock()
	w.machine.moved = append(w.machine.moved, deadline)
}

// Stop implements executor.Workload.
func (w *workload) Stop(reason forge.CancelReason) {
	w.end(func() {
		if w.outcome.StopSeen == forge.CancelNone {
			w.outcome.StopSeen = reason
		}
	}, forge.Result{Class: forge.Cancelled})
}

// Bite implements executor.Workload.
func (w *workload) Bite(bool) {
	w.end(func() { w.outcome.Bitten = true }, forge.Result{Class: forge.Lost})
}

// Kill implements executor.Workload.
func (w *workload) Kill() {
	w.end(func() { w.killed = true }, forge.Result{Class: forge.Signal, Signal: 9})
}

// Done implements executor.Workload.
func (w *workload) Done() <-chan struct{} { return w.done }

// Outcome implements executor.Workload.
func (w *workload) Outcome() executor.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// Files implements executor.Workload.
func (w *workload) Files() (*os.Root, error) { return os.OpenRoot(w.order.Folder) }

// Close implements executor.Workload.
func (w *workload) Close() error {
	w.Kill()
	<-w.done
	w.cancel(errEnded)
	return nil
}
