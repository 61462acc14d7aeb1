package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// Standing says what else is known of a certificate that was verified: an error refuses the handshake. It is asked before
// the peer has proved the key, so it must change nothing, and soon answer: a table in memory or one read.
type Standing func(runner forge.RunnerID, serial Serial) error

// Server is what a daemon's handshakes need. All but Now is required.
type Server struct {
	Roots        Roots
	Certificates *Source
	Standing     Standing         // is the runner revoked, or the certificate superseded
	Now          func() time.Time // wall clock; time.Now where it is nil
}

var errALPN = errors.New("the peer does not name exactly one protocol that is spoken here")

// ServerTLS returns the settings of a listener for agents and for enrolment. The ALPN name picks: agents must show a
// certificate of the cluster, whoever enrols shows none. TLS 1.3 alone, and no session is ever resumed: a resumed one would
// not be looked at again (cases T33, S04).
func ServerTLS(s Server) *tls.Config {
	agents := s.base(protocol.ALPNAgent)
	agents.ClientAuth = tls.RequireAndVerifyClientCert
	agents.ClientCAs = s.Roots.pool()
	agents.VerifyConnection = s.verifyAgent
	enroll := s.base(protocol.ALPNEnroll)
	config := s.base(protocol.ALPNAgent, protocol.ALPNEnroll)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		switch {
		case slices.Equal(hello.SupportedProtos, agents.NextProtos):
			return agents, nil
		case slices.Equal(hello.SupportedProtos, enroll.NextProtos):
			return enroll, nil
		default:
			return nil, errALPN
		}
	}
	// Nobody gets past GetConfigForClient; if somebody did, this road is closed too.
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.ClientCAs = agents.ClientCAs
	config.VerifyConnection = s.verifyAgent
	return config
}

func (s Server) base(names ...protocol.ALPN) *tls.Config {
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		GetCertificate:         s.Certificates.forServer,
		Time:                   s.Now,
	}
	for _, name := range names {
		config.NextProtos = append(config.NextProtos, string(name))
	}
	return config
}

// verifyAgent looks at what crypto/tls does not: whose certificate it is, and whether that is still so.
func (s Server) verifyAgent(state tls.ConnectionState) error {
	if state.NegotiatedProtocol != string(protocol.ALPNAgent) || state.DidResume || len(state.VerifiedChains) == 0 {
		return errALPN
	}
	leaf := state.PeerCertificates[0]
	runner, err := RunnerOf(leaf, s.Roots.cluster)
	if err != nil {
		return err
	}
	serial, ok := SerialOf(leaf)
	if !ok {
		return fmt.Errorf("%w: its serial number is not one of this CA", ErrIdentity)
	}
	if slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
		return fmt.Errorf("%w: a runner is no server", ErrIdentity)
	}
	if err := s.Standing(runner, serial); err != nil {
		return fmt.Errorf("runner %v: %w", runner, err)
	}
	return nil
}
