// Package attempt carries out one attempt on this machine: workspace, executor, log, clean-up, in the order in which the
// agent's core asks for them.
//
//	New ─▶ Run: workspace ─▶ inputs ─▶ executor.Prepare ─▶ Prepared
//	                         Start: secrets ─▶ executor.Start ─▶ Started ─▶ … ─▶ Ended
//	                         Deliver: outputs ─▶ seal the log ─▶ Delivered
//	                         Redeliver: outputs that the daemon misses ─▶ Redelivered
//	                         CleanUp: spool, workspace ─▶ CleanedUp
//
// It decides nothing about leases: whether something may start, how long it may live and what its end means is said by
// the core, and once more by the watchdog of the workload itself.
//
// Run is the one goroutine that walks this way; it has another one while outputs are delivered, and joins it. Its owner calls the
// other methods, none of which waits.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Config is what all attempts of an agent share, and the spec of this one.
type Config struct {
	Context  forge.AttemptContext
	Spec     forge.JobSpec
	Deadline forge.Instant
	Policy   forge.LeasePolicy

	Executor   executor.Executor
	Workspaces *workspace.Root
	Objects    Objects // nil: a spec with inputs or outputs fails
	SpoolDir   string  // of this attempt alone
	Spool      logspool.Config
	Env        []forge.EnvVar // besides those that New adds
	// Secrets fetches the values just before the first step. It is not called where the spec names none. The values belong to
	// the attempt, which wipes them.
	Secrets  func(ctx context.Context, c forge.AttemptContext, uses []forge.SecretUse) ([]executor.Secret, error)
	Reporter Reporter
	Wall     func() forge.WallTime
	Log      *slog.Logger
}

// Reporter hears how an attempt gets on, from its goroutine and in this order. Nothing is reported once the context of
// Run has ended.
type Reporter interface {
	Prepared(id forge.AttemptID)
	Started(id forge.AttemptID)
	Ended(id forge.AttemptID, o executor.Outcome)
	Delivered(id forge.AttemptID, outputs []forge.OutputRef, capture forge.Class, seal forge.LogSeal)
	// Redelivered says that the daemon has the outputs again; err, why it cannot have them any more. The log has ended before.
	Redelivered(id forge.AttemptID, err error)
	// CleanedUp says that no process is left. err names what could not be removed from the disk; a sweep may do it later.
	CleanedUp(id forge.AttemptID, err error)
}

// Attempt is one attempt of which anything is left.
type Attempt struct {
	cfg      Config
	spool    *logspool.Spool // nil where it could not be made
	spoolErr error
	out      *output

	releases []func()         // of inputs; Run's, like the next three
	outputs  []captured       // that the completion names; while something is delivered, of the goroutine that does it
	outcome  executor.Outcome // once the workload has ended
	started  bool             // a step may have run

	ready   context.Context // until the first step runs, or is not wanted any more
	unready context.CancelCauseFunc
	begin   chan struct{}
	deliver chan struct{}
	again   chan time.Duration // has room for one
	clean   chan struct{}
	once    struct{ begin, deliver, clean sync.Once }

	mu       sync.Mutex
	deadline forge.Instant
	workload executor.Workload  // nil until it is prepared
	stop     forge.CancelReason // wanted before there was a workload, like the next three
	kill     bool
	bitten   bool
	hard     bool
}

// Causes with which preparation ends early.
var (
	errStopped = errors.New("stopped")
	errKilled  = errors.New("killed")
	errBitten  = errors.New("the lease ended")
)

// New returns an attempt. Its log can be read from now on. Run must be called.
func New(cfg Config) *Attempt {
	a := &Attempt{
		cfg: cfg, deadline: cfg.Deadline,
		begin: make(chan struct{}), deliver: make(chan struct{}), again: make(chan time.Duration, 1), clean: make(chan struct{}),
	}
	a.cfg.Spool.Limit = cfg.Spec.LogLimit
	a.spool, a.spoolErr = logspool.Create(cfg.SpoolDir, a.cfg.Spool)
	a.out = newOutput(a.spool, cfg.Wall)
	a.ready, a.unready = context.WithCancelCause(context.Background()) // its end is Run's, or one of the calls below
	return a
}

// Context is the tuple of the attempt.
func (a *Attempt) Context() forge.AttemptContext { return a.cfg.Context }

// Resources is what it holds of the machine.
func (a *Attempt) Resources() forge.Resources { return a.cfg.Spec.Resources }

// Spool is its log, or nil where none could be made: then the log is empty.
func (a *Attempt) Spool() *logspool.Spool { return a.spool }

// Start releases the workload once it is prepared.
func (a *Attempt) Start() { a.once.begin.Do(func() { close(a.begin) }) }

