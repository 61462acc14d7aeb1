package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// SecretHeaderV1 is the head of a secret stream: the attempt whose secrets it asks for (09§150).
type SecretHeaderV1 struct {
	Attempt [16]byte
	Lease   [16]byte
}

// Validate implements protocol.StreamHead.
func (w *SecretHeaderV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	return c.Err()
}

// SecretRequestV1 asks for one secret that the spec of an attempt names. It travels on a secret stream only.
type SecretRequestV1 struct {
	Context protocol.ContextV1
	Name    string `postcard:"max=128"`
	Version uint32 // 0 is the newest
}

// NewSecretRequest returns the wire form.
func NewSecretRequest(c forge.AttemptContext, ref forge.SecretRef) *SecretRequestV1 {
	return &SecretRequestV1{Context: protocol.NewContext(c), Name: ref.Name, Version: ref.Version}
}

// Tag implements protocol.Message.
func (*SecretRequestV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeSecretRequest, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *SecretRequestV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message.
func (w *SecretRequestV1) Validate() error {
	var c protocol.Check
	c.In("context", w.Context.Validate())
	c.In("name", w.Ref().Validate())
	return c.Err()
}

// Ref returns the name of the secret.
func (w *SecretRequestV1) Ref() forge.SecretRef {
	return forge.SecretRef{Name: w.Name, Version: w.Version}
}
