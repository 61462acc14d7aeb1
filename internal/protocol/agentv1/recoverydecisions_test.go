package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRecoveryDecisions(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.RecoveryDecisionsV1){
		"about no attempt":        func(w *agentv1.RecoveryDecisionsV1) { w.Decisions[0].Attempt = [16]byte{} },
		"with no verdict":         func(w *agentv1.RecoveryDecisionsV1) { w.Decisions[0].Verdict = 0 },
		"with an unknown verdict": func(w *agentv1.RecoveryDecisionsV1) { w.Decisions[0].Verdict = 4 },
	})
}

func FuzzRecoveryDecisions(f *testing.F) { protocoltest.Fuzz[*agentv1.RecoveryDecisionsV1](f) }
