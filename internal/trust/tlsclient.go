package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol"
)

// EnrollTolerance is how far a clock may be off while a runner enrols. Afterwards there is none (S29).
const EnrollTolerance = 5 * time.Minute

// ErrPin is for a daemon whose CA is not the one that was named beforehand.
var ErrPin = errors.New("the daemon does not have the CA that the enrolment token names: " +
	"it is another daemon, or somebody is in between; check the address, and the fingerprint on the daemon")

// Client is what an agent's handshakes need.
type Client struct {
	Roots        Roots
	ServerName   string           // that the daemon's certificate must have; Roots.Cluster().ServerName() where it is empty
	Certificates *Source          // what to show; nil on the road that asks for none
	Now          func() time.Time // wall clock; time.Now where it is nil
}

// AgentTLS returns the settings with which an agent dials. The daemon must show a certificate of one of the roots, for the
// server's name, with the identity of a daemon of the cluster. CAs of the operating system count for nothing.
func AgentTLS(c Client) *tls.Config {
	config := c.base(protocol.ALPNAgent)
	config.GetClientCertificate = c.Certificates.forClient
	return config
}

// RecoverTLS returns the settings of an enrolled agent on the enrolment's road, where it shows no certificate.
func RecoverTLS(c Client) *tls.Config { return c.base(protocol.ALPNEnroll) }

func (c Client) base(name protocol.ALPN) *tls.Config {
	serverName := c.ServerName
	if serverName == "" {
		serverName = c.Roots.cluster.ServerName()
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		RootCAs:                c.Roots.pool(),
		ServerName:             serverName,
		NextProtos:             []string{string(name)},
		Time:                   c.Now,
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol != string(name) || len(state.VerifiedChains) == 0 {
				return errALPN
			}
			return CheckDaemon(state.PeerCertificates[0], c.Roots.cluster)
		},
	}
}

// EnrollTLS returns the settings of an agent that knows a daemon by the fingerprint of its CA alone, as in a token. The
// daemon shows that CA along with its certificate. serverName may be empty. now may be nil.
func EnrollTLS(ca Fingerprint, serverName string, now func() time.Time) *tls.Config {
	if now == nil {
		now = time.Now
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		ServerName:             serverName,
		NextProtos:             []string{string(protocol.ALPNEnroll)},
		Time:                   now,
		// crypto/tls knows only CAs that are there beforehand. All that it would check is checked by verifyPinned: chain,
		// validity, usage, name, and the identity besides. Nothing else in this module may set this; a test looks.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol != string(protocol.ALPNEnroll) {
				return errALPN
			}
			return verifyPinned(state.PeerCertificates, ca, serverName, now())
		},
	}
}

func verifyPinned(chain []*x509.Certificate, ca Fingerprint, serverName string, now time.Time) error {
	roots, err := pinned(chain, ca)
	if err != nil {
		return err
	}
	leaf := chain[0]
	if err := CheckDaemon(leaf, roots.cluster); err != nil {
		return err
	}
	if serverName == "" {
		serverName = roots.cluster.ServerName()
	}
	at := tolerate(leaf, now, EnrollTolerance)
	if err := roots.verify(chain[:1], x509.ExtKeyUsageServerAuth, serverName, at); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: chain[:1], Err: err}
	}
	return nil
}

// pinned finds the CA with a fingerprint among what a daemon has shown.
func pinned(chain []*x509.Certificate, ca Fingerprint) (Roots, error) {
	for _, cert := range chain {
		if FingerprintOf(cert) != ca {
			continue
		}
		roots, err := NewRoots([][]byte{cert.Raw})
		if err != nil {
			return Roots{}, fmt.Errorf("%w: %w", ErrPin, err)
		}
		return roots, nil
	}
	return Roots{}, ErrPin
}

// tolerate moves a moment into a certificate's time if it is outside by no more than d.
func tolerate(cert *x509.Certificate, now time.Time, d time.Duration) time.Time {
	if before := cert.NotBefore.Sub(now); before > 0 && before <= d {
		return cert.NotBefore
	}
	if after := now.Sub(cert.NotAfter); after > 0 && after <= d {
		return cert.NotAfter
	}
	return now
}
