package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRecoverAttempts(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.RecoverAttemptsV1){
		"without a runner":                 func(w *agentv1.RecoverAttemptsV1) { w.Peer.Runner = [16]byte{} },
		"without a session":                func(w *agentv1.RecoverAttemptsV1) { w.Peer.Session = [16]byte{} },
		"with an item without a session":   func(w *agentv1.RecoverAttemptsV1) { w.Previous[0].Session = [16]byte{} },
		"with an item without a job":       func(w *agentv1.RecoverAttemptsV1) { w.Previous[0].Work.Job = [16]byte{} },
		"with a completion without an id":  func(w *agentv1.RecoverAttemptsV1) { w.Previous[1].Completion.Message = [16]byte{} },
		"with a completion without a hash": func(w *agentv1.RecoverAttemptsV1) { w.Previous[1].Completion.Hash = [32]byte{} },
	})
}

func FuzzRecoverAttempts(f *testing.F) { protocoltest.Fuzz[*agentv1.RecoverAttemptsV1](f) }
