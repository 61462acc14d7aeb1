package forge

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// redacted is what every attempt to print a secret prints.
const redacted = "[secret]"

// MaxSecret bounds the value of a secret in bytes.
const MaxSecret = 64 << 10

// Secret is a value that cannot be printed: not by fmt with any verb, not as JSON or text, not by a log handler, not as
// part of another value. The bytes stand behind a function, because fmt looks into unexported fields, and through pointers
// there, without asking any method. Copies share the bytes.
type Secret struct{ held func() *[]byte }

// NewSecret copies value; the caller may wipe its own.
func NewSecret(value []byte) Secret {
	own := append(make([]byte, 0, len(value)), value...)
	return Secret{func() *[]byte { return &own }}
}

// Reveal returns the bytes themselves, for the one place that hands them to the workload. They are gone after Zero.
func (s Secret) Reveal() []byte {
	if s.held == nil {
		return nil
	}
	return *s.held()
}

// Zero wipes the bytes, for all copies of s.
func (s Secret) Zero() {
	if s.held != nil {
		value := s.held()
		clear(*value)
		*value = nil
	}
}

func (Secret) String() string   { return redacted }
func (Secret) GoString() string { return redacted }

// Format prints the same for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalJSON writes the placeholder.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText writes the placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue logs the placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// SecretRef names a secret without holding it. Version 0 is the newest at the moment of use, so that a job tried again
// after a rotation gets the new value.
type SecretRef struct {
	Name    string // as in codecov/token
	Version uint32
}

// String writes the name and, behind an @, the version if one is meant.
func (r SecretRef) String() string {
	if r.Version == 0 {
		return r.Name
	}
	return r.Name + "@" + strconv.FormatUint(uint64(r.Version), 10)
}

// ParseSecretRef reads what String writes.
func ParseSecretRef(s string) (SecretRef, error) {
	refName, version, versioned := strings.Cut(s, "@")
	r := SecretRef{Name: refName}
	if versioned {
		n, err := strconv.ParseUint(version, 10, 32)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != version {
			return SecretRef{}, Problems{{What: fmt.Sprintf("%q: the version behind @ is no number from 1", clip(s))}}
		}
		r.Version = uint32(n)
	}
	return r, r.Validate()
}

// Validate checks the name.
func (r SecretRef) Validate() error {
	var c checker
	c.refName(nil, r.Name)
	return c.err()
}
