package attempt

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/redact"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Names of the variables that say where a step runs, besides those of the executor.
const (
	envJob     = "FORGEYARD_JOB_ID"
	envAttempt = "FORGEYARD_ATTEMPT_ID"
	envRunner  = "FORGEYARD_RUNNER_ID"
	envProject = "FORGEYARD_PROJECT"
	envName    = "FORGEYARD_JOB"
	envCI      = "CI"
)

// signalKill is what a workload that was killed before it began died of.
const signalKill = 9

// work runs the workload from its preparation to its end. No process of it is alive when work returns.
func (a *Attempt) work(ctx context.Context) executor.Outcome {
	ready, cancel := context.WithTimeout(a.ready, a.cfg.Spec.Timeouts.Prepare)
	defer cancel()
	defer context.AfterFunc(ctx, func() { a.Kill() })()
	w, err := a.prepare(ready)
	if err != nil {
		return a.unprepared(ready, err)
	}
	a.attach(w)
	a.cfg.Reporter.Prepared(a.cfg.Context.Attempt)
	failed := a.release(ready, w)
	<-w.Done()
	a.out.flush()
	outcome := w.Outcome()
	if failed != nil && !outcome.Bitten && outcome.StopSeen == forge.CancelNone {
		outcome.Result = *failed
	}
	if outcome.Bitten {
		a.out.notice(forge.LevelError, "stopped: no daemon has renewed this job's lease in time")
	}
	return outcome
}

// prepare makes workspace and workload.
func (a *Attempt) prepare(ctx context.Context) (executor.Workload, error) {
	if a.spoolErr != nil {
		return nil, a.spoolErr
	}
	folder, err := a.cfg.Workspaces.Make(a.cfg.Context.Attempt)
	if err != nil {
		return nil, err
	}
	inputs, err := a.inputs(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	deadline := a.deadline
	a.mu.Unlock()
	return a.cfg.Executor.Prepare(ctx, executor.Order{
		Context: a.cfg.Context, Spec: a.cfg.Spec, Folder: folder, Inputs: inputs, Env: a.env(), Policy: a.cfg.Policy, Deadline: deadline, Output: a.out,
	})
}

// env is what the agent adds to every step.
func (a *Attempt) env() []forge.EnvVar {
	c := a.cfg.Context
	return append([]forge.EnvVar{
		{Name: envCI, Value: "true"},
		{Name: envJob, Value: c.Job.String()},
		{Name: envAttempt, Value: c.Attempt.String()},
		{Name: envRunner, Value: c.Runner.String()},
		{Name: envProject, Value: string(a.cfg.Spec.Project)},
		{Name: envName, Value: string(a.cfg.Spec.Job)},
	}, a.cfg.Env...)
}

// attach makes the workload known to the calls that end it, and does what they wanted meanwhile.
func (a *Attempt) attach(w executor.Workload) {
	a.mu.Lock()
	a.workload = w
	deadline, stop, kill, bitten, hard := a.deadline, a.stop, a.kill, a.bitten, a.hard
	a.mu.Unlock()
	w.MoveDeadline(deadline)
	if stop != forge.CancelNone {
		w.Stop(stop)
	}
	if bitten {
		w.Bite(!hard)
	}
	if kill {
		w.Kill()
	}
}

// release lets the workload go when that is wanted. It returns the result of one that could not be let go for a reason
// of ours, which it has killed.
func (a *Attempt) release(ctx context.Context, w executor.Workload) *forge.Result {
	select {
	case <-a.begin:
	case <-w.Done():
		return nil
	}
	secrets, err := a.secrets(ctx)
	if err != nil {
		a.out.notice(forge.LevelError, "the job's secrets could not be had: "+err.Error())
		a.cfg.Log.Warn("secrets of an attempt could not be had", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(), telemetry.KeyError, err)
		w.Kill()
		result := a.failure(ctx, forge.InputFetch)
		return &result
	}
	a.started = true
	err = w.Start(secrets)
	for _, s := range secrets {
		s.Value.Zero()
	}
	if err != nil {
		a.cfg.Log.Info("a workload was not started", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(), telemetry.KeyError, a.out.masked(err.Error()))
		return nil // its outcome says why
	}
	a.cfg.Reporter.Started(a.cfg.Context.Attempt)
	return nil
}

// secrets fetches the values and takes them out of the log from here on.
func (a *Attempt) secrets(ctx context.Context) ([]executor.Secret, error) {
	uses := a.cfg.Spec.Secrets
	if len(uses) == 0 {
		return nil, nil
	}
	secrets, err := a.cfg.Secrets(ctx, a.cfg.Context, uses)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, len(secrets))
	for i, s := range secrets {
		values[i] = s.Value.Reveal()
	}
	r := redact.New(values...)
	a.out.redact(r)
	for _, i := range r.Unmasked() {
		a.out.notice(forge.LevelWarning, fmt.Sprintf("the secret %v is too short to be masked in this log", secrets[i].Use.Ref))
	}
	return secrets, nil
}

// unprepared is the outcome of an attempt that never had a workload.
func (a *Attempt) unprepared(ctx context.Context, err error) executor.Outcome {
	a.mu.Lock()
	stop, kill, bitten := a.stop, a.kill, a.bitten
	a.mu.Unlock()
	switch {
	case bitten:
		return executor.Outcome{Result: forge.Result{Class: forge.Lost}, StopSeen: stop, Bitten: true}
	case stop != forge.CancelNone:
		return executor.Outcome{Result: forge.Result{Class: forge.Cancelled}, StopSeen: stop}
	case kill:
		return executor.Outcome{Result: forge.Result{Class: forge.Signal, Signal: signalKill}}
	}
	a.out.notice(forge.LevelError, "the job could not be prepared: "+err.Error())
	a.cfg.Log.Warn("an attempt could not be prepared", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(), telemetry.KeyError, err)
	class := forge.SandboxSetup
	var setup *executor.SetupError
	switch {
	case errors.As(err, &setup) && setup.Class.Valid():
		class = setup.Class
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		class = forge.DiskInsufficient
	}
	return executor.Outcome{Result: a.failure(ctx, class)}
}

// failure is the result of something that failed while the attempt was prepared: because the time for it was over, or
// for the reason of a class.
func (a *Attempt) failure(ctx context.Context, class forge.Class) forge.Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		limit := a.cfg.Spec.Timeouts.Prepare
		return forge.Result{Class: forge.TimedOut, Limit: uint64(limit / time.Millisecond), Peak: uint64(limit / time.Millisecond)}
	}
	return forge.Result{Class: class}
}
