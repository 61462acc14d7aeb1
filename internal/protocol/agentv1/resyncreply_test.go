package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestResyncReply(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.ResyncReplyV1){
		"without a nonce":            func(w *agentv1.ResyncReplyV1) { w.Nonce = 0 },
		"with an unknown verdict":    func(w *agentv1.ResyncReplyV1) { w.Verdicts[0].Verdict = 4 },
		"with no verdict":            func(w *agentv1.ResyncReplyV1) { w.Verdicts[0].Verdict = 0 },
		"continued for no time":      func(w *agentv1.ResyncReplyV1) { w.Verdicts[0].HardTTL = 0 },
		"continued forever":          func(w *agentv1.ResyncReplyV1) { w.Verdicts[0].HardTTL = uint64(protocol.MaxDuration) + 1 },
		"cancelled with time":        func(w *agentv1.ResyncReplyV1) { w.Verdicts[2].HardTTL = 1 },
		"cancelled without a reason": func(w *agentv1.ResyncReplyV1) { w.Verdicts[2].Cancel = 0 },
		"stale with a cancel":        func(w *agentv1.ResyncReplyV1) { w.Verdicts[3].Cancel = 1 },
		"of no lease":                func(w *agentv1.ResyncReplyV1) { w.Verdicts[0].Lease = [16]byte{} },
	})
}

func FuzzResyncReply(f *testing.F) { protocoltest.Fuzz[*agentv1.ResyncReplyV1](f) }
