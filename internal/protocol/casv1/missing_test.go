package casv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestMissingObjects(t *testing.T) {
	protocoltest.Message(t, map[string]func(*casv1.MissingObjectsV1){
		"with an object without a digest": func(w *casv1.MissingObjectsV1) { w.Objects[0].Digest = [32]byte{} },
	})
}

func FuzzMissingObjects(f *testing.F) { protocoltest.Fuzz[*casv1.MissingObjectsV1](f) }
