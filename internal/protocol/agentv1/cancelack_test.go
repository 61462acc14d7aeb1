package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCancelAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.CancelAckV1){
		"without an attempt": func(w *agentv1.CancelAckV1) { w.Attempt = [16]byte{} },
		"without a lease":    func(w *agentv1.CancelAckV1) { w.Lease = [16]byte{} },
	})
}

func FuzzCancelAck(f *testing.F) { protocoltest.Fuzz[*agentv1.CancelAckV1](f) }
