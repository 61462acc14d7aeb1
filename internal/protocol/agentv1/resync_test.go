package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestResync(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.ResyncV1){
		"without a runner":             func(w *agentv1.ResyncV1) { w.Peer.Runner = [16]byte{} },
		"without a session":            func(w *agentv1.ResyncV1) { w.Peer.Session = [16]byte{} },
		"without a nonce":              func(w *agentv1.ResyncV1) { w.Nonce = 0 },
		"with an item without a lease": func(w *agentv1.ResyncV1) { w.Attempts[1].Work.Lease = [16]byte{} },
	})
}

func FuzzResync(f *testing.F) { protocoltest.Fuzz[*agentv1.ResyncV1](f) }
