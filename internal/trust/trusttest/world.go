package trusttest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// World is a cluster with a CA, and a hand on its key.
type World struct {
	CA  *trust.CA
	Dir string // of the CA
	Now time.Time
	t   testing.TB
	key ed25519.PrivateKey
}

// Name is the cluster's of every world.
const Name trust.Cluster = "test-yard"

// NewWorld makes a cluster of a name at a time.
func NewWorld(t testing.TB, cluster trust.Cluster, now time.Time) *World {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trust")
	ca, _, err := trust.OpenCA(dir, func() trust.Cluster { return cluster }, now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return &World{ca, dir, now, t, key.(ed25519.PrivateKey)}
}

// Runner returns a runner with a certificate that is right.
func (w *World) Runner(id forge.RunnerID) *trust.Identity {
	w.t.Helper()
	key := NewKey(w.t)
	cert, err := w.CA.IssueRunner(NewRequest(w.t, key), id, w.Now, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	identity, err := trust.NewIdentity(key, [][]byte{cert.Raw}, w.CA.Roots().DER())
	if err != nil {
		w.t.Fatal(err)
	}
	return identity
}

// Daemon returns the certificate of a daemon that is right, for localhost and 127.0.0.1 besides.
func (w *World) Daemon() *tls.Certificate {
	w.t.Helper()
	cert, err := w.CA.IssueDaemon([]string{"localhost", "127.0.0.1"}, w.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	return cert
}

// NewKey makes a key.
func NewKey(t testing.TB) trust.Key {
	t.Helper()
	key, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// NewRequest makes a request and proves it.
func NewRequest(t testing.TB, key trust.Key) *trust.Request {
	t.Helper()
	der, err := trust.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// sign makes a certificate of any template, with the template's defaults for a runner or daemon, signed by issuer.
func (w *World) sign(template *x509.Certificate, issuer *x509.Certificate, signer crypto.Signer, key crypto.Signer) *tls.Certificate {
	w.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		w.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		w.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, w.CA.Certificate().Raw}, PrivateKey: key, Leaf: leaf}
}

func (w *World) template(uri string, usage x509.ExtKeyUsage) *x509.Certificate {
	serial := trust.NewSerial()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		NotBefore:    w.Now.Add(-trust.Backdate), NotAfter: w.Now.Add(trust.RunnerLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, BasicConstraintsValid: true,
		URIs: URIs(uri),
	}
}

// URIs parses addresses that a certificate may name.
func URIs(texts ...string) []*url.URL {
	uris := make([]*url.URL, len(texts))
	for i, text := range texts {
		uri, err := url.Parse(text)
		if err != nil {
			panic(err) // of a test's own text
		}
		uris[i] = uri
	}
	return uris
}
