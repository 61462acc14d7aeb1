package agentv1

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// SecretMaterialV1 answers SecretRequest (09§151). Its value prints as a placeholder, and whoever has used it wipes it.
type SecretMaterialV1 struct {
	Attempt [16]byte
	Lease   [16]byte
	Name    string             `postcard:"max=128"`
	Version uint32             // that was meant by 0
	Value   *protocol.SecretV1 // absent: there is none, or not for this attempt
	Expires uint64             // nanoseconds from now for which the value may be kept in memory
}

// NewSecretMaterial returns the wire form with a copy of the value.
func NewSecretMaterial(c forge.AttemptContext, ref forge.SecretRef, value forge.Secret, expires time.Duration) *SecretMaterialV1 {
	return &SecretMaterialV1{
		Attempt: c.Attempt.ULID, Lease: c.Lease.ULID, Name: ref.Name, Version: ref.Version,
		Value: protocol.NewSecret(value.Reveal()), Expires: protocol.Nanos(expires),
	}
}

// Tag implements protocol.Message.
func (*SecretMaterialV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeSecretMaterial, Schema: 1}
}

// Validate implements protocol.Message.
func (w *SecretMaterialV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	c.In("name", w.Ref().Validate())
	c.Count("value", len(w.Value.Reveal()), 0, forge.MaxSecret)
	c.Duration("expires", w.Expires, 0)
	return c.Err()
}

// Ref returns the name of the secret.
func (w *SecretMaterialV1) Ref() forge.SecretRef {
	return forge.SecretRef{Name: w.Name, Version: w.Version}
}

// Take moves the value out, wiping it here, and reports whether there was one.
func (w *SecretMaterialV1) Take() (forge.Secret, bool) {
	if w.Value == nil {
		return forge.Secret{}, false
	}
	s := forge.NewSecret(w.Value.Reveal())
	w.Value.Wipe()
	return s, true
}
