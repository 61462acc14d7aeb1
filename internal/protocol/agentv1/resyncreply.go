package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// ResyncReplyV1 has a verdict for each item of the Resync, in its order.
type ResyncReplyV1 struct {
	Nonce    uint64           // of the Resync
	Verdicts []LeaseVerdictV1 `postcard:"max=256"`
}

// NewResyncReply returns the wire form.
func NewResyncReply(m *forge.ResyncReply) *ResyncReplyV1 {
	return &ResyncReplyV1{Nonce: uint64(m.Nonce), Verdicts: newVerdicts(m.Verdicts)}
}

// Tag implements protocol.Message.
func (*ResyncReplyV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeResyncReply, Schema: 1}
}

// Validate implements protocol.Message.
func (w *ResyncReplyV1) Validate() error { return checkVerdicts(w.Nonce, w.Verdicts) }

// Domain implements protocol.Domain.
func (w *ResyncReplyV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.ResyncReply{Nonce: forge.Nonce(w.Nonce), Verdicts: domainVerdicts(w.Verdicts)}, nil
}
