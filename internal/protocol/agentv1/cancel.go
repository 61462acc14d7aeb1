package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CancelV1 asks for the end of a workload (09§72). Repeating it is harmless (09§73).
type CancelV1 struct {
	Attempt [16]byte
	Lease   [16]byte
	Reason  CancelReasonV1
}

// NewCancel returns the wire form.
func NewCancel(m *forge.Cancel) *CancelV1 {
	return &CancelV1{Attempt: m.Attempt.ULID, Lease: m.Lease.ULID, Reason: newCancel(m.Reason)}
}

// Tag implements protocol.Message.
func (*CancelV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeCancel, Schema: 1} }

// Validate implements protocol.Message. An unknown reason is no fault: the workload stops.
func (w *CancelV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	c.That(w.Reason != 0, "reason", "is missing")
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *CancelV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.Cancel{
		Attempt: forge.MakeID[forge.AttemptID](w.Attempt), Lease: forge.MakeID[forge.LeaseID](w.Lease),
		Reason: w.Reason.domain(),
	}, nil
}
