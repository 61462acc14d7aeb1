package core

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// received takes in one frame. Only the newest connection is listened to.
func (a *Agent) received(now forge.Instant, e Received) {
	l := &a.link
	if !l.up || e.Seq != l.seq {
		return
	}
	re := e.Frame.Re
	switch m := e.Frame.Body.(type) {
	case *forge.RegistrationAccepted:
		a.registered(re, m)
	case *forge.RegistrationRejected:
		a.hangUp(now, m.Reason)
	case *forge.ResyncReply:
		a.resynced(now, re, m)
	case *forge.RecoveryDecisions:
		a.recovered(re)
	case *forge.LeaseOffer:
		a.offered(now, m)
	case *forge.LeaseAcceptAck:
		a.acceptAnswered(re, m)
	case *forge.HeartbeatAck:
		if r, ok := a.answered(re, requestHeartbeat, m.Nonce); ok {
			l.failures, l.unheard = 0, 0 // it has been good for a while
			a.verdicts(r, m.Verdicts)
		}
	case *forge.PhaseAck:
		a.answered(re, requestPhase, 0)
	case *forge.LogAck:
		if t := a.find(m.Attempt); t != nil && m.Next > t.logNext {
			t.logNext = m.Next
			a.sealLog(t)
		}
	case *forge.LogFinalAck:
		if t := a.find(m.Attempt); t != nil {
			a.answered(re, requestLogFinal, 0)
			t.sealed = true
			a.sendCompletion(t)
		}
	case *forge.CompletionAck:
		a.completionAnswered(re, m)
	case *forge.Cancel:
		a.cancelled(m)
	case *forge.Error:
		a.failed(now, re, m)
	case *forge.GoAway:
		a.dialElsewhere(now.Add(max(m.After, 0) + a.jitter(m.Spread)))
	case *forge.Drain:
		a.drain(drains{daemon: true})
	case *forge.Resume:
		a.resume(drains{daemon: true})
	case *forge.RefreshCapabilities:
		l.capability = true
	}
}

// registered: the daemon has made this connection the voice of the runner. The first thing to say is what we hold.
func (a *Agent) registered(re forge.MessageID, m *forge.RegistrationAccepted) {
	l := &a.link
	if _, ok := a.answered(re, requestRegister, 0); !ok || l.state != forge.ConnRegistering {
		return
	}
	a.policy = m.Policy
	l.state = forge.ConnResyncing
	l.resync = true
	a.drains.daemon = false // it says so again if it still wants it
	a.dropOld()
}

// resynced takes the verdicts and takes up everything that waits for an answer.
func (a *Agent) resynced(now forge.Instant, re forge.MessageID, m *forge.ResyncReply) {
	l := &a.link
	r, ok := a.answered(re, requestResync, m.Nonce)
	if !ok || l.state != forge.ConnResyncing {
		return
	}
	a.verdicts(r, m.Verdicts)
	l.state = forge.ConnActive
	l.nextBeat = now.Add(a.jitter(a.policy.Renew))
	l.preferNotBefore(now.Add(preferAfter))
	a.move(lifecycle.AgentSync)
	if a.draining() {
		a.move(lifecycle.AgentDrain)
		l.beat = true // nothing else says so
	}
	for _, t := range a.attempts {
		t.logSeen = 0
		a.takeUp(t)
	}
	l.recover = len(a.previous) > 0
}

// verdicts applies what the store says of our leases. r is the request that this answers: its moment is what counts.
func (a *Agent) verdicts(r request, list []forge.LeaseVerdict) {
	for _, v := range list {
		t := a.findLease(v.Lease)
		if t == nil {
			continue
		}
		if t.stale && v.Verdict != forge.VerdictStale {
			a.reject(t.ctx, max(t.giveUp, forge.RejectOther)) // we gave it back, and nobody heard
			continue
		}
		switch v.Verdict {
		case forge.VerdictContinue:
			a.grant(t, r.sent, v.HardTTL)
			a.stop(t, v.Cancel)
		case forge.VerdictCancel:
			if t.state == forge.AttemptOffered {
				// Accepted long ago without our hearing of it, and over before it began: nothing was started.
				a.reject(t.ctx, forge.RejectOther)
				a.drop(t)
				continue
			}
			a.stop(t, v.Cancel)
		case forge.VerdictStale:
			a.stale(t)
			if r.kind == requestHeartbeat {
				a.leaveLog(t)
			}
		}
	}
}

// acceptAnswered: the daemon has said whether the offer is ours. A refusal of something that runs is not about the
// lease that runs: a newer grant exists.
func (a *Agent) acceptAnswered(re forge.MessageID, m *forge.LeaseAcceptAck) {
	r, ok := a.answered(re, requestAccept, m.Nonce)
	t := a.findLease(m.Lease)
	if t == nil {
		return
	}
	if !m.Granted {
		if t.state == forge.AttemptOffered {
			a.drop(t)
		}
		return
	}
	if !ok {
		return
	}
	a.grant(t, r.sent, m.HardTTL)
	a.stop(t, m.Cancel)
}

// completionAnswered: whatever the answer, this completion has been heard, and nothing else ends it.
func (a *Agent) completionAnswered(re forge.MessageID, m *forge.CompletionAck) {
	a.answered(re, requestCompletion, 0)
	t := a.find(m.Attempt)
	if t == nil || t.frozen == nil || t.frozen.Message != m.Message {
		return
	}
	a.finish(t)
}

// failed: a request could not be answered. What was too early is sent again in a while, and what the next heartbeat or
// resync says again needs nothing. Without an answer to anything else nothing would go on: its time runs, and then ends
// the connection.
func (a *Agent) failed(now forge.Instant, re forge.MessageID, m *forge.Error) {
	i := slices.IndexFunc(a.link.outstanding, func(r request) bool { return r.id == re })
	if i < 0 {
		return
	}
	switch r := a.link.outstanding[i]; r.kind {
	case requestHeartbeat:
		a.answered(re, r.kind, r.nonce)
		// A daemon that answers and renews nothing is no better than one that does not answer.
		if a.link.unheard++; a.link.unheard >= mostUnheard {
			a.hangUp(now, forge.CloseInternal)
		}
	case requestPhase:
		a.answered(re, r.kind, r.nonce)
	case requestLogFinal, requestCompletion:
		a.answered(re, r.kind, r.nonce)
		if t := a.find(r.attempt); t != nil {
			a.tooEarly(now, t, m.Code)
		}
	}
}
