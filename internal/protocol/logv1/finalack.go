package logv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LogFinalAckV1 says that the log is sealed.
type LogFinalAckV1 struct{ Attempt [16]byte }

// NewLogFinalAck returns the wire form.
func NewLogFinalAck(m *forge.LogFinalAck) *LogFinalAckV1 {
	return &LogFinalAckV1{Attempt: m.Attempt.ULID}
}

// Tag implements protocol.Message.
func (*LogFinalAckV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeLogFinalAck, Schema: 1}
}

// Validate implements protocol.Message.
func (w *LogFinalAckV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *LogFinalAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.LogFinalAck{Attempt: forge.MakeID[forge.AttemptID](w.Attempt)}, nil
}
