package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRegister(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.RegisterV1){
		"without a runner":                func(w *agentv1.RegisterV1) { w.Peer.Runner = [16]byte{} },
		"without a session":               func(w *agentv1.RegisterV1) { w.Peer.Session = [16]byte{} },
		"without a state folder":          func(w *agentv1.RegisterV1) { w.StateFolder = [16]byte{} },
		"without a boot":                  func(w *agentv1.RegisterV1) { w.Boot = [16]byte{} },
		"never started":                   func(w *agentv1.RegisterV1) { w.StartCounter = 0 },
		"never connected":                 func(w *agentv1.RegisterV1) { w.TransportSeq = 0 },
		"with a line break":               func(w *agentv1.RegisterV1) { w.Version = "1\n2" },
		"with a digest of something else": func(w *agentv1.RegisterV1) { w.Digest[0]++ },
		"with another snapshot schema":    func(w *agentv1.RegisterV1) { w.Capabilities.Schema = 2 },
		"without a platform":              func(w *agentv1.RegisterV1) { w.Capabilities.Platform.OS = "" },
		"with an unknown sandbox":         func(w *agentv1.RegisterV1) { w.Capabilities.Sandboxes[0].Kind = 4 },
		"with an unknown source":          func(w *agentv1.RegisterV1) { w.Capabilities.Toolchains[0].Source = 3 },
		"with a claimed privilege":        func(w *agentv1.RegisterV1) { w.Capabilities.Features[0] = "signing" },
	})
}

func FuzzRegister(f *testing.F) { protocoltest.Fuzz[*agentv1.RegisterV1](f) }
