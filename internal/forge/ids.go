package forge

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"
)

// ErrID is returned for text that is not an identity in canonical form.
var ErrID = errors.New("forge: malformed id")

// ULID is the 128-bit value under every identity. Its text form is 26 upper-case Crockford base32 digits.
// The zero value means "none".
type ULID [16]byte

// IsZero reports whether u is the zero value.
func (u ULID) IsZero() bool { return u == ULID{} }

// String returns the text form.
func (u ULID) String() string { return ulid.ULID(u).String() }

// Compare orders ids by their bits, which is also the order of their text and, within a millisecond, of their making.
func (u ULID) Compare(other ULID) int { return bytes.Compare(u[:], other[:]) }

// Raw returns the bits.
func (u ULID) Raw() ULID { return u }

// One Go type for each identity (07§6, 07§7, 09§12), so that the compiler refuses to mix them up.
type (
	// RunnerID is the stable, provisioned identity of a runner. It is bound to a certificate, never to a host name.
	RunnerID struct{ ULID }
	// AgentSessionID is one agent process. A new process is a new session and inherits nothing (07§8).
	AgentSessionID struct{ ULID }
	// TransportSessionID is one network connection (09§12).
	TransportSessionID struct{ ULID }
	// RunID is one run of a pipeline.
	RunID struct{ ULID }
	// JobID is one job of a run.
	JobID struct{ ULID }
	// AttemptID is one try at a job.
	AttemptID struct{ ULID }
	// LeaseID is one grant of an attempt to one runner's session.
	LeaseID struct{ ULID }
	// MessageID names a message. It is stable across retries of the same message (09§31).
	MessageID struct{ ULID }
	// StateFolderID names an agent's state folder. A copy of the folder has another one.
	StateFolderID struct{ ULID }
	// BootID names one boot of a host.
	BootID struct{ ULID }
	// AccessTokenID names a token that is shown to the HTTP interface. It says nothing of the token's secret.
	AccessTokenID struct{ ULID }
)

// ParseID reads the text form of an id of type T. It accepts exactly what String writes.
func ParseID[T ~struct{ ULID }](s string) (T, error) {
	u, err := ulid.ParseStrict(s)
	if err != nil || u.String() != s {
		return T{}, fmt.Errorf("%w: %q is not 26 upper-case base32 digits", ErrID, clip(s))
	}
	return T{ULID(u)}, nil
}

// MakeID wraps bits as an id of type T.
func MakeID[T ~struct{ ULID }](u ULID) T { return T{u} }

// clip keeps an error message bounded whatever the input was.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
