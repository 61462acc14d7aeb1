package core

import (
	"errors"
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

// heldOffer is an offer that waits for the room of an attempt on its way out. A daemon gives a slot away as soon as the
// result that was in it is recorded, which is a moment before the workspace is gone.
type heldOffer struct {
	offer *forge.LeaseOffer
	until forge.Instant // then it is rejected
}

// offered takes an offer, or rejects it. A lease id is taken up once in the life of a process: a copy of an offer that was
// already taken or rejected starts nothing. What is accepted can start at once; an offer that only lacks the room of an
// attempt on its way out, or of files that one has left, is held until that is gone, but not for longer than half the time that an offer stands.
func (a *Agent) offered(now forge.Instant, m *forge.LeaseOffer) {
	if slices.ContainsFunc(a.offers, func(h heldOffer) bool { return h.offer.Context.Lease == m.Context.Lease }) {
		return // a copy
	}
	if a.taken[m.Context.Lease] {
		if a.findLease(m.Context.Lease) == nil {
			a.reject(m.Context, forge.RejectAlreadyTaken)
		}
		return
	}
	spec, reason := a.admit(m)
	if wantsRoom(reason) && len(a.offers) < a.leaving()+a.cfg.Admission.Removing {
		a.offers = append(a.offers, heldOffer{offer: m, until: now.Add(a.policy.OfferTTL / 2)})
		return
	}
	a.decide(m, spec, reason)
}

// wantsRoom reports whether an offer was only made a moment too early, as far as this reason goes.
func wantsRoom(r forge.RejectReason) bool {
	return r == forge.RejectResourcePressure || r == forge.RejectDiskInsufficient
}

// decide accepts an offer, or rejects it for a reason.
func (a *Agent) decide(m *forge.LeaseOffer, spec forge.JobSpec, reason forge.RejectReason) {
	a.taken[m.Context.Lease] = true
	if reason != 0 {
		a.reject(m.Context, reason)
		return
	}
	a.attempts = append(a.attempts, &attempt{ctx: m.Context, bytes: m.Spec, spec: spec, state: forge.AttemptOffered, logNext: 1})
	a.queue(intent{kind: intentAccept, context: m.Context, id: a.messageID()})
}

// reconsider looks at the held offers again, in their order: something has changed that may make room.
func (a *Agent) reconsider() {
	waiting := a.offers
	a.offers = nil
	for _, h := range waiting {
		if spec, reason := a.admit(h.offer); !wantsRoom(reason) {
			a.decide(h.offer, spec, reason)
			continue
		}
		a.offers = append(a.offers, h)
	}
}

// tickHeld rejects the offers that have waited for too long.
func (a *Agent) tickHeld(now forge.Instant) {
	for len(a.offers) > 0 && now >= a.offers[0].until {
		h := a.offers[0]
		a.offers = a.offers[1:]
		spec, reason := a.admit(h.offer)
		a.decide(h.offer, spec, reason)
	}
}

// wakeHeld is when tickHeld has something to do.
func (a *Agent) wakeHeld() forge.Instant {
	if len(a.offers) == 0 {
		return forge.Never
	}
	return a.offers[0].until // they were taken in order, and each may wait for as long
}

// leaving counts the attempts whose room is about to be free: their workload has ended, or is being killed.
func (a *Agent) leaving() int {
	n := 0
	for _, t := range a.attempts {
		if t.frozen != nil || t.stale {
			n++
		}
	}
	return n
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