// MoveDeadline passes a later deadline on.
func (a *Attempt) MoveDeadline(deadline forge.Instant) {
	a.mu.Lock()
	a.deadline = max(a.deadline, deadline)
	w := a.workload
	a.mu.Unlock()
	if w != nil {
		w.MoveDeadline(deadline)
	}
}

// Stop ends the workload, or its preparation: soft signal, grace, hard kill. The first reason counts.
func (a *Attempt) Stop(reason forge.CancelReason) {
	a.end(errStopped, func() {
		if a.stop == forge.CancelNone {
			a.stop = reason
		}
	}, func(w executor.Workload) { w.Stop(reason) })
}

// Kill ends it at once.
func (a *Attempt) Kill() {
	a.end(errKilled, func() { a.kill = true }, executor.Workload.Kill)
}

// Bite ends it for its deadline: the soft signal, or the hard one.
func (a *Attempt) Bite(soft bool) {
	a.end(errBitten, func() { a.bitten, a.hard = true, a.hard || !soft }, func(w executor.Workload) { w.Bite(soft) })
}

// end notes what is wanted and passes it on to the workload, if there is one. Its output holds nothing up any more: a
// log that nobody takes must not keep a dying workload from its end.
func (a *Attempt) end(cause error, note func(), pass func(executor.Workload)) {
	a.mu.Lock()
	note()
	w := a.workload
	a.mu.Unlock()
	a.unready(cause)
	if a.spool != nil {
		a.spool.Unblock()
	}
	if w != nil {
		pass(w)
	}
}

// Deliver asks for the outputs and the end of the log.
func (a *Attempt) Deliver() { a.once.deliver.Do(func() { close(a.deliver) }) }

// Redeliver asks for the outputs once more, within a time. It is called after Delivered was reported, and again only after
// Redelivered was.
func (a *Attempt) Redeliver(within time.Duration) {
	select {
	case a.again <- within:
	default:
	}
}

// CleanUp asks for the end of everything.
func (a *Attempt) CleanUp() { a.once.clean.Do(func() { close(a.clean) }) }

// Run walks the whole way and returns when the attempt is cleaned up. When ctx ends it kills what runs and returns as
// soon as no process is alive; what is on the disk stays for the next agent process.
func (a *Attempt) Run(ctx context.Context) {
	defer a.unready(nil)
	id := a.cfg.Context.Attempt
	a.outcome = a.work(ctx)
	if ctx.Err() == nil {
		a.cfg.Reporter.Ended(id, a.outcome)
		a.finish(ctx)
	}
	if ctx.Err() != nil {
		a.leave()
	}
}

// leave gives back what this process holds, for a process that ends.
func (a *Attempt) leave() {
	var errs []error
	if a.workload != nil {
		errs = append(errs, a.workload.Close())
	}
	a.releaseInputs()
	a.releaseOutputs()
	if a.spool != nil {
		errs = append(errs, a.spool.Close())
	}
	if err := errors.Join(errs...); err != nil {
		a.cfg.Log.Warn("an attempt was not left in order", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(), telemetry.KeyError, err)
	}
}

// finish does what comes after the workload. A delivery that is not wanted any more is given up.
func (a *Attempt) finish(ctx context.Context) {
	id := a.cfg.Context.Attempt
	var delivering sync.WaitGroup
	deliver, delivered, redelivered := a.deliver, make(chan delivery, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer delivering.Wait()
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-deliver:
			deliver = nil
			delivering.Go(func() { delivered <- a.deliverAll(ctx) })
		case d := <-delivered:
			a.cfg.Reporter.Delivered(id, d.outputs, d.capture, d.seal)
		case within := <-a.again:
			delivering.Go(func() { redelivered <- a.deliverAgain(ctx, within) })
		case err := <-redelivered:
			a.cfg.Reporter.Redelivered(id, err)
		case <-a.clean:
			cancel()
			delivering.Wait()
			a.cfg.Reporter.CleanedUp(id, a.remove())
			return
		}
	}
}

// seal ends the log. A log whose end could not be written would be shorter than it says, which no result may hide.
func (a *Attempt) seal() (forge.Class, forge.LogSeal) {
	if a.spool == nil {
		return forge.Succeeded, forge.LogSeal{}
	}
	seal, err := a.spool.Seal(a.cfg.Wall())
	if err != nil {
		a.cfg.Log.Error("the end of a log was not written", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(), telemetry.KeyError, err)
		return forge.UploadFailed, seal
	}
	return forge.Succeeded, seal
}

// remove takes everything away.
func (a *Attempt) remove() error {
	var errs []error
	if a.workload != nil {
		errs = append(errs, a.workload.Close())
	}
	a.releaseInputs()
	a.releaseOutputs()
	if a.spool != nil {
		errs = append(errs, a.spool.Remove())
	}
	errs = append(errs, a.cfg.Workspaces.Remove(a.cfg.Context.Attempt))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up attempt %v: %w", a.cfg.Context.Attempt, err)
	}
	return nil
}
