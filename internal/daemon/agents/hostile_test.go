package agents_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link/linktest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
)

// hostile opens a connection by hand and brings it where an attack wants it.
func (w *world) hostile(runner forge.RunnerID, state forge.ConnectionState) (*linktest.Hostile, transport.Conn) {
	w.t.Helper()
	dialer := w.network.Dialer(inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent}, Certificate: w.trust.Runner(runner).Leaf()})
	conn, err := dialer.Dial(w.ctx, w.endpoint)
	w.must(err)
	h := linktest.New(conn)
	if state >= forge.ConnRegistering {
		w.must(h.Hello(w.ctx))
	}
	if state < forge.ConnActive {
		return h, conn
	}
	session := ident.New[forge.AgentSessionID]()
	caps := machine()
	w.must(h.Say(agentv1.NewRegister(&forge.Register{
		Runner: runner, Session: session, StateFolder: ident.New[forge.StateFolderID](), Boot: ident.New[forge.BootID](),
		StartCounter: 1, TransportSeq: 1, Version: "0.1", Capabilities: caps, CapabilityDigest: caps.Digest(),
	})))
	_, _, err = h.Hear()
	w.must(err)
	w.must(h.Say(agentv1.NewResync(&forge.Resync{Runner: runner, Session: session, Nonce: 1})))
	_, _, err = h.Hear()
	w.must(err)
	return h, conn
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Rows I16, I26 and 09-A24: whatever a peer with a good certificate does, it costs its connection, little memory, and
// nothing of anybody else's.
func TestHostilePeersCostThemselvesOnly(t *testing.T) {
	w := newWorld(t)
	w.begin()
	good := w.process(w.runner(1))
	good.connect()
	before := uint64(0)
	for round := range 2 {
		for _, a := range linktest.Attacks() {
			if a.Slow {
				continue
			}
			h, conn := w.hostile(w.runner(1), a.State)
			if err := a.Run(w.ctx, h); err != nil {
				t.Errorf("%s: %v", a.Name, err)
			}
			conn.Close(protocol.CloseCodeOf(forge.CloseNormal))
		}
		good.nonce++
		good.say(&forge.Heartbeat{Runner: good.runner, Session: good.session, Nonce: good.nonce, State: forge.AgentOnline})
		hear[*forge.HeartbeatAck](good)
		if round == 0 {
			before = heap()
		}
	}
	if after := heap(); after > before+8<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
}

// What an agent says of itself again and again is written down as fast as the disk goes, the latest of it.
func TestAFloodOfCapabilitiesIsWrittenOnceInAWhile(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p := w.process(w.runner(1))
	p.connect()
	var last forge.Capabilities
	for i := range 500 {
		last = machine()
		last.Features = []string{fmt.Sprint("f", i), strings.Repeat("x", 60)}
		p.say(&forge.CapabilityUpdate{Runner: p.runner, Session: p.session, Capabilities: last, CapabilityDigest: last.Digest()})
	}
	p.nonce++
	p.say(&forge.Heartbeat{Runner: p.runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline})
	hear[*forge.HeartbeatAck](p)
	w.control.wait(t, "the last snapshot is stored", func() bool {
		var r store.Runner
		w.must(w.store.View(w.ctx, func(v *store.View) (err error) { r, err = v.Runner(p.runner); return err }))
		return r.CapabilityID == last.Digest()
	})
}
