package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Fingerprint is the SHA-256 of a certificate, DER: the one that other programs show too, so that people can compare.
type Fingerprint [32]byte

const fingerprintPrefix = "sha256:"

// ErrFingerprint is the kind of error for text that is no fingerprint.
var ErrFingerprint = errors.New("no fingerprint")

// FingerprintOf returns the fingerprint of a certificate.
func FingerprintOf(cert *x509.Certificate) Fingerprint { return sha256.Sum256(cert.Raw) }

// String writes sha256: and 64 lower-case hex digits.
func (f Fingerprint) String() string { return fingerprintPrefix + hex.EncodeToString(f[:]) }

// ParseFingerprint reads what String writes. Capitals, and colons between the bytes as openssl writes them, do no harm.
func ParseFingerprint(s string) (Fingerprint, error) {
	digits := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), fingerprintPrefix)
	raw, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if err != nil || len(raw) != len(Fingerprint{}) {
		return Fingerprint{}, fmt.Errorf("%w: it is %s and 64 hex digits", ErrFingerprint, fingerprintPrefix)
	}
	return Fingerprint(raw), nil
}
