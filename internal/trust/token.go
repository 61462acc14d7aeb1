package trust

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Enrolment tokens.
const (
	// TokenLifetime is how long a token may be used when nobody says otherwise.
	TokenLifetime = 15 * time.Minute
	// MaxTokenLifetime bounds what may be said.
	MaxTokenLifetime = 24 * time.Hour

	// TokenPrefix begins every token, so that scanners for leaked secrets find it.
	TokenPrefix = "fy_enroll_"

	tokenVersion = 1
	secretBytes  = 32
	checkBytes   = 4
	tokenBytes   = 1 + len(Fingerprint{}) + secretBytes + checkBytes
	maxTokenText = 512
)

// Errors of reading a token. Their texts hold nothing of it.
var (
	ErrNoToken      = errors.New("this is no enrolment token: it begins with " + TokenPrefix)
	ErrTokenVersion = errors.New("this enrolment token is of another version: make it with a daemon of this program's release")
	ErrTokenTypo    = errors.New("this enrolment token was not copied whole: its checksum does not fit; copy it again")
)

// Token lets one agent enrol once: 32 random bytes, and the fingerprint of the CA by which the agent knows the daemon. It
// cannot be printed; Reveal is for the one place that hands it to a person.
//
//	fy_enroll_ base32( version u8 | CA fingerprint 32 | secret 32 | checksum 4 )
type Token struct {
	ca     Fingerprint
	secret forge.Secret
}

// Mint makes a token of this CA.
func (ca *CA) Mint() Token {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	return Token{ca.Fingerprint(), forge.NewSecret(secret[:])}
}

// ParseToken reads the text of a token, with spaces around it at most.
func ParseToken(text []byte) (Token, error) {
	text = bytes.TrimSpace(text)
	digits, ok := bytes.CutPrefix(text, []byte(TokenPrefix))
	if !ok || len(text) > maxTokenText {
		return Token{}, ErrNoToken
	}
	raw := make([]byte, lower.DecodedLen(len(digits)))
	defer clear(raw)
	n, err := lower.Decode(raw, digits)
	if err != nil || n != tokenBytes {
		return Token{}, ErrTokenTypo
	}
	body := raw[:tokenBytes-checkBytes]
	if sum := checksum(body); !bytes.Equal(sum[:checkBytes], raw[len(body):n]) {
		return Token{}, ErrTokenTypo
	}
	if body[0] != tokenVersion {
		return Token{}, ErrTokenVersion
	}
	ca, secret := body[1:1+len(Fingerprint{})], body[1+len(Fingerprint{}):]
	return Token{Fingerprint(ca), forge.NewSecret(secret)}, nil
}

// ReadToken reads a token from a pipe or a terminal: its first line. It may have read further.
func ReadToken(r io.Reader) (Token, error) {
	line, err := bufio.NewReaderSize(r, maxTokenText).ReadSlice('\n')
	defer clear(line)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return Token{}, fmt.Errorf("read the enrolment token: %w", err)
	}
	return ParseToken(line)
}

// ReadTokenFile reads a token from a file that only its owner can reach.
func ReadTokenFile(path string) (Token, error) {
	text, err := readSecret(path)
	if err != nil {
		return Token{}, fmt.Errorf("read the enrolment token: %w", err)
	}
	defer clear(text)
	return ParseToken(text)
}

// WriteTokenFile writes a token into a new file that only its owner can reach.
func WriteTokenFile(path string, t Token) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return fmt.Errorf("write the enrolment token: %w", err)
	}
	if _, err := f.WriteString(t.Reveal() + "\n"); err != nil {
		return fmt.Errorf("write the enrolment token: %w", errors.Join(err, f.Close(), os.Remove(path)))
	}
	return f.Close()
}

// Reveal returns the text, for the one place that hands it over.
func (t Token) Reveal() string {
	body := make([]byte, 0, tokenBytes)
	body = append(body, tokenVersion)
	body = append(body, t.ca[:]...)
	body = append(body, t.secret.Reveal()...)
	sum := checksum(body)
	return TokenPrefix + lower.EncodeToString(append(body, sum[:checkBytes]...))
}

// CA is the fingerprint of the CA that the token is of.
func (t Token) CA() Fingerprint { return t.ca }

// Hash is what the store keeps.
func (t Token) Hash() TokenHash {
	h := sha256.New()
	_, _ = h.Write([]byte("forgeyard enrolment token 1\x00")) // a hash takes everything
	_, _ = h.Write(t.ca[:])
	_, _ = h.Write(t.secret.Reveal())
	return TokenHash(h.Sum(nil))
}

// Wipe clears the secret, for all copies.
func (t Token) Wipe() { t.secret.Zero() }

func checksum(body []byte) [32]byte {
	return sha256.Sum256(append([]byte("forgeyard enrolment token checksum 1\x00"), body...))
}

// CheckTokenLifetime refuses a lifetime that is not above zero and up to MaxTokenLifetime.
func CheckTokenLifetime(d time.Duration) error {
	if d <= 0 || d > MaxTokenLifetime {
		return fmt.Errorf("an enrolment token lives between 1s and %v, not %v", MaxTokenLifetime, d)
	}
	return nil
}

const redactedToken = TokenPrefix + "[secret]"

func (Token) String() string   { return redactedToken }
func (Token) GoString() string { return redactedToken }

// Format prints the same for every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redactedToken)) }

// MarshalJSON writes the placeholder.
func (Token) MarshalJSON() ([]byte, error) { return []byte(`"` + redactedToken + `"`), nil }

// MarshalText writes the placeholder.
func (Token) MarshalText() ([]byte, error) { return []byte(redactedToken), nil }

// LogValue logs the placeholder.
func (Token) LogValue() slog.Value { return slog.StringValue(redactedToken) }

// IsToken reports whether a text looks like a token, whole or not: for commands that must refuse one on their command
// line, where every user of the machine can read it.
func IsToken(text string) bool { return strings.Contains(text, TokenPrefix) }
