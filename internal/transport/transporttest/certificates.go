package transporttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CA signs certificates for tests. It may be used from several goroutines at once.
type CA struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewCA makes a CA.
func NewCA() *CA {
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(4e9, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	return &CA{key: key, cert: sign(template, template, key, key)}
}

// Issue signs a certificate for a name, good on loopback and for the host names of tests, until a moment.
func (ca *CA) Issue(name string, until time.Time) tls.Certificate {
	key := newKey()
	cert := sign(&x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", "daemon.test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 0, 0, 1)},
		NotBefore:   time.Unix(0, 0), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, ca.cert, ca.key, key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// Good is a moment that no test reaches.
func Good() time.Time { return time.Unix(3e9, 0) }

// Pool returns the CA as roots.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Server returns the settings of a daemon that asks for client certificates of this CA.
func (ca *CA) Server(names ...protocol.ALPN) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{ca.Issue("daemon", Good())}, ClientCAs: ca.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: protos(names), MinVersion: tls.VersionTLS13,
	}
}

// Client returns the settings of an agent with a certificate.
func (ca *CA) Client(own tls.Certificate, names ...protocol.ALPN) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: ca.Pool(), NextProtos: protos(names), MinVersion: tls.VersionTLS13,
	}
}

func protos(names []protocol.ALPN) []string {
	texts := make([]string, 0, len(names))
	for _, n := range names {
		texts = append(texts, string(n))
	}
	return texts
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("make a key: %v", err)) // crypto/rand does not fail
	}
	return key
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(fmt.Sprintf("draw a serial number: %v", err)) // crypto/rand does not fail
	}
	return n
}

func sign(template, parent *x509.Certificate, by, of *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &of.PublicKey, by)
	if err != nil {
		panic(fmt.Sprintf("sign a certificate of a test: %v", err))
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(fmt.Sprintf("parse a certificate of a test: %v", err))
	}
	return cert
}
