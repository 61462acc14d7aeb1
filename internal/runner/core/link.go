package core

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// mostUnheard is how many heartbeats in a row may be answered without an acknowledgement before the agent connects anew.
const mostUnheard = 3

// link is the newest connection and the way to the next one.
type link struct {
	lastSeq  uint64 // of the latest dial
	dialing  bool   // lastSeq is on its way
	seq      uint64 // of the newest connection that stood; its voice counts
	up       bool
	old      uint64 // the one before, until the newest is registered; 0 is none
	state    forge.ConnectionState
	wanted   bool          // a Want is out
	writeBy  forge.Instant // with wanted: when we stop waiting for the Writable
	nextDial forge.Instant
	failures int
	endpoint int           // of the next dial, and of one that is on its way
	at       int           // of the newest connection that stood
	again    bool          // it was active when it ended: a blackout is no reason to go elsewhere
	prefer   forge.Instant // when the first endpoint is tried beside it; forge.Never where that is what it is at
	trying   bool          // with dialing: that is what this dial is for

	nextBeat    forge.Instant
	unheard     int // heartbeats in a row that were answered without an acknowledgement
	outstanding []request
	outbox
}

// request is something that awaits an answer on the newest connection.
type request struct {
	id      forge.MessageID
	kind    requestKind
	attempt forge.AttemptID
	nonce   forge.Nonce
	sent    forge.Instant // the moment before its first byte went out
	due     forge.Instant // when we stop waiting
}

type requestKind uint8

const (
	requestRegister   requestKind = 1
	requestResync     requestKind = 2
	requestRecover    requestKind = 3
	requestAccept     requestKind = 4
	requestHeartbeat  requestKind = 5
	requestPhase      requestKind = 6
	requestLogFinal   requestKind = 7
	requestCompletion requestKind = 8
)

// wake is when tickLink has something to do.
func (l *link) wake() forge.Instant {
	wake := forge.Never
	if !l.dialing {
		wake = l.nextDial
	}
	if l.wanted {
		wake = min(wake, l.writeBy)
	}
	if l.up && l.state == forge.ConnActive {
		wake = min(wake, l.nextBeat)
	}
	if l.mayPrefer() {
		wake = min(wake, l.prefer)
	}
	for i := range l.outstanding {
		wake = min(wake, l.outstanding[i].due)
	}
	return wake
}

// tickLink dials, notices requests that nobody takes or answers, and lets the heart beat.
func (a *Agent) tickLink(now forge.Instant) {
	l := &a.link
	if l.overdue(now) {
		a.hangUp(now, forge.CloseLost)
	}
	if l.up && l.state == forge.ConnActive && now >= l.nextBeat {
		l.beat = true
		l.nextBeat = now.Add(a.policy.Renew*4/5 + a.jitter(a.policy.Renew*2/5))
	}
	if now >= l.nextDial && !l.dialing {
		a.dial(now)
	}
	if now >= l.prefer && l.mayPrefer() {
		l.endpoint = preferred
		a.dial(now)
		l.trying = l.dialing
	}
}

// mayPrefer reports whether the time has a meaning at which the preferred endpoint is tried: nothing else is planned.
func (l *link) mayPrefer() bool {
	return l.up && l.state == forge.ConnActive && !l.dialing && l.nextDial == forge.Never
}

// preferNotBefore plans the next try at the preferred endpoint, unless the newest connection is to it.
func (l *link) preferNotBefore(at forge.Instant) {
	l.prefer = forge.Never
	if l.at != preferred {
		l.prefer = at
	}
}

// overdue reports whether something was not written or not answered in time.
func (l *link) overdue(now forge.Instant) bool {
	late := func(r request) bool { return now >= r.due }
	return l.wanted && now >= l.writeBy || slices.ContainsFunc(l.outstanding, late)
}

// dial opens a connection beside whatever stands.
func (a *Agent) dial(forge.Instant) {
	l := &a.link
	if l.dialing || !a.killed {
		return
	}
	l.lastSeq++
	l.dialing, l.nextDial = true, forge.Never
	if !l.up {
		a.move(lifecycle.AgentDial)
	}
	a.emit(Dial{Seq: l.lastSeq, Endpoint: l.endpoint})
}

// connected makes the connection the newest one. What the one before still says is not listened to from here on.
func (a *Agent) connected(now forge.Instant, e Connected) {
	l := &a.link
	if !l.dialing || e.Seq != l.lastSeq {
		a.emit(CloseLink{Seq: e.Seq, Reason: forge.CloseNormal})
		return
	}
	if l.up {
		a.dropOld()
		l.old = l.seq
	}
	l.dialing, l.up, l.seq = false, true, e.Seq
	l.at, l.trying = l.endpoint, false
	l.nextDial, l.prefer = forge.Never, forge.Never
	l.state, l.wanted = forge.ConnRegistering, false
	l.outstanding, l.unheard = l.outstanding[:0], 0
	l.clear()
	l.register = true
	a.move(lifecycle.AgentDial)
	a.move(lifecycle.AgentReach)
}

