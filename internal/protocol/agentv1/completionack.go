package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CompletionAckV1 answers a completion (09§76). It is the only thing that ends the sending of one.
type CompletionAckV1 struct {
	Attempt [16]byte
	Message [16]byte // of the completion
	Answer  AnswerV1
}

// NewCompletionAck returns the wire form.
func NewCompletionAck(m *forge.CompletionAck) *CompletionAckV1 {
	return &CompletionAckV1{Attempt: m.Attempt.ULID, Message: m.Message.ULID, Answer: AnswerV1(answers.Wire(m.Answer))}
}

// Tag implements protocol.Message.
func (*CompletionAckV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeCompletionAck, Schema: 1}
}

// Validate implements protocol.Message.
func (w *CompletionAckV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("message", w.Message)
	c.That(answers.Known(uint8(w.Answer)), "answer", "is not known")
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *CompletionAckV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.CompletionAck{
		Attempt: forge.MakeID[forge.AttemptID](w.Attempt), Message: forge.MakeID[forge.MessageID](w.Message),
		Answer: answers.Or(uint8(w.Answer), 0),
	}, nil
}
