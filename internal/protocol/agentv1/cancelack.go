package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CancelAckV1 says that a Cancel arrived, whatever became of it.
type CancelAckV1 struct {
	Attempt [16]byte
	Lease   [16]byte
}

// NewCancelAck returns the wire form.
func NewCancelAck(m *forge.CancelAck) *CancelAckV1 {
	return &CancelAckV1{Attempt: m.Attempt.ULID, Lease: m.Lease.ULID}
}

// Tag implements protocol.Message.
func (*CancelAckV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeCancelAck, Schema: 1} }

// Validate implements protocol.Message.
func (w *CancelAckV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *CancelAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.CancelAck{
		Attempt: forge.MakeID[forge.AttemptID](w.Attempt), Lease: forge.MakeID[forge.LeaseID](w.Lease),
	}, nil
}
