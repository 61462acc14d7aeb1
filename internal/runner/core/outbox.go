package core

import (
	"github.com/forgeyard/forgeyard/internal/forge"
)

// outbox is what waits to be said on the newest connection, as intentions: the body of a message is built when it is
// written, so that it never says what was true some time ago. Each list is bounded, by the attempts that an agent may
// hold or by maxQueue.
type outbox struct {
	register   bool
	resync     bool
	recover    bool
	cancelAcks []forge.CancelAck // first of all
	queue      []intent          // then these, in order
	beat       bool              // then one heartbeat, however many fell due
	capability bool              // then the rest
}

// intent is one message of the ordered class.
type intent struct {
	kind    intentKind
	context forge.AttemptContext
	phase   forge.AttemptState // with intentPhase
	seq     uint64
	reason  forge.RejectReason // with intentReject
	id      forge.MessageID    // of the message, stable until it is answered
}

type intentKind uint8

const (
	intentAccept     intentKind = 1
	intentReject     intentKind = 2
	intentPhase      intentKind = 3
	intentLogFinal   intentKind = 4
	intentCompletion intentKind = 5
)

func (o *outbox) clear() {
	*o = outbox{cancelAcks: o.cancelAcks[:0], queue: o.queue[:0]}
}

// pending reports whether something may be said in the connection's present state.
func (a *Agent) pending() bool {
	l := &a.link
	if len(l.outstanding) >= MaxOutstanding {
		return false
	}
	switch l.state {
	case forge.ConnRegistering:
		return l.register
	case forge.ConnResyncing:
		return l.resync
	case forge.ConnActive:
		return l.recover || l.beat || l.capability || len(l.cancelAcks) > 0 || len(l.queue) > 0
	}
	return false
}

// want asks for a Writable if there is something to say.
func (a *Agent) want(now forge.Instant) {
	l := &a.link
	if a.stopped || !l.up || l.wanted || !a.pending() {
		return
	}
	l.wanted, l.writeBy = true, now.Add(a.policy.Request)
	a.emit(Want{Seq: l.seq})
}

// writable says the most urgent thing, with a body built now.
func (a *Agent) writable(now forge.Instant, e Writable) {
	l := &a.link
	if !l.up || e.Seq != l.seq {
		return
	}
	l.wanted = false
	if !a.pending() {
		return
	}
	switch {
	case l.register:
		l.register = false
		a.request(now, requestRegister, request{id: a.messageID()}, a.registration())
	case l.resync:
		l.resync = false
		a.sendResync(now)
	case len(l.cancelAcks) > 0:
		ack := l.cancelAcks[0]
		l.cancelAcks = l.cancelAcks[1:]
		a.transmit(a.messageID(), &ack)
	case l.recover:
		l.recover = false
		a.request(now, requestRecover, request{id: a.messageID()}, a.recovery())
	case len(l.queue) > 0:
		next := l.queue[0]
		l.queue = l.queue[1:]
		a.sendIntent(now, next)
	case l.beat:
		l.beat = false
		a.sendHeartbeat(now)
	default:
		l.capability = false
		a.transmit(a.messageID(), &forge.CapabilityUpdate{
			Runner: a.cfg.Runner, Session: a.cfg.Session,
			Capabilities: a.cfg.Admission.Capabilities, CapabilityDigest: a.digest,
		})
	}
}

func (a *Agent) transmit(id forge.MessageID, m forge.Message) {
	a.emit(Transmit{Seq: a.link.seq, Frame: forge.Frame{ID: id, Body: m}})
}

// request transmits a message whose answer is awaited. The clock was read before anything of it is handed over.
func (a *Agent) request(now forge.Instant, kind requestKind, r request, m forge.Message) {
	r.kind, r.sent = kind, now
	a.expect(r)
	a.transmit(r.id, m)
}

func (a *Agent) registration() *forge.Register {
	return &forge.Register{
		Runner: a.cfg.Runner, Session: a.cfg.Session, StateFolder: a.cfg.StateFolder, Boot: a.cfg.Boot,
		StartCounter: a.cfg.StartCounter, TransportSeq: a.link.seq, Version: a.cfg.Version,
		Capabilities: a.cfg.Admission.Capabilities, CapabilityDigest: a.digest,
	}
}

// sendResync names every lease of which anything is left, as it is at this moment.
func (a *Agent) sendResync(now forge.Instant) {
	nonce := a.nonce()
	m := &forge.Resync{Runner: a.cfg.Runner, Session: a.cfg.Session, Nonce: nonce, CapabilityDigest: a.digest}
	for _, t := range a.attempts {
		m.Attempts = append(m.Attempts, forge.ResyncItem{
			Job: t.ctx.Job, Attempt: t.ctx.Attempt, Lease: t.ctx.Lease, Spec: t.ctx.Spec,
			Phase: t.state, EventSeq: t.eventSeq, LogNext: t.logNext,
		})
	}
	a.request(now, requestResync, request{id: a.messageID(), nonce: nonce}, m)
}

// sendHeartbeat names the granted leases, as they are at this moment.
func (a *Agent) sendHeartbeat(now forge.Instant) {
	nonce := a.nonce()
	m := &forge.Heartbeat{
		Runner: a.cfg.Runner, Session: a.cfg.Session, Nonce: nonce, State: a.state,
		CapabilityDigest: a.digest,
	}
	for _, t := range a.attempts {
		if t.granted && !t.stale {
			m.Attempts = append(m.Attempts, forge.HeartbeatItem{Attempt: t.ctx.Attempt, Lease: t.ctx.Lease, Phase: t.state})
		}
	}
	a.request(now, requestHeartbeat, request{id: a.messageID(), nonce: nonce}, m)
}

// sendIntent says one thing of the ordered class, if it still makes sense.
func (a *Agent) sendIntent(now forge.Instant, n intent) {
	if n.kind == intentReject {
		a.transmit(n.id, &forge.LeaseReject{Context: n.context, Reason: n.reason})
		return
	}
	t := a.find(n.context.Attempt)
	if t == nil {
		return
	}
	r := request{id: n.id, attempt: t.ctx.Attempt}
	switch n.kind {
	case intentAccept:
		if t.state != forge.AttemptOffered {
			return
		}
		r.nonce = a.nonce()
		a.request(now, requestAccept, r, &forge.LeaseAccept{Context: t.ctx, Nonce: r.nonce})
	case intentPhase:
		a.request(now, requestPhase, r, &forge.PhaseChange{Context: t.ctx, Seq: n.seq, Phase: n.phase})
	case intentLogFinal:
		a.request(now, requestLogFinal, r, &forge.LogFinal{Context: t.ctx, Seal: t.frozen.Log})
	case intentCompletion:
		a.request(now, requestCompletion, r, t.frozen)
	}
}

func (a *Agent) queue(n intent) { a.link.queue = append(a.link.queue, n) }
