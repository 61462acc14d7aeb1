package agentv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// Bounds of certificates.
const (
	MaxChain     = 3
	MaxRoots     = 4
	MaxCertBytes = 2 << 10
)

// CertificateV1 is a certificate with what is needed to use it and to trust daemons.
type CertificateV1 struct {
	Chain    [][]byte `postcard:"max=3,elem=2048"` // DER, the runner's own first
	Roots    [][]byte `postcard:"max=4,elem=2048"` // DER, of daemons
	NotAfter int64    // milliseconds since 1970
}

// Validate checks that there is a chain and a root.
func (w *CertificateV1) Validate() error {
	var c protocol.Check
	c.Count("chain", len(w.Chain), 1, MaxChain)
	c.Count("roots", len(w.Roots), 1, MaxRoots)
	for _, der := range w.Chain {
		c.Count("chain", len(der), 1, MaxCertBytes)
	}
	for _, der := range w.Roots {
		c.Count("roots", len(der), 1, MaxCertBytes)
	}
	c.Wall("not_after", w.NotAfter)
	return c.Err()
}

// EnrollAcceptedV1 answers Enroll: who the runner is, and its certificate.
type EnrollAcceptedV1 struct {
	Runner      [16]byte
	Certificate CertificateV1
}

// Tag implements protocol.Message.
func (*EnrollAcceptedV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeEnrollAccepted, Schema: 1}
}

// Validate implements protocol.Message.
func (w *EnrollAcceptedV1) Validate() error {
	var c protocol.Check
	c.ID("runner", w.Runner)
	c.In("certificate", w.Certificate.Validate())
	return c.Err()
}
