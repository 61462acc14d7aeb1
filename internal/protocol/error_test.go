package protocol_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestError(t *testing.T) {
	protocoltest.Message(t, map[string]func(*protocol.ErrorV1){
		"without a code":        func(w *protocol.ErrorV1) { w.Code = 0 },
		"without a retry class": func(w *protocol.ErrorV1) { w.Retry = 0 },
		"with several lines":    func(w *protocol.ErrorV1) { w.Text = "goroutine 1 [running]:\nmain.main()" },
	})
}

func FuzzError(f *testing.F) { protocoltest.Fuzz[*protocol.ErrorV1](f) }
