package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
)

// MaxRequest bounds a certificate request.
const MaxRequest = 8 << 10

// ErrRequest is the kind of error for a certificate request that is not taken.
var ErrRequest = errors.New("the certificate request is not valid")

// Request is a certificate request whose signature proved its key. Nothing else of it counts: who somebody is comes from
// a token, a table or a connection, never from what they say of themselves.
type Request struct {
	public ed25519.PublicKey
	id     KeyID
}

// NewRequest makes a request for a key, PKCS #10 in DER.
func NewRequest(key Key) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return der, nil
}

// ParseRequest reads a request and checks that it was signed with the key that it is for. The error is of the kind
// ErrRequest.
func ParseRequest(der []byte) (*Request, error) {
	if len(der) > MaxRequest {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrRequest, MaxRequest)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("%w: it is not PKCS #10", ErrRequest)
	}
	public, ok := csr.PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: its key is not Ed25519", ErrRequest)
	}
	if csr.CheckSignature() != nil {
		return nil, fmt.Errorf("%w: its signature does not prove its key", ErrRequest)
	}
	return &Request{public, sha256.Sum256(csr.RawSubjectPublicKeyInfo)}, nil
}

// Key names the key that was proved.
func (r *Request) Key() KeyID { return r.id }
