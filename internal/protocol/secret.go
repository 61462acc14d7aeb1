package protocol

import "fmt"

// SecretV1 is a value on the wire that cannot be printed. A wire struct holds it behind a pointer, as an option: fmt
// asks no methods of a field that is not exported, but it does not follow its pointers either.
type SecretV1 []byte

const redacted = "[secret]"

// NewSecret copies value.
func NewSecret(value []byte) *SecretV1 {
	s := SecretV1(append([]byte(nil), value...))
	return &s
}

// Reveal returns the bytes themselves, or nil.
func (s *SecretV1) Reveal() []byte {
	if s == nil {
		return nil
	}
	return *s
}

// Wipe clears the bytes.
func (s *SecretV1) Wipe() {
	if s != nil {
		clear(*s)
		*s = nil
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
