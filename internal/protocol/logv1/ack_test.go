package logv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLogAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*logv1.LogAckV1){
		"without an attempt": func(w *logv1.LogAckV1) { w.Attempt = [16]byte{} },
		"without a number":   func(w *logv1.LogAckV1) { w.Next = 0 },
	})
}

func FuzzLogAck(f *testing.F) { protocoltest.Fuzz[*logv1.LogAckV1](f) }
