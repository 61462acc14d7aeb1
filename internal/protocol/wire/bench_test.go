package wire_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

// BenchmarkHeartbeat is the message that there is most of, with 50 attempts.
func BenchmarkHeartbeat(b *testing.B) {
	ctx := attempt([]byte("spec"))
	m := &forge.Heartbeat{
		Runner: ctx.Runner, Session: ctx.Session, Nonce: 1, State: forge.AgentOnline, CapabilityDigest: digest.Of(nil),
		Attempts: make([]forge.HeartbeatItem, 50),
	}
	for i := range m.Attempts {
		m.Attempts[i] = forge.HeartbeatItem{Attempt: ctx.Attempt, Lease: ctx.Lease, Phase: forge.AttemptRunning}
	}
	f := forge.Frame{ID: id[forge.MessageID](1), Body: m}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = wire.EncodeFrame(buf[:0], f, protocol.Current, 1); err != nil {
			b.Fatal(err)
		}
		header, err := protocol.ParseHeader([protocol.HeaderBytes]byte(buf))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := wire.DecodeFrame(header, buf[protocol.HeaderBytes:]); err != nil {
			b.Fatal(err)
		}
	}
}
