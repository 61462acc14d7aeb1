package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestHeartbeat(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.HeartbeatV1){
		"without a runner":                func(w *agentv1.HeartbeatV1) { w.Peer.Runner = [16]byte{} },
		"without a session":               func(w *agentv1.HeartbeatV1) { w.Peer.Session = [16]byte{} },
		"without a nonce":                 func(w *agentv1.HeartbeatV1) { w.Nonce = 0 },
		"with an item without an attempt": func(w *agentv1.HeartbeatV1) { w.Attempts[0].Attempt = [16]byte{} },
		"with an item without a lease":    func(w *agentv1.HeartbeatV1) { w.Attempts[0].Lease = [16]byte{} },
		"with no pressure":                func(w *agentv1.HeartbeatV1) { w.Resources.Pressure = 0 },
		"with more free than there is":    func(w *agentv1.HeartbeatV1) { w.Resources.Free.Slots = 9 },
	})
}

func FuzzHeartbeat(f *testing.F) { protocoltest.Fuzz[*agentv1.HeartbeatV1](f) }
