package core

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

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
	if !t.durable || !t.sealed || t.asking || t.redelivering || a.link.state != forge.ConnActive || t.state.Ended() {
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
	if !t.sealed {
		a.streamLog(t)
		a.sealLog(t)
	}
	a.sendCompletion(t)
}

// tooEarly plans to say again what the daemon cannot take yet, after what it says it misses is on its way.
func (a *Agent) tooEarly(now forge.Instant, t *attempt, code forge.ErrorCode) {
	if code == forge.ErrorNotYetRef && len(t.frozen.Outputs) > 0 {
		a.redeliver(now, t)
		return
	}
	t.sealed = t.sealed && code != forge.ErrorNotYetLog
	t.mendAt = now.Add(mendDelay)
}

// redeliver brings the outputs to the daemon once more: it has lost something of them, or set it aside as damaged. From
// the first such answer on this counts as uploading until the completion is taken, so that a daemon that never finds them
// does not hold the attempt for longer than uploads may take.
func (a *Agent) redeliver(now forge.Instant, t *attempt) {
	if t.redelivering {
		return
	}
	if t.uploading == 0 {
		t.uploading = now
	}
	left := t.spec.Timeouts.Upload - t.uploaded - now.Sub(t.uploading)
	if left <= 0 {
		a.withdraw(t)
		return
	}
	t.redelivering, t.missedAt = true, now
	a.emit(Redeliver{Attempt: t.ctx.Attempt, Within: left})
}

// redelivered asks again, but not faster than for anything else that was too early.
func (a *Agent) redelivered(now forge.Instant, t *attempt, failed bool) {
	t.redelivering = false
	if failed {
		a.withdraw(t)
		return
	}
	t.mendAt = t.missedAt.Add(mendDelay)
	a.mend(now, t)
}

// withdraw replaces a completion whose outputs the daemon misses and cannot get any more by one that names none. What
// the workload did and whether a cancel was seen stay frozen. A message id stands for one content, so it is a new one; the
// one before was answered as too early, which has left no trace. Should a copy of that be taken all the same, then with its
// outputs, and this one is answered as stale.
func (a *Agent) withdraw(t *attempt) {
	without := *t.frozen
	without.Message, without.Outputs = a.messageID(), nil
	if without.Capture == forge.Succeeded {
		without.Capture = forge.UploadFailed
	}
	without.Hash = without.ResultHash()
	t.frozen, t.durable, t.asking = &without, false, false
	a.record(t)
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
