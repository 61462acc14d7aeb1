package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestSecretRequest(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.SecretRequestV1){
		"without a runner":       func(w *agentv1.SecretRequestV1) { w.Context.Peer.Runner = [16]byte{} },
		"without a session":      func(w *agentv1.SecretRequestV1) { w.Context.Peer.Session = [16]byte{} },
		"without a job":          func(w *agentv1.SecretRequestV1) { w.Context.Work.Job = [16]byte{} },
		"without an attempt":     func(w *agentv1.SecretRequestV1) { w.Context.Work.Attempt = [16]byte{} },
		"without a lease":        func(w *agentv1.SecretRequestV1) { w.Context.Work.Lease = [16]byte{} },
		"without a spec":         func(w *agentv1.SecretRequestV1) { w.Context.Work.Spec = [32]byte{} },
		"without a name":         func(w *agentv1.SecretRequestV1) { w.Name = "" },
		"with a path for a name": func(w *agentv1.SecretRequestV1) { w.Name = "../token" },
	})
}

func FuzzSecretRequest(f *testing.F) { protocoltest.Fuzz[*agentv1.SecretRequestV1](f) }
