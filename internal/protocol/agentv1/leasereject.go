package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LeaseRejectV1 declines an offer, or gives back a lease of which nothing was started (09§69).
type LeaseRejectV1 struct {
	Context protocol.ContextV1
	Reason  RejectReasonV1
}

// NewLeaseReject returns the wire form. A reason that has no number is said as Other.
func NewLeaseReject(m *forge.LeaseReject) *LeaseRejectV1 {
	reason := max(rejectReasons.Wire(m.Reason), rejectReasons.Wire(forge.RejectOther))
	return &LeaseRejectV1{Context: protocol.NewContext(m.Context), Reason: RejectReasonV1(reason)}
}

// Tag implements protocol.Message.
func (*LeaseRejectV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeLeaseReject, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *LeaseRejectV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message. An unknown reason is no fault.
func (w *LeaseRejectV1) Validate() error {
	var c protocol.Check
	c.In("context", w.Context.Validate())
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *LeaseRejectV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.LeaseReject{Context: w.Context.Domain(), Reason: w.Reason.domain()}, nil
}
