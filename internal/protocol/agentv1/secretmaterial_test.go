package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestSecretMaterial(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.SecretMaterialV1){
		"without an attempt": func(w *agentv1.SecretMaterialV1) { w.Attempt = [16]byte{} },
		"without a lease":    func(w *agentv1.SecretMaterialV1) { w.Lease = [16]byte{} },
		"without a name":     func(w *agentv1.SecretMaterialV1) { w.Name = "" },
		"kept forever":       func(w *agentv1.SecretMaterialV1) { w.Expires = 1 << 63 },
	})
}

func FuzzSecretMaterial(f *testing.F) { protocoltest.Fuzz[*agentv1.SecretMaterialV1](f) }
