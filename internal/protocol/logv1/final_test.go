package logv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLogFinal(t *testing.T) {
	protocoltest.Message(t, map[string]func(*logv1.LogFinalV1){
		"without a runner":   func(w *logv1.LogFinalV1) { w.Context.Peer.Runner = [16]byte{} },
		"without a session":  func(w *logv1.LogFinalV1) { w.Context.Peer.Session = [16]byte{} },
		"without a job":      func(w *logv1.LogFinalV1) { w.Context.Work.Job = [16]byte{} },
		"without an attempt": func(w *logv1.LogFinalV1) { w.Context.Work.Attempt = [16]byte{} },
		"without a lease":    func(w *logv1.LogFinalV1) { w.Context.Work.Lease = [16]byte{} },
		"without a spec":     func(w *logv1.LogFinalV1) { w.Context.Work.Spec = [32]byte{} },
	})
}

func FuzzLogFinal(f *testing.F) { protocoltest.Fuzz[*logv1.LogFinalV1](f) }
