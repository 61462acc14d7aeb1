package access

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Prefix begins every access token, so that scanners for leaked secrets find it.
const Prefix = "fy_token_"

// enrolmentPrefix begins the other kind of token, which people take for this one.
const enrolmentPrefix = "fy_enroll_"

const (
	textVersion = 1
	secretBytes = 32
	checkBytes  = 4
	idBytes     = len(forge.ULID{})
	bodyBytes   = 1 + idBytes + secretBytes
	maxText     = 256
)

// Errors of reading what was shown. Their texts hold nothing of it, and follow a name for it: "the token …".
var (
	ErrTypo      = errors.New("was not copied whole: its checksum does not fit; copy it again")
	ErrVersion   = errors.New("is of a later version of Forgeyard than this daemon")
	ErrEnrolment = errors.New("is an enrolment token: with it a machine becomes a runner, and nothing can be asked")
)

// The hashes of this package, each of its own kind.
const (
	secretContext = digest.Context("forgeyard.dev 2026-11 access token secret v1")
	checkContext  = digest.Context("forgeyard.dev 2026-11 access token checksum v1")
)

// lower is base32 as it can be read aloud: no capitals, no 0, 1, 8 or 9.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// key is an access token taken apart. It is not kept: of the secret only the hash goes on.
//
//	fy_token_ base32( version u8 | id 16 | secret 32 | checksum 4 )
type key struct {
	id     forge.AccessTokenID
	secret digest.Digest // hash of the secret
}

// mint makes the text of a new token.
func mint(id forge.AccessTokenID) (forge.Secret, key) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	defer clear(secret[:])
	body := append(append([]byte{textVersion}, id.ULID[:]...), secret[:]...)
	defer clear(body)
	sum := checkContext.Sum(body)
	text := lower.AppendEncode([]byte(Prefix), append(body, sum[:checkBytes]...))
	defer clear(text)
	return forge.NewSecret(text), key{id, secretContext.Sum(secret[:])}
}

// looksLike reports whether somebody meant a text to be an access token.
func looksLike(text string) bool { return strings.HasPrefix(text, Prefix) }

// parse reads a text that begins as an access token does.
func parse(text string) (key, error) {
	digits, ok := strings.CutPrefix(text, Prefix)
	if !ok || len(text) > maxText {
		return key{}, ErrTypo
	}
	raw := make([]byte, lower.DecodedLen(len(digits)))
	defer clear(raw)
	n, err := lower.Decode(raw, []byte(digits))
	if err != nil || n <= checkBytes {
		return key{}, ErrTypo
	}
	body, check := raw[:n-checkBytes], raw[n-checkBytes:n]
	sum := checkContext.Sum(body)
	switch {
	case !bytes.Equal(sum[:checkBytes], check):
		return key{}, ErrTypo
	case body[0] != textVersion:
		return key{}, ErrVersion
	case len(body) != bodyBytes:
		return key{}, ErrTypo
	}
	id := forge.MakeID[forge.AccessTokenID](forge.ULID(body[1 : 1+idBytes]))
	return key{id, secretContext.Sum(body[1+idBytes:])}, nil
}
