package casv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCasHeader(t *testing.T) {
	protocoltest.Message(t, map[string]func(*casv1.CasHeaderV1){
		"of no object":               func(w *casv1.CasHeaderV1) { w.Object.Digest = [32]byte{} },
		"from behind the end":        func(w *casv1.CasHeaderV1) { w.Offset = w.Object.Bytes + 1 },
		"beyond the end":             func(w *casv1.CasHeaderV1) { w.Length++ },
		"with sums that overflow":    func(w *casv1.CasHeaderV1) { w.Offset, w.Length = 1, 1<<64-1 },
		"without an encoding":        func(w *casv1.CasHeaderV1) { w.Encoding = 0 },
		"in an unknown encoding":     func(w *casv1.CasHeaderV1) { w.Encoding = 4 },
		"plain and of two lengths":   func(w *casv1.CasHeaderV1) { w.Encoded-- },
		"encoded in more than it is": func(w *casv1.CasHeaderV1) { w.Encoding, w.Encoded = 2, 2*w.Length },
		"that inflates too much":     func(w *casv1.CasHeaderV1) { w.Encoding, w.Encoded = 2, w.Length/casv1.MaxRatio-1 },
		"longer than a run may be": func(w *casv1.CasHeaderV1) {
			w.Object.Bytes, w.Offset, w.Length, w.Encoded = 2*casv1.MaxRun, 0, casv1.MaxRun+1, casv1.MaxRun+1
		},
	})
}

func FuzzCasHeader(f *testing.F) { protocoltest.Fuzz[*casv1.CasHeaderV1](f) }
