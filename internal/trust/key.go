package trust

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[private key]"

// Key is a private key that cannot be printed. It signs, as crypto.Signer says, and nothing else comes out of it.
type Key struct{ held func() ed25519.PrivateKey }

// NewKey makes a key.
func NewKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return keyOf(private), nil
}

func keyOf(private ed25519.PrivateKey) Key {
	return Key{func() ed25519.PrivateKey { return private }}
}

// Public implements crypto.Signer.
func (k Key) Public() crypto.PublicKey { return k.held().Public() }

// Sign implements crypto.Signer.
func (k Key) Sign(r io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return k.held().Sign(r, message, opts)
}

// ID names the public half.
func (k Key) ID() (KeyID, error) {
	spki, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		return KeyID{}, fmt.Errorf("name a key: %w", err)
	}
	return sha256.Sum256(spki), nil
}

// matches reports whether a certificate is for this key.
func (k Key) matches(cert *x509.Certificate) bool {
	public, ok := cert.PublicKey.(ed25519.PublicKey)
	return ok && public.Equal(k.Public())
}

const keyBlock = "PRIVATE KEY" // PKCS #8

func (k Key) pem() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.held())
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

var errKeyFile = errors.New("it does not hold exactly one Ed25519 key in PKCS #8 form")

// parseKey reads what pem writes. Its errors hold nothing of the text.
func parseKey(text []byte) (Key, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != keyBlock || len(rest) > 0 {
		return Key{}, errKeyFile
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return Key{}, errKeyFile
	}
	return keyOf(private), nil
}

func (Key) String() string   { return redacted }
func (Key) GoString() string { return redacted }

// Format prints the same for every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalJSON writes the placeholder.
func (Key) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText writes the placeholder.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue logs the placeholder.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }
