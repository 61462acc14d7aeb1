package trust

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// ErrLifetime is for a certificate that could not be given any useful time.
var ErrLifetime = errors.New("the CA ends too soon")

// IssueDaemon makes a key and a certificate for a daemon: with the names and addresses under which agents may ask for it
// besides Cluster.ServerName. The key stays in memory.
func (ca *CA) IssueDaemon(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template, err := ca.template(now, DaemonLifetime, daemonURI(ca.cluster), x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	template.DNSNames = []string{ca.cluster.ServerName()}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if isHost(name) {
			template.DNSNames = append(template.DNSNames, name)
		} else {
			return nil, fmt.Errorf("make the daemon's certificate: %q is neither a host name nor an address; name hosts without a port", name)
		}
	}
	leaf, err := ca.sign(template, key.Public())
	if err != nil {
		return nil, err
	}
	// The CA goes along, for agents that know nothing but its fingerprint.
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, ca.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// IssueRunner makes a certificate for a runner, good as a client alone. A lifetime of zero is RunnerLifetime.
func (ca *CA) IssueRunner(request *Request, id forge.RunnerID, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	if lifetime == 0 {
		lifetime = RunnerLifetime
	}
	if id.IsZero() || lifetime < 0 {
		return nil, fmt.Errorf("make a runner's certificate: %w", ErrIdentity)
	}
	template, err := ca.template(now, lifetime, runnerURI(ca.cluster, id), x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	return ca.sign(template, request.public)
}

// template is what all end certificates have in common. None outlives the CA.
func (ca *CA) template(now time.Time, lifetime time.Duration, uri *url.URL, usage x509.ExtKeyUsage) (*x509.Certificate, error) {
	end := now.Add(lifetime)
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter
	}
	begin := now.Add(-Backdate)
	if begin.Before(ca.cert.NotBefore) {
		begin = ca.cert.NotBefore
	}
	if !end.After(now) || !begin.Before(end) {
		return nil, fmt.Errorf("%w: it ends %s and now is %s; check the clock of this machine",
			ErrLifetime, stamp(ca.cert.NotAfter), stamp(now))
	}
	return &x509.Certificate{
		SerialNumber: NewSerial().number(),
		NotBefore:    begin, NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true,
		URIs:                  []*url.URL{uri},
	}, nil
}

func (ca *CA) sign(template *x509.Certificate, public any) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, public, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return cert, nil
}

// isHost reports whether s looks like a host name, without a port and without a wildcard.
func isHost(s string) bool {
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	}
	return s != "" && len(s) <= 253 && !strings.ContainsFunc(s, bad) && s[0] != '.' && s[0] != '-'
}

// stamp writes a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
