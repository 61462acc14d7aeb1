package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LeaseAcceptAckV1 answers LeaseAccept, after the commit.
type LeaseAcceptAckV1 struct {
	Lease  [16]byte
	Nonce  uint64 // of the transmission that this answers
	Answer AcceptAnswerV1
}

// AcceptAnswerV1 either grants or refuses.
type AcceptAnswerV1 struct {
	Granted *GrantV1   `postcard:"=1"`
	Refused *RefusalV1 `postcard:"=2"`
}

// GrantV1 grants time, counted from before the request went out.
type GrantV1 struct {
	HardTTL uint64         // nanoseconds
	Cancel  CancelReasonV1 // if there is one, nothing may start
}

// RefusalV1 says why not.
type RefusalV1 struct{ Reason RefuseReasonV1 }

// NewLeaseAcceptAck returns the wire form. A refusal without a reason is said as Unknown.
func NewLeaseAcceptAck(m *forge.LeaseAcceptAck) *LeaseAcceptAckV1 {
	w := &LeaseAcceptAckV1{Lease: m.Lease.ULID, Nonce: uint64(m.Nonce)}
	if m.Granted {
		w.Answer.Granted = &GrantV1{HardTTL: protocol.Nanos(m.HardTTL), Cancel: newCancel(m.Cancel)}
		return w
	}
	reason := max(refuseReasons.Wire(m.Refused), refuseReasons.Wire(forge.RefusedUnknown))
	w.Answer.Refused = &RefusalV1{Reason: RefuseReasonV1(reason)}
	return w
}

// Tag implements protocol.Message.
func (*LeaseAcceptAckV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeLeaseAcceptAck, Schema: 1}
}

// Validate implements protocol.Message.
func (w *LeaseAcceptAckV1) Validate() error {
	var c protocol.Check
	c.ID("lease", w.Lease)
	c.That(w.Nonce != 0, "nonce", "is missing")
	c.That(w.Answer.Granted != nil || w.Answer.Refused != nil, "answer", "is missing")
	if w.Answer.Granted != nil {
		c.Duration("hard_ttl", w.Answer.Granted.HardTTL, 1)
	}
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *LeaseAcceptAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.LeaseAcceptAck{Lease: forge.MakeID[forge.LeaseID](w.Lease), Nonce: forge.Nonce(w.Nonce)}
	if grant := w.Answer.Granted; grant != nil {
		m.Granted, m.HardTTL, m.Cancel = true, protocol.Duration(grant.HardTTL), grant.Cancel.domain()
	} else {
		m.Refused = w.Answer.Refused.Reason.domain()
	}
	return m, nil
}
