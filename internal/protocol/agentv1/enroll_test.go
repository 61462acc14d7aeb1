package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestEnroll(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.EnrollV1){
		"with an empty token": func(w *agentv1.EnrollV1) { *w.Token.Plain = nil },
		"without a request":   func(w *agentv1.EnrollV1) { w.Request = nil },
		"with a line break":   func(w *agentv1.EnrollV1) { w.Name = "a\nb" },
	})
}

func FuzzEnroll(f *testing.F) { protocoltest.Fuzz[*agentv1.EnrollV1](f) }
