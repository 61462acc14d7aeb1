package core

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// guard lets the watchdog have a look.
func (a *Agent) guard(now forge.Instant, t *attempt) {
	if !t.mayLive() {
		return
	}
	action := t.dog.Step(now)
	if action == watchdog.Nothing || t.state == forge.AttemptAccepted {
		return // nothing of it exists yet; journaled will find that it is too late
	}
	a.emit(Kill{Attempt: t.ctx.Attempt, Bite: true, Soft: action == watchdog.Soft})
}

// attemptEvent takes in what the shell says about one attempt.
func (a *Agent) attemptEvent(now forge.Instant, event Event) {
	switch e := event.(type) {
	case Journaled:
		if t := a.find(e.Attempt); t != nil && e.Version == t.version {
			a.journaled(now, t)
		}
	case Prepared:
		if t := a.find(e.Attempt); t != nil {
			a.prepared(now, t)
		}
	case WorkloadStarted:
		if t := a.find(e.Attempt); t != nil && t.state == forge.AttemptPreparing {
			a.phase(t, lifecycle.AttemptStart)
		}
	case WorkloadEnded:
		if t := a.find(e.Attempt); t != nil && t.frozen == nil && t.state >= forge.AttemptPreparing {
			a.ended(t, e)
		}
	case Delivered:
		if t := a.find(e.Attempt); t != nil && t.state == forge.AttemptUploading {
			a.delivered(now, t, e)
		}
	case Redelivered:
		if t := a.find(e.Attempt); t != nil && t.redelivering && t.state == forge.AttemptCompleting {
			a.redelivered(now, t, e.Failed)
		}
	case CleanedUp:
		a.emit(DropRecord(e))
		if t := a.find(e.Attempt); t != nil {
			a.drop(t)
		}
	}
}

// journaled goes on where only a durable record was missing.
func (a *Agent) journaled(now forge.Instant, t *attempt) {
	switch {
	case t.stale:
	case t.state == forge.AttemptAccepted && t.cancel != forge.CancelNone:
		a.ended(t, WorkloadEnded{Attempt: t.ctx.Attempt, Result: forge.Result{Class: forge.Cancelled}, StopSeen: t.cancel})
	case t.state == forge.AttemptAccepted && !t.dog.MayStart(now):
		a.ended(t, WorkloadEnded{Attempt: t.ctx.Attempt, Result: forge.Result{Class: forge.Lost}, Bitten: true})
	case t.state == forge.AttemptAccepted:
		// The machine may have changed since the offer was taken (07§225).
		if reason, _ := a.cfg.Admission.Check(&t.spec); reason != 0 {
			a.rejectHeld(t.ctx.Attempt, reason)
			return
		}
		a.phase(t, lifecycle.AttemptPrepare)
		a.emit(Prepare{Context: t.ctx, Bytes: t.bytes, Spec: t.spec, Deadline: t.dog.Deadline()})
	case t.state == forge.AttemptUploading:
		t.uploading = now
		a.emit(Deliver{Attempt: t.ctx.Attempt, Outcome: t.frozen.Outcome()})
	case t.state == forge.AttemptCompleting:
		t.durable = true
		a.sealLog(t)
		a.sendCompletion(t)
	}
}

// prepared starts the workload, if it still may. pid 1 asks the same question once more just before execve.
func (a *Agent) prepared(now forge.Instant, t *attempt) {
	if t.state != forge.AttemptPreparing || t.cancel != forge.CancelNone || t.stale || t.giveUp != 0 || !t.dog.MayStart(now) {
		return
	}
	a.emit(Start{Attempt: t.ctx.Attempt})
}

// ended freezes what is to be said about a workload that is no more. From here on it cannot change, whatever else
// arrives: message id, result and whether a user's cancel was seen belong together.
func (a *Agent) ended(t *attempt, e WorkloadEnded) {
	if t.giveUp != 0 && t.state == forge.AttemptPreparing {
		a.reject(t.ctx, t.giveUp)
		t.stale = true
	}
	if t.stale {
		a.cleanUp(t)
		return
	}
	t.frozen = &forge.Completion{
		Context: t.ctx, Message: a.messageID(), Result: e.Result, Capture: forge.Succeeded,
		CancelSeen: e.StopSeen == forge.CancelUser && !e.Bitten,
	}
	t.frozen.Result.Class = e.class()
	if t.giveUp != 0 && t.frozen.Result.Class == forge.Signal {
		t.frozen.Result.Class = forge.Interrupted // by us: it had started while it was given back
	}
	a.phase(t, lifecycle.AttemptUpload)
	a.record(t)
}

// class is what the end means. A workload that a watchdog signalled is lost, and one that we stopped for a reason of our
// own ended for that reason, whatever its exit code says.
func (e WorkloadEnded) class() forge.Class {
	switch {
	case e.Bitten:
		return forge.Lost
	case e.StopSeen == forge.CancelMaxLifetime:
		return forge.TimedOut
	case e.StopSeen == forge.CancelDisabled:
		return forge.Interrupted
	default:
		return e.Result.Class
	}
}

// delivered adds what was stored, and makes the completion durable before it is sent for the first time.
func (a *Agent) delivered(now forge.Instant, t *attempt, e Delivered) {
	t.uploaded, t.uploading = now.Sub(t.uploading), 0
	whole := *t.frozen
	whole.Outputs, whole.Capture, whole.Log = e.Outputs, e.Capture, e.Log
	whole.Hash = whole.ResultHash()
	t.frozen = &whole
	a.phase(t, lifecycle.AttemptComplete)
	a.record(t)
}
