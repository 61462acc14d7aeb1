// Package digest is the content identity of everything that Forgeyard stores or executes: BLAKE3-256.
//
// It hashes bytes, formats and parses the result, and derives domain-separated digests for values whose
// meaning matters (a job spec's id is not the digest of a file that happens to hold the same bytes).
// It does no I/O, starts no goroutine and keeps no state.
//
// Text form: "b3:" and 64 lower-case hexadecimal digits; a Ref appends ":" and the size in bytes.
package digest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"
)

// Size is the length of a digest in bytes.
const Size = 32

// ErrSyntax is returned for text that is not a digest or reference in canonical form.
var ErrSyntax = errors.New("digest: not in canonical form")

// Digest is a BLAKE3-256 hash. The zero value means "no digest" and is never the hash of anything we store.
type Digest [Size]byte

// Of returns the digest of data.
func Of(data []byte) Digest { return blake3.Sum256(data) }

// IsZero reports whether d is the zero value.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns the text form.
func (d Digest) String() string { return "b3:" + hex.EncodeToString(d[:]) }

// Parse reads the text form; it accepts exactly what String writes.
func Parse(s string) (Digest, error) {
	hexa, ok := strings.CutPrefix(s, "b3:")
	if !ok || len(hexa) != 2*Size || strings.ToLower(hexa) != hexa {
		return Digest{}, fmt.Errorf("%w: %q wants b3: and 64 lower-case hex digits", ErrSyntax, clip(s))
	}
	var d Digest
	if _, err := hex.Decode(d[:], []byte(hexa)); err != nil {
		return Digest{}, fmt.Errorf("%w: %q: %w", ErrSyntax, clip(s), err)
	}
	return d, nil
}

// Ref names an object by digest and size. The size is part of the identity: a peer that knows only one of
// the two names nothing.
type Ref struct {
	Digest Digest
	Bytes  uint64
}

// RefOf returns the reference of data.
func RefOf(data []byte) Ref { return Ref{Digest: Of(data), Bytes: uint64(len(data))} }

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns the text form.
func (r Ref) String() string { return r.Digest.String() + ":" + strconv.FormatUint(r.Bytes, 10) }

// ParseRef reads the text form; it accepts exactly what String writes.
func ParseRef(s string) (Ref, error) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return Ref{}, fmt.Errorf("%w: %q has no size", ErrSyntax, clip(s))
	}
	d, err := Parse(s[:at])
	if err != nil {
		return Ref{}, err
	}
	n, err := strconv.ParseUint(s[at+1:], 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != s[at+1:] {
		return Ref{}, fmt.Errorf("%w: %q has a malformed size", ErrSyntax, clip(s))
	}
	return Ref{Digest: d, Bytes: n}, nil
}

// clip keeps an error message bounded whatever the input was.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
