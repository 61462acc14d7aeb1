package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCancel(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.CancelV1){
		"without an attempt": func(w *agentv1.CancelV1) { w.Attempt = [16]byte{} },
		"without a lease":    func(w *agentv1.CancelV1) { w.Lease = [16]byte{} },
		"without a reason":   func(w *agentv1.CancelV1) { w.Reason = 0 },
	})
}

func FuzzCancel(f *testing.F) { protocoltest.Fuzz[*agentv1.CancelV1](f) }
