package logv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLogFinalAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*logv1.LogFinalAckV1){
		"without an attempt": func(w *logv1.LogFinalAckV1) { w.Attempt = [16]byte{} },
	})
}

func FuzzLogFinalAck(f *testing.F) { protocoltest.Fuzz[*logv1.LogFinalAckV1](f) }
