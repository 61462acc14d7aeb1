package protocol_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestHelloAck(t *testing.T) {
	protocoltest.Message(t, map[string]func(*protocol.HelloAckV1){
		"without a version":                    func(w *protocol.HelloAckV1) { w.Versions = nil },
		"with a version that it does not have": func(w *protocol.HelloAckV1) { w.Selected.Version.Minor = 2 },
		"with features out of order":           func(w *protocol.HelloAckV1) { w.Selected.Features[1] = 1 },
		"before 1970":                          func(w *protocol.HelloAckV1) { w.Time = -1 },
	})
}

func FuzzHelloAck(f *testing.F) { protocoltest.Fuzz[*protocol.HelloAckV1](f) }
