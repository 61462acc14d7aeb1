package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestDrain(t *testing.T) {
	protocoltest.Message[*agentv1.DrainV1](t, nil)
}

func FuzzDrain(f *testing.F) { protocoltest.Fuzz[*agentv1.DrainV1](f) }
