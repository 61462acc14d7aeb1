package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRenewCertificate(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.RenewCertificateV1){
		"without a runner":  func(w *agentv1.RenewCertificateV1) { w.Peer.Runner = [16]byte{} },
		"without a session": func(w *agentv1.RenewCertificateV1) { w.Peer.Session = [16]byte{} },
		"without a request": func(w *agentv1.RenewCertificateV1) { w.Request = nil },
	})
}

func FuzzRenewCertificate(f *testing.F) { protocoltest.Fuzz[*agentv1.RenewCertificateV1](f) }
