package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// DrainV1 asks an agent to take no new lease (09§97). The commands to an agent are these few types and no other: there
// is none with a text in it (09§98).
type DrainV1 struct {
	CancelActive bool // stop what runs as well
}

// NewDrain returns the wire form.
func NewDrain(m *forge.Drain) *DrainV1 { return &DrainV1{CancelActive: m.CancelActive} }

// Tag implements protocol.Message.
func (*DrainV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeDrain, Schema: 1} }

// Validate implements protocol.Message.
func (*DrainV1) Validate() error { return nil }

// Domain implements protocol.Domain.
func (w *DrainV1) Domain() (forge.Message, error) {
	return &forge.Drain{CancelActive: w.CancelActive}, nil
}
