package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestPhaseAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.PhaseAckV1){
		"without an attempt": func(w *agentv1.PhaseAckV1) { w.Attempt = [16]byte{} },
		"without a number":   func(w *agentv1.PhaseAckV1) { w.Seq = 0 },
	})
}

func FuzzPhaseAck(f *testing.F) { protocoltest.Fuzz[*agentv1.PhaseAckV1](f) }
