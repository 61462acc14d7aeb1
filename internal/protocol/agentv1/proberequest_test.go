package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestProbeRequest(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.ProbeRequestV1){
		"with an unknown check": func(w *agentv1.ProbeRequestV1) { w.Checks[0] = 9 },
		"with no check":         func(w *agentv1.ProbeRequestV1) { w.Checks[0] = 0 },
	})
}

func FuzzProbeRequest(f *testing.F) { protocoltest.Fuzz[*agentv1.ProbeRequestV1](f) }
