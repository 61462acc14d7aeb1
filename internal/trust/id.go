package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"math/big"
)

// KeyID names a public key: SHA-256 over its SubjectPublicKeyInfo, DER. Anybody can compute it with openssl.
type KeyID [32]byte

// KeyIDOf returns the name of the key that a certificate is for.
func KeyIDOf(cert *x509.Certificate) KeyID { return sha256.Sum256(cert.RawSubjectPublicKeyInfo) }

func (k KeyID) String() string { return hex.EncodeToString(k[:]) }

// Serial is the serial number of a certificate of this CA: 128 bits, random, so that nobody can guess one or make two.
type Serial [16]byte

// NewSerial draws one. Its first bits are 01, so that it is positive and always of the same length.
func NewSerial() Serial {
	var s Serial
	_, _ = rand.Read(s[:]) // never fails: it ends the process instead
	s[0] = s[0]&0x3f | 0x40
	return s
}

// SerialOf returns the serial number of a certificate, or false for one that this CA cannot have given.
func SerialOf(cert *x509.Certificate) (Serial, bool) {
	var s Serial
	if cert.SerialNumber == nil || cert.SerialNumber.Sign() <= 0 || cert.SerialNumber.BitLen() != 8*len(s)-1 {
		return Serial{}, false
	}
	cert.SerialNumber.FillBytes(s[:])
	return s, true
}

func (s Serial) String() string { return hex.EncodeToString(s[:]) }

func (s Serial) number() *big.Int { return new(big.Int).SetBytes(s[:]) }

// TokenHash is what the store keeps of an enrolment token. Nobody can make the token from it.
type TokenHash [32]byte

// Equal compares without telling by its time how much is alike.
func (h TokenHash) Equal(other TokenHash) bool {
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

func (h TokenHash) String() string { return hex.EncodeToString(h[:]) }
