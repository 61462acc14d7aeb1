package core

import (
	"errors"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// attempt is one lease of which anything is left on this machine.
type attempt struct {
	ctx     forge.AttemptContext
	bytes   []byte             // of the spec, exactly as they came
	spec    forge.JobSpec      // what they say
	state   forge.AttemptState // Offered: accepted by us, not yet by the daemon
	granted bool
	dog     watchdog.Dog // with granted
	cancel  forge.CancelReason
	stale   bool // no authority is left: kill, clean up, tell nobody
	giveUp  forge.RejectReason

	eventSeq uint64            // of the latest phase
	version  uint64            // of the record in the journal
	frozen   *forge.Completion // since the workload has ended
	durable  bool              // the journal has the whole completion
	sealed   bool              // the daemon has sealed the log
	logNext  forge.LogSeq      // the first frame that no daemon has acknowledged
	sealing  bool              // a LogFinal is on its way
	asking   bool              // a Completion is on its way
	finalID  forge.MessageID   // of the LogFinal
	mendAt   forge.Instant     // when to send again what was too early; zero is never
	logSeen  forge.LogSeq      // logNext when a heartbeat of this connection last heard that the lease is over
}

// wake is when guard or mend have something to do.
func (t *attempt) wake() forge.Instant {
	wake := forge.Never
	if t.mayLive() {
		wake = t.dog.Wake()
	}
	if t.mendAt != 0 {
		wake = min(wake, t.mendAt)
	}
	return wake
}

// mayLive reports whether a workload of it may be alive, or come alive.
func (t *attempt) mayLive() bool {
	return t.granted && t.frozen == nil && !t.stale
}

// offered takes an offer, or rejects it. A lease id is taken up once in the life of a process: a copy of an offer that was
// already taken or rejected starts nothing.
func (a *Agent) offered(m *forge.LeaseOffer) {
	if a.taken[m.Context.Lease] {
		if a.findLease(m.Context.Lease) == nil {
			a.reject(m.Context, forge.RejectAlreadyTaken)
		}
		return
	}
	a.taken[m.Context.Lease] = true
	spec, reason := a.admit(m)
	if reason != 0 {
		a.reject(m.Context, reason)
		return
	}
	a.attempts = append(a.attempts, &attempt{ctx: m.Context, bytes: m.Spec, spec: spec, state: forge.AttemptOffered, logNext: 1})
	a.queue(intent{kind: intentAccept, context: m.Context, id: a.messageID()})
}

// admit reads the spec of an offer and says why it cannot be taken, or zero (07§30). Everything that a daemon should have
// seen to is checked again.
func (a *Agent) admit(m *forge.LeaseOffer) (forge.JobSpec, forge.RejectReason) {
	switch {
	case m.Context.Runner != a.cfg.Runner || m.Context.Session != a.cfg.Session:
		return forge.JobSpec{}, forge.RejectOther
	case a.draining():
		return forge.JobSpec{}, forge.RejectDraining
	case len(a.attempts) >= a.cfg.Slots:
		return forge.JobSpec{}, forge.RejectResourcePressure
	}
	spec, err := jobspec.Open(m.Context.Spec, m.Spec)
	switch {
	case errors.Is(err, jobspec.ErrMismatch):
		return forge.JobSpec{}, forge.RejectSpecMismatch
	case err != nil:
		return forge.JobSpec{}, forge.RejectUnsupportedSpec
	}
	reason, _ := a.cfg.Admission.Check(&spec)
	return spec, reason
}

// reject gives a lease back. Rejections that cannot be written are bounded: one too many is lost, as it might be on the
// way.
func (a *Agent) reject(c forge.AttemptContext, reason forge.RejectReason) {
	if len(a.link.queue) >= maxQueue {
		return
	}
	a.queue(intent{kind: intentReject, context: c, reason: reason, id: a.messageID()})
}

// grant takes time that a daemon has given. It counts from the moment before the request went out, less what two honest
// clocks may differ over it.
func (a *Agent) grant(t *attempt, sent forge.Instant, ttl time.Duration) {
	deadline := sent.Add(ttl - forge.ClockSlack(ttl))
	if t.granted {
		before := t.dog.Deadline()
		t.dog.Move(deadline)
		if t.mayLive() && t.dog.Deadline() != before && t.state >= forge.AttemptPreparing {
			a.emit(MoveDeadline{Attempt: t.ctx.Attempt, Deadline: deadline})
		}
		return
	}
	t.granted = true
	t.dog = watchdog.New(a.policy, deadline)
	a.advance(t, lifecycle.AttemptGrant)
	a.record(t)
	a.streamLog(t)
}

// stop passes a cancel on to the workload. Only the first reason counts, and none once the workload has ended.
func (a *Agent) stop(t *attempt, reason forge.CancelReason) {
	if reason == forge.CancelNone || t.cancel != forge.CancelNone || t.frozen != nil || t.stale {
		return
	}
	t.cancel = reason
	if t.state == forge.AttemptPreparing || t.state == forge.AttemptRunning {
		a.emit(Stop{Attempt: t.ctx.Attempt, Reason: reason})
	}
}

// cancelled passes on a cancel that came by itself.
func (a *Agent) cancelled(m *forge.Cancel) {
	if len(a.link.cancelAcks) < maxQueue {
		a.link.cancelAcks = append(a.link.cancelAcks, forge.CancelAck{Attempt: m.Attempt, Lease: m.Lease})
	}
	if t := a.findLease(m.Lease); t != nil && t.ctx.Attempt == m.Attempt {
		a.stop(t, m.Reason)
	}
}

// stale: the lease is not ours any more. What runs is killed and nobody is told a result. What has already ended is
// left alone: its completion gets an answer of its own, and may yet have been accepted.
func (a *Agent) stale(t *attempt) {
	switch {
	case t.stale || t.frozen != nil:
		return
	case t.state == forge.AttemptOffered:
		a.drop(t)
	case t.state == forge.AttemptAccepted:
		t.stale = true
		a.cleanUp(t)
	default:
		t.stale = true
		a.emit(Kill{Attempt: t.ctx.Attempt})
	}
}

// rejectHeld gives one lease back of which nothing was started.
func (a *Agent) rejectHeld(id forge.AttemptID, reason forge.RejectReason) {
	t := a.find(id)
	if t == nil || t.frozen != nil || t.stale {
		return
	}
	switch t.state {
	case forge.AttemptOffered:
		a.reject(t.ctx, reason)
		a.drop(t)
	case forge.AttemptAccepted:
		a.reject(t.ctx, reason)
		t.stale, t.giveUp = true, reason
		a.cleanUp(t)
	case forge.AttemptPreparing:
		t.giveUp = reason
		a.emit(Kill{Attempt: t.ctx.Attempt})
	}
}

// drop forgets an offer of which nothing was started.
func (a *Agent) drop(t *attempt) {
	a.attempts = slices.DeleteFunc(a.attempts, func(other *attempt) bool { return other == t })
	a.stopIfIdle()
}

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
			a.delivered(t, e)
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
		a.emit(Deliver{Attempt: t.ctx.Attempt, Outcome: t.frozen.Outcome()})
	case t.state == forge.AttemptCompleting:
		t.durable = true
		a.sealLog(t)
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
func (a *Agent) delivered(t *attempt, e Delivered) {
	whole := *t.frozen
	whole.Outputs, whole.Capture, whole.Log = e.Outputs, e.Capture, e.Log
	whole.Hash = whole.ResultHash()
	t.frozen = &whole
	a.phase(t, lifecycle.AttemptComplete)
	a.record(t)
}

// sealLog asks for the seal once every frame is acknowledged.
func (a *Agent) sealLog(t *attempt) {
	if !t.durable || t.sealed || t.sealing || t.logNext <= t.frozen.Log.Last || a.link.state != forge.ConnActive {
		return
	}
	t.sealing = true
	if t.finalID.IsZero() {
		t.finalID = a.messageID()
	}
	a.queue(intent{kind: intentLogFinal, context: t.ctx, id: t.finalID})
}

// leaveLog gives up the rest of a log whose lease is over once nothing of it was stored from one heartbeat to the next: a
// log that the daemon has closed takes no frame, and the answer to the completion is final either way.
func (a *Agent) leaveLog(t *attempt) {
	if !t.durable || t.sealed {
		return
	}
	if t.logSeen == t.logNext {
		t.sealed = true
		a.sendCompletion(t)
	}
	t.logSeen = t.logNext
}

// sendCompletion asks for acceptance once the log is sealed.
func (a *Agent) sendCompletion(t *attempt) {
	if !t.durable || !t.sealed || t.asking || a.link.state != forge.ConnActive || t.state.Ended() {
		return
	}
	t.asking = true
	a.queue(intent{kind: intentCompletion, context: t.ctx, id: t.frozen.Message})
}

// takeUp goes on, on a new connection, with everything that waits for an answer.
func (a *Agent) takeUp(t *attempt) {
	t.sealing, t.asking = false, false
	if t.state.Ended() || t.stale {
		return
	}
	a.streamLog(t)
	a.sealLog(t)
	a.sendCompletion(t)
}

// mend sends again what was too early.
func (a *Agent) mend(now forge.Instant, t *attempt) {
	if t.mendAt == 0 || now < t.mendAt {
		return
	}
	t.mendAt = 0
	a.takeUp(t)
}

func (a *Agent) streamLog(t *attempt) {
	if t.granted && a.link.state == forge.ConnActive {
		a.emit(StreamLog{Seq: a.link.seq, Attempt: t.ctx.Attempt, From: t.logNext})
	}
}

// finish ends an attempt whose completion was answered.
func (a *Agent) finish(t *attempt) {
	if t.state.Ended() {
		return
	}
	a.advance(t, lifecycle.Terminal(t.frozen.Outcome().AttemptState()))
	a.cleanUp(t)
}

// cleanUp removes everything of an attempt. Its record goes last, when that is done: what a crash leaves half removed
// is still known to the next process.
func (a *Agent) cleanUp(t *attempt) { a.emit(CleanUp{Attempt: t.ctx.Attempt}) }

// record makes the present state of an attempt durable.
func (a *Agent) record(t *attempt) {
	t.version++
	a.emit(WriteRecord{Record: Record{Context: t.ctx, Version: t.version, State: t.state, Completion: t.frozen}})
}

// phase advances an attempt and reports it, in order and once.
func (a *Agent) phase(t *attempt, event lifecycle.Event) {
	a.advance(t, event)
	t.eventSeq++
	if a.link.state == forge.ConnActive {
		a.queue(intent{kind: intentPhase, context: t.ctx, phase: t.state, seq: t.eventSeq, id: a.messageID()})
	}
}

// advance applies an event that the caller knows to be legal.
func (a *Agent) advance(t *attempt, event lifecycle.Event) {
	to, err := lifecycle.Attempt.Next(t.state, event)
	if err != nil {
		panic("runner/core: " + err.Error())
	}
	t.state = to
}
