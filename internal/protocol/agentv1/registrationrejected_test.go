package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRegistrationRejected(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.RegistrationRejectedV1){
		"without a code": func(w *agentv1.RegistrationRejectedV1) { w.Code = 0 },
	})
}

func FuzzRegistrationRejected(f *testing.F) { protocoltest.Fuzz[*agentv1.RegistrationRejectedV1](f) }
