package protocol_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestGoAway(t *testing.T) {
	protocoltest.Message(t, map[string]func(*protocol.GoAwayV1){
		"after more than a day":       func(w *protocol.GoAwayV1) { w.After = uint64(protocol.MaxGoAwayDelay) + 1 },
		"spread over more than a day": func(w *protocol.GoAwayV1) { w.Spread = uint64(protocol.MaxGoAwayDelay) + 1 },
		"to nowhere":                  func(w *protocol.GoAwayV1) { w.Endpoints[0] = "" },
		"with a control character":    func(w *protocol.GoAwayV1) { w.Endpoints[0] = "a\x00" },
	})
}

func FuzzGoAway(f *testing.F) { protocoltest.Fuzz[*protocol.GoAwayV1](f) }
