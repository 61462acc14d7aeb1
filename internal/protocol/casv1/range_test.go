package casv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCasRangeState(t *testing.T) {
	protocoltest.Message(t, map[string]func(*casv1.CasRangeStateV1){
		"of no object":                  func(w *casv1.CasRangeStateV1) { w.Object.Digest = [32]byte{} },
		"beyond the end":                func(w *casv1.CasRangeStateV1) { w.Held[1].Length++ },
		"with an empty range":           func(w *casv1.CasRangeStateV1) { w.Held[0].Length = 0 },
		"with ranges that touch":        func(w *casv1.CasRangeStateV1) { w.Held[1].Offset = 65_536 },
		"with ranges that run backward": func(w *casv1.CasRangeStateV1) { w.Held[0], w.Held[1] = w.Held[1], w.Held[0] },
	})
}

func FuzzCasRangeState(f *testing.F) { protocoltest.Fuzz[*casv1.CasRangeStateV1](f) }
