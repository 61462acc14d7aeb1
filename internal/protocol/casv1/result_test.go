package casv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCasResult(t *testing.T) {
	protocoltest.Message(t, map[string]func(*casv1.CasResultV1){
		"of no object":            func(w *casv1.CasResultV1) { w.Object.Digest = [32]byte{} },
		"without an outcome":      func(w *casv1.CasResultV1) { w.Outcome = 0 },
		"with an unknown outcome": func(w *casv1.CasResultV1) { w.Outcome = 9 },
	})
}

func FuzzCasResult(f *testing.F) { protocoltest.Fuzz[*casv1.CasResultV1](f) }
