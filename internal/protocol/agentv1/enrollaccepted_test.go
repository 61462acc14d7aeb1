package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestEnrollAccepted(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.EnrollAcceptedV1){
		"without a runner":          func(w *agentv1.EnrollAcceptedV1) { w.Runner = [16]byte{} },
		"without a chain":           func(w *agentv1.EnrollAcceptedV1) { w.Certificate.Chain = nil },
		"without roots":             func(w *agentv1.EnrollAcceptedV1) { w.Certificate.Roots = nil },
		"with an empty certificate": func(w *agentv1.EnrollAcceptedV1) { w.Certificate.Chain[0] = nil },
		"with an empty root":        func(w *agentv1.EnrollAcceptedV1) { w.Certificate.Roots[0] = nil },
		"that ended before 1970":    func(w *agentv1.EnrollAcceptedV1) { w.Certificate.NotAfter = -1 },
	})
}

func FuzzEnrollAccepted(f *testing.F) { protocoltest.Fuzz[*agentv1.EnrollAcceptedV1](f) }
