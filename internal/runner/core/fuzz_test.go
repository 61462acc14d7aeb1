package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// FuzzAgentStep feeds the core whatever a world gone mad might: three bytes an event, in any order, with answers to
// requests that were made, to others, and to none. Nothing panics, the clock never rings without end, and the core never
// holds more than it may.
func FuzzAgentStep(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 2, 0, 0})
	f.Add(script(start1, offer1, run1))
	f.Add(script(start1, offer1, run1, []byte{14, 1, 1, 13, 1, 0, 15, 1, 0, 13, 1, 0, 21, 1, 11, 8, 0, 0, 22, 1, 0, 8, 0, 0}))
	f.Add(script(start1, offer1, run1, []byte{3, 0, 25, 2, 0, 30, 2, 1, 0, 8, 0, 0, 8, 0, 0}))
	f.Add(script(start1, offer1, []byte{18, 1, 1, 16, 3, 0, 18, 2, 4, 30, 0, 0}))
	f.Fuzz(func(t *testing.T, events []byte) {
		z := &mad{t: t, a: core.New(config(), policy, []core.Record{record(9, forge.AttemptRunning)}), now: start}
		for ; len(events) >= 3 && !z.over; events = events[3:] {
			z.step(z.event(events[0], events[1], events[2]))
		}
		z.settle()
	})
}

func script(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

var (
	start1 = []byte{0, 0, 0, 1, 0, 0, 2, 1, 0, 8, 0, 0, 5, 0, 0, 8, 0, 0, 5, 0, 0}     // begin, connect, register, resync
	offer1 = []byte{17, 1, 0, 8, 0, 0, 6, 0, 60}                                       // offer, write, grant
	run1   = []byte{13, 1, 0, 8, 0, 0, 10, 1, 0, 11, 1, 0, 8, 0, 0, 7, 0, 0, 12, 1, 0} // journal, prepare, start, end
)

// mad is the world around the core.
type mad struct {
	t       *testing.T
	a       *core.Agent
	now     forge.Instant
	seq     uint64
	asked   []forge.Frame // that were transmitted, the latest last
	version map[forge.AttemptID]uint64
	nonces  map[forge.Nonce]bool
	started map[forge.AttemptID]bool
	over    bool
}

// event decodes one event; x and y say which, and what of it.
func (z *mad) event(kind, x, y byte) core.Event {
	c := context(x % 8)
	switch kind % 24 {
	case 0:
		return core.Started{}
	case 1:
		return core.LeftoversKilled{}
	case 2:
		return core.Connected{Seq: z.seq - uint64(x/250)}
	case 3:
		return core.Closed{Seq: z.seq - uint64(x/200), Reason: forge.CloseReason(y % 28)}
	case 4:
		z.now = z.now.Add(time.Duration(x) * time.Duration(y) * 10 * time.Millisecond)
		return core.Tick{}
	case 5, 6, 7:
		return core.Received{Seq: z.seq, Frame: z.reply(x, y)}
	case 8:
		return core.Writable{Seq: z.seq}
	case 9:
		return core.Reconnect{}
	case 10:
		return core.Prepared{Attempt: c.Attempt}
	case 11:
		return core.WorkloadStarted{Attempt: c.Attempt}
	case 12:
		return core.WorkloadEnded{
			Attempt: c.Attempt, Result: forge.Result{Class: forge.Class(1 + y%19)}, StopSeen: forge.CancelReason(y % 4), Bitten: y > 200,
		}
	case 13:
		return core.Journaled{Attempt: c.Attempt, Version: z.version[c.Attempt] - uint64(y/200)}
	case 14:
		if y >= 192 {
			return core.Redelivered{Attempt: c.Attempt, Failed: y >= 224}
		}
		return core.Delivered{
			Attempt: c.Attempt, Capture: forge.Succeeded, Log: forge.LogSeal{Last: forge.LogSeq(y % 16)}, Outputs: make([]forge.OutputRef, y/16%2),
		}
	case 15:
		return core.CleanedUp{Attempt: c.Attempt}
	case 16:
		cmd := core.Command{Kind: core.CommandKind(1 + y%6), Attempt: c.Attempt, Reason: forge.RejectReason(1 + x%10), Admission: machine()}
		if cmd.Kind == core.CommandStop || cmd.Kind == core.CommandForce {
			cmd.Kind = core.CommandDrain + core.CommandKind(x&1)*2*(cmd.Kind-core.CommandDrain)/2
		}
		return cmd
	default:
		return core.Received{Seq: z.seq, Frame: forge.Frame{ID: forge.MessageID{ULID: forge.ULID{1, x, y}}, Body: z.word(kind, x, y)}}
	}
}

// reply answers the frame that was transmitted x ago, well or badly as y says.
func (z *mad) reply(x, y byte) forge.Frame {
	if len(z.asked) == 0 {
		return forge.Frame{Body: &forge.Resume{}}
	}
	asked := z.asked[max(0, len(z.asked)-1-int(x%8))]
	f := forge.Frame{ID: forge.MessageID{ULID: forge.ULID{2, x, y}}, Re: asked.ID}
	ttl, wrong := time.Duration(y)*time.Second, forge.Nonce(y/240)
	verdict := func(id forge.LeaseID) forge.LeaseVerdict {
		v := forge.LeaseVerdict{Lease: id, Verdict: forge.Verdict(1 + x/8%3), HardTTL: ttl}
		if v.Verdict != forge.VerdictStale {
			v.Cancel = forge.CancelReason(x / 64)
		}
		return v
	}
	switch m := asked.Body.(type) {
	case *forge.Register:
		f.Body = &forge.RegistrationAccepted{Policy: policy}
	case *forge.Resync:
		reply := &forge.ResyncReply{Nonce: m.Nonce + wrong}
		for _, item := range m.Attempts {
			reply.Verdicts = append(reply.Verdicts, verdict(item.Lease))
		}
		f.Body = reply
	case *forge.Heartbeat:
		reply := &forge.HeartbeatAck{Nonce: m.Nonce + wrong}
		for _, item := range m.Attempts {
			reply.Verdicts = append(reply.Verdicts, verdict(item.Lease))
		}
		f.Body = reply
	case *forge.LeaseAccept:
		f.Body = &forge.LeaseAcceptAck{
			Lease: m.Context.Lease, Nonce: m.Nonce + wrong, Granted: x < 200, HardTTL: ttl, Cancel: forge.CancelReason(x / 64), Refused: forge.RefusedExpired,
		}
	case *forge.PhaseChange:
		f.Body = &forge.PhaseAck{Attempt: m.Context.Attempt, Seq: m.Seq}
	case *forge.LogFinal:
		f.Body = &forge.LogFinalAck{Attempt: m.Context.Attempt}
	case *forge.Completion:
		f.Body = &forge.CompletionAck{Attempt: m.Context.Attempt, Message: m.Message, Answer: forge.CompletionAnswer(1 + y%4)}
	case *forge.RecoverAttempts:
		f.Body = &forge.RecoveryDecisions{}
	default:
		f.Body = &forge.Drain{}
	}
	if y == 255 {
		f.Body = &forge.Error{Code: forge.ErrorCode(1 + x%5)}
	}
	return f
}

// word is something that a daemon says by itself, or by mistake.
func (z *mad) word(kind, x, y byte) forge.Message {
	c := context(x % 8)
	switch kind % 24 {
	case 17, 23:
		return &forge.LeaseOffer{Context: c, Spec: encode(spec())[y/255:]}
	case 18:
		return &forge.Cancel{Attempt: c.Attempt, Lease: c.Lease, Reason: forge.CancelReason(y % 4)}
	case 19:
		return &forge.GoAway{After: time.Duration(y) * time.Second, Spread: time.Duration(x) * time.Second}
	case 20:
		return &forge.RefreshCapabilities{}
	case 21:
		return &forge.LogAck{Attempt: c.Attempt, Next: forge.LogSeq(y % 20)}
	default:
		all := []forge.Message{
			&forge.LogFinalAck{Attempt: c.Attempt}, &forge.LeaseAcceptAck{Lease: c.Lease}, &forge.ResyncReply{}, &forge.RecoveryDecisions{},
			&forge.HeartbeatAck{Verdicts: []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictStale}}}, &forge.Register{},
			&forge.RegistrationAccepted{}, &forge.CompletionAck{Attempt: c.Attempt}, &forge.Error{}, &forge.PhaseAck{}, nil,
		}
		return all[int(y)%len(all)]
	}
}

