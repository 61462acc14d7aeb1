package logv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLogFrame(t *testing.T) {
	protocoltest.Message(t, map[string]func(*logv1.LogFrameV1){
		"without a number":   func(w *logv1.LogFrameV1) { w.Seq = 0 },
		"of no kind":         func(w *logv1.LogFrameV1) { w.Kind = 0 },
		"of an unknown kind": func(w *logv1.LogFrameV1) { w.Kind = 5 },
		"before 1970":        func(w *logv1.LogFrameV1) { w.Time = -1 },
		"without bytes":      func(w *logv1.LogFrameV1) { w.Bytes = nil },
	})
}

func FuzzLogFrame(f *testing.F) { protocoltest.Fuzz[*logv1.LogFrameV1](f) }
