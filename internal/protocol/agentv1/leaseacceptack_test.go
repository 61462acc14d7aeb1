package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLeaseAcceptAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.LeaseAcceptAckV1){
		"without a nonce":     func(w *agentv1.LeaseAcceptAckV1) { w.Nonce = 0 },
		"without a lease":     func(w *agentv1.LeaseAcceptAckV1) { w.Lease = [16]byte{} },
		"without an answer":   func(w *agentv1.LeaseAcceptAckV1) { w.Answer = agentv1.AcceptAnswerV1{} },
		"granted for no time": func(w *agentv1.LeaseAcceptAckV1) { w.Answer.Granted.HardTTL = 0 },
		"granted forever":     func(w *agentv1.LeaseAcceptAckV1) { w.Answer.Granted.HardTTL = 1 << 63 },
	})
}

func FuzzLeaseAcceptAck(f *testing.F) { protocoltest.Fuzz[*agentv1.LeaseAcceptAckV1](f) }
