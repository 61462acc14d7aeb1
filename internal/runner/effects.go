package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// carryOut does what the core asks for. It waits for nothing.
func (a *Agent) carryOut(effect core.Effect) {
	switch e := effect.(type) {
	case core.KillLeftovers:
		a.tasks.Go(a.killLeftovers)
	case core.Dial:
		a.dial(e)
	case core.CloseLink:
		if c := a.conns[e.Seq]; c != nil {
			a.tasks.Go(func() { c.end(e.Reason) })
		}
	case core.Want:
		if c := a.conns[e.Seq]; c != nil {
			c.out.push(outgoing{want: true})
		}
	case core.Transmit:
		a.transmit(e)
	case core.StreamLog:
		a.streamLog(e)
	case core.WriteRecord:
		a.disk.write(e.Record)
	case core.DropRecord:
		a.disk.drop(e.Attempt)
	case core.Exit:
		a.code, a.exited = e.Code, true
	default:
		a.attemptEffect(effect)
	}
}

// attemptEffect does what is about one attempt.
func (a *Agent) attemptEffect(effect core.Effect) {
	switch e := effect.(type) {
	case core.Prepare:
		a.prepare(e)
	case core.Start:
		a.with(e.Attempt, (*attempt.Attempt).Start)
	case core.MoveDeadline:
		a.with(e.Attempt, func(t *attempt.Attempt) { t.MoveDeadline(e.Deadline) })
	case core.Stop:
		a.with(e.Attempt, func(t *attempt.Attempt) { t.Stop(e.Reason) })
	case core.Kill:
		a.with(e.Attempt, func(t *attempt.Attempt) {
			if e.Bite {
				t.Bite(e.Soft)
				return
			}
			t.Kill()
		})
	case core.Deliver:
		if t := a.attempts[e.Attempt]; t != nil {
			t.Deliver()
			return
		}
		// Nothing of it was ever prepared: its log is empty.
		a.tasks.Go(func() { a.post(core.Delivered{Attempt: e.Attempt, Capture: forge.Succeeded}) })
	case core.Redeliver:
		if t := a.attempts[e.Attempt]; t != nil {
			t.Redeliver(e.Within)
			return
		}
		a.tasks.Go(func() { a.post(core.Redelivered{Attempt: e.Attempt, Failed: true}) })
	case core.CleanUp:
		a.cfg.Metrics.cleaning(e.Attempt)
		a.endLogs(e.Attempt)
		if t := a.attempts[e.Attempt]; t != nil {
			t.CleanUp()
			return
		}
		a.tasks.Go(func() { a.cleanUp(e.Attempt) })
	}
}

func (a *Agent) with(id forge.AttemptID, do func(*attempt.Attempt)) {
	if t := a.attempts[id]; t != nil {
		do(t)
	}
}

// transmit hands a frame to the writer. What a heartbeat says of the machine's load is added here, at the same moment.
func (a *Agent) transmit(e core.Transmit) {
	if beat, ok := e.Frame.Body.(*forge.Heartbeat); ok {
		beat.Resources = a.summary()
	}
	if c := a.conns[e.Seq]; c != nil {
		c.out.push(outgoing{frame: e.Frame})
	}
}

// prepare makes an attempt and lets it run.
func (a *Agent) prepare(e core.Prepare) {
	id := e.Context.Attempt
	a.keep(id, nil) // before there is anything that a sweep could take away
	t := attempt.New(attempt.Config{
		Context: e.Context, Spec: e.Spec, Deadline: e.Deadline, Policy: a.policy,
		Executor: a.executorFor(&e.Spec), Workspaces: a.work, Objects: a.objects, SpoolDir: a.spoolDir(id), Spool: a.cfg.Spool, Env: a.cfg.Env,
		Secrets: a.secrets, Reporter: reporter{a}, Wall: wall, Log: a.cfg.Log,
	})
	a.cfg.Metrics.preparing(id)
	a.attempts[id] = t
	a.cfg.Metrics.holds(len(a.attempts))
	a.keep(id, t)
	a.tasks.Go(func() { t.Run(a.life) })
	if from, waits := a.logsFrom[id]; waits {
		delete(a.logsFrom, id)
		a.openLog(t, from)
	}
}

// keep notes that an attempt has something on the disk.
func (a *Agent) keep(id forge.AttemptID, t logged) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[id] = t
}

// executorFor picks what runs a spec. Admission has seen to it that there is one.
func (a *Agent) executorFor(s *forge.JobSpec) executor.Executor {
	for _, e := range a.executors() {
		if e.Sandbox().Kind == s.Sandbox.Kind {
			return e
		}
	}
	return a.executors()[0]
}

func (a *Agent) spoolDir(id forge.AttemptID) string {
	return filepath.Join(a.folder.Path(), spoolName, id.String())
}

