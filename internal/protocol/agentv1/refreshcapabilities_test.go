package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRefreshCapabilities(t *testing.T) {
	protocoltest.Message[*agentv1.RefreshCapabilitiesV1](t, nil)
}

func FuzzRefreshCapabilities(f *testing.F) { protocoltest.Fuzz[*agentv1.RefreshCapabilitiesV1](f) }
