package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// PhaseAckV1 acknowledges a phase and everything before.
type PhaseAckV1 struct {
	Attempt [16]byte
	Seq     uint64
}

// NewPhaseAck returns the wire form.
func NewPhaseAck(m *forge.PhaseAck) *PhaseAckV1 {
	return &PhaseAckV1{Attempt: m.Attempt.ULID, Seq: m.Seq}
}

// Tag implements protocol.Message.
func (*PhaseAckV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypePhaseAck, Schema: 1} }

// Validate implements protocol.Message.
func (w *PhaseAckV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.That(w.Seq != 0, "seq", "is missing")
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *PhaseAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.PhaseAck{Attempt: forge.MakeID[forge.AttemptID](w.Attempt), Seq: w.Seq}, nil
}
