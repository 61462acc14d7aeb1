package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// RegistrationRejectedV1 says why a registration was not accepted (07§15). The connection is closed with the same code;
// the message is there because a close may lose its code.
type RegistrationRejectedV1 struct {
	Code protocol.CloseCode
}

// NewRegistrationRejected returns the wire form.
func NewRegistrationRejected(m *forge.RegistrationRejected) *RegistrationRejectedV1 {
	return &RegistrationRejectedV1{Code: protocol.CloseCodeOf(m.Reason)}
}

// Tag implements protocol.Message.
func (*RegistrationRejectedV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeRegistrationRejected, Schema: 1}
}

// Validate implements protocol.Message. A code that this build does not know reads as the mildest of its hundred.
func (w *RegistrationRejectedV1) Validate() error {
	var c protocol.Check
	c.That(w.Code != 0, "code", "is missing")
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *RegistrationRejectedV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.RegistrationRejected{Reason: w.Code.Reason()}, nil
}