func (a *Agent) dropOld() {
	if a.link.old != 0 {
		a.emit(CloseLink{Seq: a.link.old, Reason: forge.CloseNormal})
		a.link.old = 0
	}
}

// closed plans what comes after a connection's end. The end of any but the newest means nothing.
func (a *Agent) closed(now forge.Instant, e Closed) {
	l := &a.link
	switch {
	case l.dialing && e.Seq == l.lastSeq:
		tried := l.trying
		l.dialing, l.trying = false, false
		if l.up && tried {
			a.notPreferred(now)
			return
		}
		if l.up {
			a.dialElsewhere(now.Add(a.backoff())) // the present connection goes on
			return
		}
	case l.up && e.Seq == l.seq:
		a.down()
	default:
		if e.Seq == l.old {
			l.old = 0
		}
		return
	}
	a.afterClose(now, e.Reason)
}

// notPreferred goes on where the agent is, after a try at the preferred endpoint that came to nothing.
func (a *Agent) notPreferred(now forge.Instant) {
	l := &a.link
	l.preferNotBefore(now.Add(preferAfter))
	if l.nextDial == forge.Never {
		l.endpoint = l.at
	}
}

// hangUp ends the newest connection from our side.
func (a *Agent) hangUp(now forge.Instant, reason forge.CloseReason) {
	a.emit(CloseLink{Seq: a.link.seq, Reason: reason})
	a.down()
	a.afterClose(now, reason)
}

// down forgets the newest connection and what it owed us.
func (a *Agent) down() {
	l := &a.link
	l.again = l.state == forge.ConnActive
	l.up, l.wanted = false, false
	l.state, l.prefer = forge.ConnClosed, forge.Never
	l.outstanding = l.outstanding[:0]
	l.clear()
	a.offers = nil // what still stands is offered again after the resync
	a.dropOld()
	a.move(lifecycle.AgentCutOff)
}

// afterClose decides when and where to connect again, or not at all.
func (a *Agent) afterClose(now forge.Instant, reason forge.CloseReason) {
	l := &a.link
	if l.dialing {
		return
	}
	again := l.again && reason == forge.CloseLost
	l.again = false
	if l.nextDial != forge.Never && reason.Retry() != forge.RetryStop {
		l.nextDial = min(l.nextDial, now.Add(a.patience(now))) // as a GoAway has said
		return
	}
	var wait time.Duration
	switch reason.Retry() {
	case forge.RetryStop:
		if reason != forge.CloseNormal {
			code := ExitSuperseded
			if reason == forge.CloseRevoked {
				code = ExitRevoked
			}
			a.exit(code)
			return
		}
		wait = a.backoff()
	case forge.RetryOperator, forge.RetryRecover:
		wait = slowRetry/2 + a.jitter(slowRetry/2)
	case forge.RetryElsewhere:
		wait = a.jitter(baseBackoff)
		if l.failures++; l.failures > a.cfg.Endpoints {
			wait = a.backoff() // there is no better one
		}
	default:
		wait = a.backoff()
	}
	if most := a.patience(now); wait > most {
		wait = most/2 + a.jitter(most/2) // not all of a crowd at the cap
	}
	if again {
		l.endpoint, l.nextDial = l.at, now.Add(wait)
		return
	}
	a.dialElsewhere(now.Add(wait))
}

// dialElsewhere plans a connection to the next endpoint.
func (a *Agent) dialElsewhere(at forge.Instant) {
	a.link.endpoint = (a.link.endpoint + 1) % max(a.cfg.Endpoints, 1)
	a.link.nextDial = at
}

// backoff draws the wait before the next try from the whole range below a doubling bound.
func (a *Agent) backoff() time.Duration {
	bound := min(baseBackoff<<min(a.link.failures, 10), maxBackoff)
	a.link.failures++
	return a.jitter(bound)
}

// patience caps a wait at a quarter of the time that is left to the lease with the least of it, so that several tries
// fit in.
func (a *Agent) patience(now forge.Instant) time.Duration {
	const least = 50 * time.Millisecond
	patience := slowRetry
	for _, t := range a.attempts {
		if left := t.dog.Deadline().Sub(now); t.granted && !t.dog.Bitten() && left > 0 {
			patience = min(patience, max(left/4, least))
		}
	}
	return patience
}

// expect notes a request whose answer is awaited.
func (a *Agent) expect(r request) {
	r.due = r.sent.Add(a.policy.Request)
	a.link.outstanding = append(a.link.outstanding, r)
}

// answered takes the request that re answers off the list. An answer to another transmission leaves it there, so that
// its time still runs.
func (a *Agent) answered(re forge.MessageID, kind requestKind, nonce forge.Nonce) (request, bool) {
	for i, r := range a.link.outstanding {
		if r.id == re && r.kind == kind && r.nonce == nonce {
			a.link.outstanding = slices.Delete(a.link.outstanding, i, i+1)
			return r, true
		}
	}
	return request{}, false
}
