package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestResume(t *testing.T) {
	protocoltest.Message[*agentv1.ResumeV1](t, nil)
}

func FuzzResume(f *testing.F) { protocoltest.Fuzz[*agentv1.ResumeV1](f) }
