package agent

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Case B32: what keeps an agent from a daemon is one sentence without the words of the transport, and says what to do or
// whom it concerns.
func TestWhatKeepsAnAgentFromItsDaemonIsToldInOneSentence(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	verify := func(err error, leaf *x509.Certificate) error {
		return &tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{leaf}, Err: err}
	}
	fresh := &x509.Certificate{NotBefore: now.Add(20 * time.Minute), NotAfter: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		err      error
		why      string
		mend     string
		stranger bool
	}{
		"nobody there":       {&transport.CloseError{Reason: forge.CloseLost, Err: fmt.Errorf("timeout: no recent network activity")}, "nobody answers there", "UDP passes", false},
		"no such name":       {&transport.CloseError{Reason: forge.CloseLost, Err: &net.DNSError{Err: "no such host", Name: "x"}}, "its name cannot be resolved: no such host", "Check the name", false},
		"another token's CA": {fmt.Errorf("handshake: %w", trust.ErrPin), "the daemon does not have the CA that the enrolment token names", "", true},
		"another cluster":    {verify(x509.HostnameError{Certificate: fresh, Host: "daemon.a"}, fresh), "it is not of the cluster that this agent was enrolled in", "", true},
		"another CA":         {verify(x509.UnknownAuthorityError{}, fresh), "it is not of the cluster that this agent was enrolled in", "", true},
		"a clock behind":     {verify(x509.CertificateInvalidError{Reason: x509.Expired}, fresh), "This clock is behind the peer's by about 25 min or more", "", false},
		"an old daemon": {
			&protocol.Mismatch{Server: protocol.Ranges{{Major: 1, MaxMinor: 2}}, Agent: protocol.Ranges{{Major: 2}}},
			"no version of the protocol in common: server supports 1, agent supports 2", "Install the same release on both machines.", false,
		},
	} {
		e := &UnreachedError{"ci.example.org:7443", trust.Explain(c.err, now)}
		text := e.Error()
		if !strings.HasPrefix(text, "the daemon at ci.example.org:7443: ") || !strings.Contains(text, c.why) || strings.Contains(text, "CRYPTO") || strings.Contains(text, "x509") {
			t.Errorf("%s: %s", name, text)
		}
		if !strings.Contains(e.Mend(), c.mend) || (c.mend == "") != (e.Mend() == "") || e.Stranger() != c.stranger {
			t.Errorf("%s: mend %q, stranger %v", name, e.Mend(), e.Stranger())
		}
	}
}
