package core

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
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

	uploading    forge.Instant // since when outputs are on their way, or missed by the daemon; zero is not
	uploaded     time.Duration // what that took before
	missedAt     forge.Instant // when the daemon last said that it misses an output
	redelivering bool          // a Redeliver is under way; nothing is asked meanwhile
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
	a.reconsider()
	a.stopIfIdle()
}

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
