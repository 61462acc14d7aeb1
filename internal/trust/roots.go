package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// MaxRoots bounds the CAs that an agent trusts at once.
const MaxRoots = 4

// ErrRoots is the kind of error for roots that cannot be trusted.
var ErrRoots = errors.New("the CA certificates are not valid")

// Roots is what an agent trusts, and a daemon: the CAs of one cluster. It does not change.
type Roots struct {
	cluster Cluster
	certs   []*x509.Certificate
}

// NewRoots takes 1 to MaxRoots certificates, DER, all of one cluster and each signed by itself.
func NewRoots(ders [][]byte) (Roots, error) {
	if len(ders) < 1 || len(ders) > MaxRoots {
		return Roots{}, fmt.Errorf("%w: there are %d, not 1 to %d", ErrRoots, len(ders), MaxRoots)
	}
	var r Roots
	for i, der := range ders {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return Roots{}, fmt.Errorf("%w: one cannot be read", ErrRoots)
		}
		cluster, err := clusterOf(cert)
		if err != nil {
			return Roots{}, fmt.Errorf("%w: %w", ErrRoots, err)
		}
		if i > 0 && cluster != r.cluster || cert.CheckSignatureFrom(cert) != nil {
			return Roots{}, fmt.Errorf("%w: they are not all CAs of one cluster", ErrRoots)
		}
		r.cluster, r.certs = cluster, append(r.certs, cert)
	}
	return r, nil
}

// Cluster is whose CAs they are.
func (r Roots) Cluster() Cluster { return r.cluster }

// DER returns the certificates as they travel.
func (r Roots) DER() [][]byte {
	ders := make([][]byte, len(r.certs))
	for i, cert := range r.certs {
		ders[i] = cert.Raw
	}
	return ders
}

// Has reports whether one of the CAs has a fingerprint.
func (r Roots) Has(f Fingerprint) bool {
	for _, cert := range r.certs {
		if FingerprintOf(cert) == f {
			return true
		}
	}
	return false
}

func (r Roots) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, cert := range r.certs {
		pool.AddCert(cert)
	}
	return pool
}

// verify checks a chain, the end certificate first, at a moment, for one usage, and for a host's name unless that is
// empty.
func (r Roots) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, name string, at time.Time) error {
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: r.pool(), Intermediates: between, CurrentTime: at, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}