// killLeftovers ends what earlier processes have left, however long that takes: nothing is taken before (07§247).
func (a *Agent) killLeftovers() {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, lookEvery) {
		err := a.tryKillLeftovers()
		if err == nil {
			break
		}
		if a.life.Err() != nil {
			return // the agent stops; the next one ends them
		}
		a.cfg.Log.Error("processes of an earlier agent are left; no job is taken before they are gone", telemetry.KeyError, err)
		a.noteExecutor(err)
		select {
		case <-time.After(wait):
		case <-a.life.Done():
			return
		}
	}
	a.noteExecutor(nil)
	a.post(core.LeftoversKilled{})
	if _, err := a.sweep(); err != nil && a.life.Err() == nil {
		a.cfg.Log.Warn("not everything that earlier attempts left was removed", telemetry.KeyError, err)
	}
}

func (a *Agent) tryKillLeftovers() error {
	ctx, cancel := context.WithTimeout(a.life, leaveWithin)
	defer cancel()
	var errs []error
	for _, e := range a.executors() {
		errs = append(errs, e.KillLeftovers(ctx))
	}
	return errors.Join(errs...)
}

// sweep removes the workspaces and spools that no attempt needs: of those that this process holds none is touched.
func (a *Agent) sweep() (removed int, err error) {
	keep := func(id forge.AttemptID) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, held := a.kept[id]
		return held
	}
	removed, err = a.work.Sweep(a.life, keep)
	dir := filepath.Join(a.folder.Path(), spoolName)
	entries, listErr := os.ReadDir(dir)
	if listErr != nil && !errors.Is(listErr, os.ErrNotExist) {
		err = errors.Join(err, listErr)
	}
	for _, entry := range entries {
		id, bad := forge.ParseID[forge.AttemptID](entry.Name())
		if _, reported := a.previous[id]; bad == nil && !reported && !keep(id) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	a.noteCleanUp(err)
	return removed, err
}

// notRemoved hears of a workspace that is out of the way and cannot be removed. It says nothing about the attempt, whose result
// stands (07§96).
func (a *Agent) notRemoved(err error) {
	a.cfg.Log.Warn("a workspace was not removed whole; the sweeper tries again", telemetry.KeyError, err)
	a.noteCleanUp(err)
}

// removed hears that the files of an attempt are gone. Who waits for that room may not wait until the machine is looked at again.
func (a *Agent) removed() {
	free, all, err := a.host.Disk()
	a.mu.Lock()
	a.reading.Disk, a.reading.DiskAll, a.reading.DiskErr = free, all, err
	a.mu.Unlock()
	a.do(a.admit)
}

// endLogs gives up every stream of an attempt that is over.
func (a *Agent) endLogs(id forge.AttemptID) {
	delete(a.logsFrom, id)
	for _, c := range a.conns {
		c.endLog(id)
	}
}

// cleanUp removes what is on the disk of an attempt that this process never prepared.
func (a *Agent) cleanUp(id forge.AttemptID) {
	a.sendLeft(id)
	err := errors.Join(a.work.Remove(id), os.RemoveAll(a.spoolDir(id)))
	a.cleanedUp(id, err)
}

func (a *Agent) cleanedUp(id forge.AttemptID, err error) {
	a.cfg.Metrics.cleaned(id, err)
	if err != nil {
		a.cfg.Log.Warn("an attempt was not cleaned up whole; the sweeper tries again", telemetry.KeyAttempt, id.String(), telemetry.KeyError, err)
		a.noteCleanUp(err)
	}
	a.do(func() {
		a.mu.Lock()
		delete(a.kept, id)
		a.mu.Unlock()
		if _, held := a.attempts[id]; held {
			delete(a.attempts, id)
			a.cfg.Metrics.holds(len(a.attempts))
			a.admit()
		}
		a.step(core.CleanedUp{Attempt: id})
	})
}

// reporter passes on to the core what attempts report.
type reporter struct{ a *Agent }

func (r reporter) Prepared(id forge.AttemptID) {
	r.a.cfg.Metrics.prepared(id)
	r.a.post(core.Prepared{Attempt: id})
}

func (r reporter) Started(id forge.AttemptID) {
	r.a.noteExecutor(nil)
	r.a.post(core.WorkloadStarted{Attempt: id})
}

func (r reporter) Ended(id forge.AttemptID, o executor.Outcome) {
	if o.Result.Class == forge.SandboxSetup {
		r.a.noteExecutor(errSetup)
	}
	r.a.cfg.Log.Info("a workload ended", telemetry.KeyAttempt, id.String(), telemetry.KeyClass, o.Result.Class.String())
	r.a.post(core.WorkloadEnded{Attempt: id, Result: o.Result, StopSeen: o.StopSeen, Bitten: o.Bitten})
}

func (r reporter) Delivered(id forge.AttemptID, outputs []forge.OutputRef, capture forge.Class, seal forge.LogSeal) {
	r.a.post(core.Delivered{Attempt: id, Outputs: outputs, Capture: capture, Log: seal})
}

func (r reporter) Redelivered(id forge.AttemptID, err error) {
	r.a.post(core.Redelivered{Attempt: id, Failed: err != nil})
}

func (r reporter) CleanedUp(id forge.AttemptID, err error) { r.a.cleanedUp(id, err) }

var errSetup = errors.New("the last job could not be set up; its log says why")

func wall() forge.WallTime { return forge.WallTime(clock.Wall().UnixMilli()) }
