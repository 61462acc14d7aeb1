package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// daemon drives a core through a story. It is the shell, the agents and the store in one: transactions and readings wait
// until the story answers them.
type daemon struct {
	t       *testing.T
	core    *core.Daemon
	now     forge.Instant
	begun   []core.Begin
	loads   []core.Load
	sent    []core.Send
	offers  []core.SendOffer
	closed  []core.Close
	other   []core.Effect
	frames  byte
	session map[core.ConnID]*forge.Register
}

var (
	runner = forge.RunnerID{ULID: forge.ULID{0: 'R'}}
	folder = forge.StateFolderID{ULID: forge.ULID{0: 'F'}}
	policy = forge.DefaultLeasePolicy()
)

const start = forge.Instant(1000 * time.Hour)

func newDaemon(t *testing.T) *daemon {
	return &daemon{t: t, core: core.New(core.Config{Policy: policy, Seed: 9}), now: start, session: map[core.ConnID]*forge.Register{}}
}

// step feeds an event and keeps what comes back.
func (d *daemon) step(e core.Event) {
	d.t.Helper()
	for _, effect := range slices.Clone(d.core.Step(d.now, e)) {
		switch e := effect.(type) {
		case core.Begin:
			d.begun = append(d.begun, e)
		case core.Load:
			d.loads = append(d.loads, e)
		case core.Send:
			d.sent = append(d.sent, e)
		case core.SendOffer:
			d.offers = append(d.offers, e)
		case core.Close:
			d.closed = append(d.closed, e)
		default:
			d.other = append(d.other, effect)
		}
	}
}

// until rings the clock whenever the core asked for it, up to a moment from now.
func (d *daemon) until(for_ time.Duration) {
	d.t.Helper()
	end := d.now.Add(for_)
	for rings := 0; d.core.Wake() <= end; rings++ {
		if rings > 10_000 {
			d.t.Fatalf("the clock rings without end at %v", d.now.Sub(start))
		}
		d.now = max(d.now, d.core.Wake())
		d.step(core.Tick{})
	}
	d.now = end
}

// open opens a connection of the runner.
func (d *daemon) open(id core.ConnID) { d.t.Helper(); d.step(core.Opened{Conn: id, Runner: runner}) }

// receive brings a frame and returns its id.
func (d *daemon) receive(id core.ConnID, m forge.Message) forge.MessageID {
	d.t.Helper()
	d.frames++
	f := forge.Frame{ID: forge.MessageID{ULID: forge.ULID{0: 'M', 15: d.frames}}, Body: m}
	d.step(core.Received{Conn: id, Frame: f})
	return f.ID
}

// commit lets the oldest transaction commit with an answer, and returns its rule.
func commit[C authority.Command](d *daemon, answer authority.Answer) C {
	d.t.Helper()
	cmd, tx := begun[C](d)
	d.step(core.Done{Tx: tx, Committed: true, Answer: answer})
	return cmd
}

// begun takes the oldest transaction, which must be of this rule.
func begun[C authority.Command](d *daemon) (C, core.TxID) {
	d.t.Helper()
	var none C
	if len(d.begun) == 0 {
		d.t.Fatalf("nothing was begun, expected %T", none)
	}
	b := d.begun[0]
	d.begun = d.begun[1:]
	cmd, ok := b.Command.(C)
	if !ok {
		d.t.Fatalf("%T was begun, expected %T", b.Command, none)
	}
	return cmd, b.Tx
}

// load answers the oldest reading.
func (d *daemon) load(s *authority.Snapshot) core.Load {
	d.t.Helper()
	if len(d.loads) == 0 {
		d.t.Fatal("nothing is read")
	}
	l := d.loads[0]
	d.loads = d.loads[1:]
	if s != nil && s.Cancel == nil {
		s.Cancel = make([]bool, len(s.Leases))
	}
	d.step(core.Loaded{Tx: l.Tx, Snapshot: s})
	return l
}

// read waits for the next reading of everything and answers it.
func (d *daemon) read(s authority.Snapshot) {
	d.t.Helper()
	for rings := 0; len(d.loads) == 0; rings++ {
		if rings > 100 {
			d.t.Fatal("the store is not read")
		}
		d.until(core.ReadEvery)
	}
	if l := d.load(&s); !l.Runner.IsZero() {
		d.t.Fatalf("only runner %v was read", l.Runner)
	}
}

