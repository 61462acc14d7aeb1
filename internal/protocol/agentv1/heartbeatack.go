package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// HeartbeatAckV1 has a verdict for each item of the Heartbeat, in its order (09§71).
type HeartbeatAckV1 struct {
	Nonce    uint64           // of the Heartbeat
	Verdicts []LeaseVerdictV1 `postcard:"max=256"`
}

// NewHeartbeatAck returns the wire form.
func NewHeartbeatAck(m *forge.HeartbeatAck) *HeartbeatAckV1 {
	return &HeartbeatAckV1{Nonce: uint64(m.Nonce), Verdicts: newVerdicts(m.Verdicts)}
}

// Tag implements protocol.Message.
func (*HeartbeatAckV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeHeartbeatAck, Schema: 1}
}

// Validate implements protocol.Message.
func (w *HeartbeatAckV1) Validate() error { return checkVerdicts(w.Nonce, w.Verdicts) }

// Domain implements protocol.Domain.
func (w *HeartbeatAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.HeartbeatAck{Nonce: forge.Nonce(w.Nonce), Verdicts: domainVerdicts(w.Verdicts)}, nil
}
