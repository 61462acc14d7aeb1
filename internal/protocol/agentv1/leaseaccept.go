package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LeaseAcceptV1 takes an offer (09§68). Each transmission has a nonce of its own; nothing starts before the answer to it
// grants.
type LeaseAcceptV1 struct {
	Context protocol.ContextV1
	Nonce   uint64
}

// NewLeaseAccept returns the wire form.
func NewLeaseAccept(m *forge.LeaseAccept) *LeaseAcceptV1 {
	return &LeaseAcceptV1{Context: protocol.NewContext(m.Context), Nonce: uint64(m.Nonce)}
}

// Tag implements protocol.Message.
func (*LeaseAcceptV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeLeaseAccept, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *LeaseAcceptV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message.
func (w *LeaseAcceptV1) Validate() error {
	var c protocol.Check
	c.In("context", w.Context.Validate())
	c.That(w.Nonce != 0, "nonce", "is missing")
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *LeaseAcceptV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.LeaseAccept{Context: w.Context.Domain(), Nonce: forge.Nonce(w.Nonce)}, nil
}