// step feeds one event and checks what must hold after each.
func (z *mad) step(e core.Event) {
	z.t.Helper()
	for _, effect := range z.a.Step(z.now, e) {
		switch e := effect.(type) {
		case core.Dial:
			z.seq = e.Seq
		case core.Transmit:
			z.asked = append(z.asked, e.Frame)
			z.checkNonce(e.Frame.Body)
		case core.WriteRecord:
			if z.version == nil {
				z.version = map[forge.AttemptID]uint64{}
			}
			z.version[e.Record.Context.Attempt] = e.Record.Version
		case core.Prepare:
			if z.started == nil {
				z.started = map[forge.AttemptID]bool{}
			}
			if z.started[e.Context.Attempt] {
				z.t.Fatalf("attempt %v is prepared twice", e.Context.Attempt)
			}
			z.started[e.Context.Attempt] = true
		case core.Exit:
			z.over = true
		}
	}
	held := z.a.Held()
	if len(held) > config().Slots {
		z.t.Fatalf("%d attempts are held in %d slots", len(held), config().Slots)
	}
	for i, h := range held {
		if h.State > forge.AttemptOffered && !h.Granted {
			z.t.Fatalf("attempt %v is %v without a grant", h.Context.Attempt, h.State)
		}
		for _, other := range held[:i] {
			if other.Context.Lease == h.Context.Lease {
				z.t.Fatalf("lease %v is held twice", h.Context.Lease)
			}
		}
	}
}

// checkNonce: no two transmissions share a nonce.
func (z *mad) checkNonce(m forge.Message) {
	var nonce forge.Nonce
	switch m := m.(type) {
	case *forge.Resync:
		nonce = m.Nonce
	case *forge.Heartbeat:
		nonce = m.Nonce
	case *forge.LeaseAccept:
		nonce = m.Nonce
	default:
		return
	}
	if z.nonces == nil {
		z.nonces = map[forge.Nonce]bool{}
	}
	if z.nonces[nonce] || nonce == 0 {
		z.t.Fatalf("nonce %d of %T is not new", nonce, m)
	}
	z.nonces[nonce] = true
}

// settle lets the clock ring on a world that says nothing any more: it must come to rest, or ring ever later.
func (z *mad) settle() {
	z.t.Helper()
	for rings := 0; !z.over && rings < 200; rings++ {
		wake := z.a.Wake()
		if wake == forge.Never {
			return
		}
		before := z.now
		z.now = max(z.now, wake)
		z.step(core.Tick{})
		if z.now == before && z.a.Wake() <= z.now && rings > 20 {
			z.t.Fatalf("the clock rings without end at %v", z.now.Sub(start))
		}
	}
}