// answer takes the oldest frame that was sent, which must be of this kind.
func answer[M forge.Message](d *daemon) (core.Send, M) {
	d.t.Helper()
	var none M
	if len(d.sent) == 0 {
		d.t.Fatalf("nothing was sent, expected %T", none)
	}
	s := d.sent[0]
	d.sent = d.sent[1:]
	m, ok := s.Frame.Body.(M)
	if !ok {
		d.t.Fatalf("%T was sent, expected %T", s.Frame.Body, none)
	}
	return s, m
}

// isClosed fails the story unless exactly this connection was closed for this reason, without another word to it.
func (d *daemon) isClosed(id core.ConnID, reason forge.CloseReason) {
	d.t.Helper()
	if len(d.closed) != 1 || d.closed[0].Conn != id || d.closed[0].Reason != reason {
		d.t.Fatalf("closed %+v, should be connection %d for %v", d.closed, id, reason)
	}
	d.closed = nil
	d.silent()
}

// silent fails the story where something was said, closed or begun.
func (d *daemon) silent() {
	d.t.Helper()
	if len(d.sent)+len(d.offers)+len(d.closed)+len(d.begun) > 0 {
		d.t.Fatalf("sent %+v, offered %+v, closed %+v, began %+v", d.sent, d.offers, d.closed, d.begun)
	}
}

// registration is of process n of the runner's folder, on its connection seq.
func registration(n byte, seq uint64) *forge.Register {
	return &forge.Register{
		Runner: runner, Session: sessionOf(n), StateFolder: folder, Boot: forge.BootID{ULID: forge.ULID{0: 'B'}},
		StartCounter: uint64(n), TransportSeq: seq, Version: "test",
	}
}

func sessionOf(n byte) forge.AgentSessionID {
	return forge.AgentSessionID{ULID: forge.ULID{0: 'S', 15: n}}
}

func fence(m *forge.Register) authority.Fence {
	return authority.Fence{Runner: m.Runner, Session: m.Session, TransportSeq: m.TransportSeq}
}

// register opens a connection and registers on it.
func (d *daemon) register(id core.ConnID, m *forge.Register) {
	d.t.Helper()
	d.open(id)
	d.receive(id, m)
	commit[*authority.Register](d, authority.Answer{Done: true})
	answer[*forge.RegistrationAccepted](d)
	d.session[id] = m
}

// active registers and resyncs without a lease.
func (d *daemon) active(id core.ConnID, m *forge.Register) {
	d.t.Helper()
	d.register(id, m)
	d.resync(id, authority.Snapshot{})
}

// resync resyncs without a lease.
func (d *daemon) resync(id core.ConnID, s authority.Snapshot) {
	d.t.Helper()
	d.receive(id, &forge.Resync{Runner: runner, Session: d.session[id].Session, Nonce: 5})
	d.load(&s)
	commit[*authority.Touch](d, authority.Answer{Done: true})
	answer[*forge.ResyncReply](d)
}

// online returns a daemon with the first connection of process 1.
func online(t *testing.T) *daemon {
	d := newDaemon(t)
	d.active(1, registration(1, 1))
	return d
}

// context is job n's, offered to a process.
func context(n, process byte) forge.AttemptContext {
	id := func(kind byte) forge.ULID { return forge.ULID{0: kind, 15: n} }
	return forge.AttemptContext{
		Job: forge.JobID{ULID: id('J')}, Attempt: forge.AttemptID{ULID: id('A')}, Lease: forge.LeaseID{ULID: id('L')},
		Spec: forge.SpecID([]byte{n}), Runner: runner, Session: sessionOf(process),
	}
}

// lease is an open lease of process 1 on job n.
func lease(n byte, state forge.LeaseState) authority.Lease {
	return authority.Lease{
		Context: context(n, 1), StateFolder: folder, StartCounter: 1, State: state,
		HardTTL: time.Minute, MaxLifetime: time.Hour,
	}
}

func renewed(n byte) forge.LeaseVerdict {
	return forge.LeaseVerdict{Lease: context(n, 1).Lease, Verdict: forge.VerdictContinue, HardTTL: time.Duration(n) * time.Minute}
}
