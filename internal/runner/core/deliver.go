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
