package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCompletionAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.CompletionAckV1){
		"without an attempt":     func(w *agentv1.CompletionAckV1) { w.Attempt = [16]byte{} },
		"without an id":          func(w *agentv1.CompletionAckV1) { w.Message = [16]byte{} },
		"without an answer":      func(w *agentv1.CompletionAckV1) { w.Answer = 0 },
		"with an unknown answer": func(w *agentv1.CompletionAckV1) { w.Answer = 5 },
	})
}

func FuzzCompletionAck(f *testing.F) { protocoltest.Fuzz[*agentv1.CompletionAckV1](f) }
