package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// FuzzDaemonStep feeds the core connections, frames and answers of the store in any order: three bytes an event. Nothing
// panics, the clock never rings without end, there is one reading of everything at a time, and nothing is said to a
// connection that is closed.
func FuzzDaemonStep(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 1, 0, 3, 0, 0})
	f.Add([]byte{0, 1, 0, 2, 1, 0, 3, 0, 0, 2, 17, 1, 4, 0, 7, 3, 0, 0, 3, 0, 0, 3, 0, 0, 2, 33, 3, 3, 0, 0})
	f.Add([]byte{0, 1, 0, 2, 1, 0, 3, 0, 0, 2, 17, 0, 4, 0, 0, 3, 0, 0, 5, 1, 0, 3, 0, 0, 6, 0, 9, 4, 0, 99, 6, 200, 200})
	f.Add([]byte{0, 1, 0, 2, 1, 0, 0, 1, 0, 2, 2, 1, 3, 1, 0, 3, 0, 0, 1, 1, 0, 3, 0, 0})
	f.Fuzz(func(t *testing.T, events []byte) {
		w := &world{
			t: t, d: core.New(core.Config{Policy: policy, Seed: 1}), now: start,
			open: map[core.ConnID]bool{},
		}
		for ; len(events) >= 3; events = events[3:] {
			w.step(w.event(events[0], events[1], events[2]))
		}
		w.settle()
	})
}

// world is everything around the core.
type world struct {
	t     *testing.T
	d     *core.Daemon
	now   forge.Instant
	last  core.ConnID
	open  map[core.ConnID]bool
	begun []core.Begin
	loads []core.Load
	ids   byte
}

func (w *world) event(kind, x, y byte) core.Event {
	conn := core.ConnID(x % 4)
	switch kind % 7 {
	case 0:
		w.last++
		w.open[w.last] = true
		return core.Opened{Conn: w.last, Runner: forge.RunnerID{ULID: forge.ULID{0: 'R' + x%2}}}
	case 1:
		delete(w.open, conn)
		return core.Closed{Conn: conn}
	case 2:
		w.ids++
		return core.Received{Conn: conn, Frame: forge.Frame{ID: forge.MessageID{ULID: forge.ULID{1, w.ids}}, Body: message(x>>4, y)}}
	case 3:
		return w.done(x, y)
	case 4:
		return w.loaded(x, y)
	case 5:
		c := context(y%4, 1)
		return core.Place{Job: c.Job, Runner: forge.RunnerID{ULID: forge.ULID{0: 'R' + x%2}}, Attempt: c.Attempt, Lease: c.Lease}
	default:
		w.now = w.now.Add(time.Duration(x) * time.Duration(y) * 10 * time.Millisecond)
		return core.Tick{}
	}
}

// message decodes a frame of an agent, or one that no agent should send.
func message(kind, y byte) forge.Message {
	c := context(y%4, 1+y/4%3)
	switch kind {
	case 0:
		return registration(1+y%3, uint64(y/3))
	case 1:
		m := &forge.Resync{Nonce: 1}
		for n := range y % 4 {
			m.Attempts = append(m.Attempts, item(n, forge.AttemptState(1+y%11)))
		}
		return m
	case 2:
		return &forge.LeaseAccept{Context: c}
	case 3:
		m := &forge.Heartbeat{}
		for n := range y % 8 {
			m.Attempts = append(m.Attempts, forge.HeartbeatItem{Lease: context(n*y%5, 1).Lease})
		}
		return m
	case 4:
		return &forge.RecoverAttempts{Previous: make([]forge.RecoveredAttempt, y%4)}
	case 5:
		return &forge.Completion{Context: c}
	case 6:
		return &forge.ResyncReply{}
	case 7:
		return nil
	}
	all := requests()
	return all[int(kind+y)%len(all)]
}

// done ends a transaction as y says, or one that does not exist.
func (w *world) done(x, y byte) core.Event {
	if len(w.begun) == 0 {
		return core.Done{Tx: 1<<40 + core.TxID(x), Committed: true}
	}
	i := int(x) % len(w.begun)
	b := w.begun[i]
	w.begun = append(w.begun[:i:i], w.begun[i+1:]...)
	done := core.Done{Tx: b.Tx, Committed: y < 200, Unknown: y > 230}
	if y > 180 {
		done.Answer.Close = forge.CloseReason(y - 180)
		return done
	}
	verdict := forge.LeaseVerdict{Verdict: forge.Verdict(1 + y%3), HardTTL: time.Minute}
	done.Answer = authority.Answer{Done: y%2 == 0, Completion: forge.CompletionAnswer(1 + y%4), Audit: authority.Audit(y % 6)}
	switch c := b.Command.(type) {
	case *authority.Claim:
		done.Answer.Verdicts = []forge.LeaseVerdict{verdict}
	case *authority.Heartbeat:
		done.Answer.Verdicts = make([]forge.LeaseVerdict, len(c.Leases))
	case *authority.SealLog, *authority.Complete:
		done.Answer.NotYet = forge.ErrorCode(y % 4)
	}
	return done
}

// loaded ends a reading: what is there follows from y.
func (w *world) loaded(x, y byte) core.Event {
	if len(w.loads) == 0 {
		return core.Loaded{Tx: 1<<40 + core.TxID(x), Snapshot: &authority.Snapshot{}}
	}
	i := int(x) % len(w.loads)
	l := w.loads[i]
	w.loads = append(w.loads[:i:i], w.loads[i+1:]...)
	if y == 255 {
		return core.Loaded{Tx: l.Tx}
	}
	s := &authority.Snapshot{Sessions: []authority.SeenSession{{
		Session: authority.Session{Runner: runner, Session: sessionOf(1 + y%3), TransportSeq: uint64(y / 3)}, Beats: uint64(y),
		Runner: authority.Runner{ID: runner, Disabled: y > 150, Revoked: y > 200},
	}}}
	for n := range y % 5 {
		s.Leases = append(s.Leases, lease(n, forge.LeaseOffered+forge.LeaseState(y>>n&1)))
		s.Cancel = append(s.Cancel, y>>(n+1)&1 > 0)
	}
	return core.Loaded{Tx: l.Tx, Snapshot: s}
}

func (w *world) step(e core.Event) {
	w.t.Helper()
	for _, effect := range w.d.Step(w.now, e) {
		switch e := effect.(type) {
		case core.Begin:
			w.begun = append(w.begun, e)
		case core.Load:
			w.loads = append(w.loads, e)
		case core.Send:
			w.speaksTo(e.Conn)
		case core.SendOffer:
			w.speaksTo(e.Conn)
		case core.Close:
			w.speaksTo(e.Conn)
			delete(w.open, e.Conn)
		}
	}
	readings := 0
	for _, l := range w.loads {
		if l.Runner.IsZero() {
			readings++
		}
	}
	if readings > 1 {
		w.t.Fatalf("%d readings at once", readings)
	}
}

func (w *world) speaksTo(conn core.ConnID) {
	w.t.Helper()
	if !w.open[conn] {
		w.t.Fatalf("speaks to connection %d, which is closed", conn)
	}
}

// settle lets the clock ring on a world that says nothing any more.
func (w *world) settle() {
	w.t.Helper()
	for range 200 {
		wake := w.d.Wake()
		if wake == forge.Never {
			return
		}
		before := w.now
		w.now = max(w.now, wake)
		w.step(core.Tick{})
		if w.now == before && w.d.Wake() <= w.now {
			w.t.Fatalf("the clock rings without end at %v", w.now.Sub(start))
		}
	}
}
