package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestCompletion(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.CompletionV1){
		"without a runner":                       func(w *agentv1.CompletionV1) { w.Context.Peer.Runner = [16]byte{} },
		"without a session":                      func(w *agentv1.CompletionV1) { w.Context.Peer.Session = [16]byte{} },
		"without a job":                          func(w *agentv1.CompletionV1) { w.Context.Work.Job = [16]byte{} },
		"without an attempt":                     func(w *agentv1.CompletionV1) { w.Context.Work.Attempt = [16]byte{} },
		"without a lease":                        func(w *agentv1.CompletionV1) { w.Context.Work.Lease = [16]byte{} },
		"without a spec":                         func(w *agentv1.CompletionV1) { w.Context.Work.Spec = [32]byte{} },
		"without an id":                          func(w *agentv1.CompletionV1) { w.Message = [16]byte{} },
		"with another result than its hash says": func(w *agentv1.CompletionV1) { w.Result.ExitCode = 1 },
		"with another output than its hash says": func(w *agentv1.CompletionV1) { w.Outputs[0].Ref.Bytes++ },
		"with another hash":                      func(w *agentv1.CompletionV1) { w.Hash[0]++ },
		"with no class":                          func(w *agentv1.CompletionV1) { w.Result.Class = 0 },
		"with an unknown class":                  func(w *agentv1.CompletionV1) { w.Result.Class = 20 },
		"with an unknown class of a step":        func(w *agentv1.CompletionV1) { w.Result.Steps[0].Class = 20 },
		"with an unknown capture":                func(w *agentv1.CompletionV1) { w.Capture = 20 },
		"that ran too long":                      func(w *agentv1.CompletionV1) { w.Result.Duration = 1 << 63 },
		"with a step that ran too long":          func(w *agentv1.CompletionV1) { w.Result.Steps[0].Duration = 1 << 63 },
		"with a step before 1970":                func(w *agentv1.CompletionV1) { w.Result.Steps[0].Start = -1 },
		"with an output of nothing":              func(w *agentv1.CompletionV1) { w.Outputs[0].Ref.Digest = [32]byte{} },
	})
}

func FuzzCompletion(f *testing.F) { protocoltest.Fuzz[*agentv1.CompletionV1](f) }
