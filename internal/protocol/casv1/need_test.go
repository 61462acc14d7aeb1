package casv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestNeedObjects(t *testing.T) {
	protocoltest.Message(t, map[string]func(*casv1.NeedObjectsV1){
		"about nothing":                   func(w *casv1.NeedObjectsV1) { w.Objects = nil },
		"with an object without a digest": func(w *casv1.NeedObjectsV1) { w.Objects[1].Digest = [32]byte{} },
		"with an object too large to be":  func(w *casv1.NeedObjectsV1) { w.Objects[0].Bytes = 1<<50 + 1 },
	})
}

func FuzzNeedObjects(f *testing.F) { protocoltest.Fuzz[*casv1.NeedObjectsV1](f) }
