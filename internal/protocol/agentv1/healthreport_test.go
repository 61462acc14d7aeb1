package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestHealthReport(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.HealthReportV1){
		"without a runner":            func(w *agentv1.HealthReportV1) { w.Peer.Runner = [16]byte{} },
		"without a session":           func(w *agentv1.HealthReportV1) { w.Peer.Session = [16]byte{} },
		"without a status":            func(w *agentv1.HealthReportV1) { w.Status = 0 },
		"better than its worst check": func(w *agentv1.HealthReportV1) { w.Status = 1 },
		"with an unknown check":       func(w *agentv1.HealthReportV1) { w.Checks[0].Kind = 9 },
		"with a check twice":          func(w *agentv1.HealthReportV1) { w.Checks[1].Kind = w.Checks[0].Kind },
		"with several lines":          func(w *agentv1.HealthReportV1) { w.Checks[0].Detail = "a\nb" },
	})
}

func FuzzHealthReport(f *testing.F) { protocoltest.Fuzz[*agentv1.HealthReportV1](f) }
