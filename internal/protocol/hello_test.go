package protocol_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestHello(t *testing.T) {
	protocoltest.Message(t, map[string]func(*protocol.HelloV1){
		"without a role":                func(w *protocol.HelloV1) { w.Role = 0 },
		"of an unknown role":            func(w *protocol.HelloV1) { w.Role = 5 },
		"without a version":             func(w *protocol.HelloV1) { w.Versions = nil },
		"with minors that run backward": func(w *protocol.HelloV1) { w.Versions[0].MinMinor = 2 },
		"with a major twice":            func(w *protocol.HelloV1) { w.Versions = append(w.Versions, w.Versions[0]) },
		"with features out of order":    func(w *protocol.HelloV1) { w.Features[0] = 9 },
		"with feature 0":                func(w *protocol.HelloV1) { w.Features[0] = 0 },
		"with no session":               func(w *protocol.HelloV1) { *w.Session = [16]byte{} },
		"with a line break":             func(w *protocol.HelloV1) { w.Software = "a\nb" },
	})
}

func FuzzHello(f *testing.F) { protocoltest.Fuzz[*protocol.HelloV1](f) }
