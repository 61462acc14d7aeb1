package protocol

import "fmt"

// SecretV1 is a value on the wire that cannot be printed. Its methods print a placeholder; and where fmt does not ask
// methods, in a field that is not exported, it follows one pointer at the most, so the bytes stand behind two: messages
// hold a *SecretV1, as an option, and that holds its one form behind another. Never hold a SecretV1 by value.
type SecretV1 struct {
	Plain *[]byte `postcard:"=1,max=65536"`
}

const redacted = "[secret]"

// NewSecret copies value.
func NewSecret(value []byte) *SecretV1 {
	own := append([]byte(nil), value...)
	return &SecretV1{Plain: &own}
}

// Reveal returns the bytes themselves, or nil.
func (s *SecretV1) Reveal() []byte {
	if s == nil || s.Plain == nil {
		return nil
	}
	return *s.Plain
}

// Wipe clears the bytes.
func (s *SecretV1) Wipe() {
	if s != nil && s.Plain != nil {
		clear(*s.Plain)
		*s.Plain = nil
	}
}

func (SecretV1) String() string   { return redacted }
func (SecretV1) GoString() string { return redacted }

// Format prints the same for every verb.
func (SecretV1) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalJSON writes the placeholder.
func (SecretV1) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText writes the placeholder.
func (SecretV1) MarshalText() ([]byte, error) { return []byte(redacted), nil }
