package logv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLogResume(t *testing.T) {
	protocoltest.Message(t, map[string]func(*logv1.LogResumeV1){
		"without an attempt": func(w *logv1.LogResumeV1) { w.Attempt = [16]byte{} },
		"without a number":   func(w *logv1.LogResumeV1) { w.From = 0 },
	})
}

func FuzzLogResume(f *testing.F) { protocoltest.Fuzz[*logv1.LogResumeV1](f) }
