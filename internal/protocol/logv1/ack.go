package logv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LogAckV1 says that every frame before Next is durable where every daemon reads.
type LogAckV1 struct {
	Attempt [16]byte
	Next    uint64 // from 1
}

// NewLogAck returns the wire form.
func NewLogAck(m *forge.LogAck) *LogAckV1 {
	return &LogAckV1{Attempt: m.Attempt.ULID, Next: uint64(m.Next)}
}

// Tag implements protocol.Message.
func (*LogAckV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeLogAck, Schema: 1} }

// Validate implements protocol.Message.
func (w *LogAckV1) Validate() error { return checkNext(w.Attempt, w.Next) }

// Domain implements protocol.Domain.
func (w *LogAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.LogAck{Attempt: forge.MakeID[forge.AttemptID](w.Attempt), Next: forge.LogSeq(w.Next)}, nil
}

func checkNext(attempt [16]byte, next uint64) error {
	var c protocol.Check
	c.ID("attempt", attempt)
	c.That(next != 0, "next", "is missing")
	return c.Err()
}
