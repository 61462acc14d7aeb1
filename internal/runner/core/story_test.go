package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// agent drives a core through a story. It is the shell and the daemon in one: it keeps what the core wants done until
// the story asks for it, writes every frame at once unless the control stream is blocked, and acknowledges phases.
type agent struct {
	t       *testing.T
	core    *core.Agent
	now     forge.Instant
	policy  forge.LeasePolicy // that the daemon tells
	ttl     time.Duration     // that each answer of the scripted daemon grants
	seq     uint64            // of the newest connection
	blocked bool              // the control stream takes nothing
	wants   int               // Wants that were not answered yet
	sent    []forge.Frame
	effects []core.Effect            // everything else
	frames  byte                     // counts the frames of the daemon
	acked   map[forge.MessageID]bool // phases
}

var (
	runner  = forge.RunnerID{ULID: forge.ULID{0: 'R'}}
	session = forge.AgentSessionID{ULID: forge.ULID{0: 'S'}}
	policy  = forge.DefaultLeasePolicy()
)

// start is where every story's clock begins: nowhere near zero.
const start = forge.Instant(1000 * time.Hour)

func machine() forge.Admission {
	roomy := forge.Resources{CPU: 64_000, Memory: 256 * forge.GiB, Disk: 1024 * forge.GiB, Slots: 16}
	return forge.Admission{
		Capabilities: forge.Capabilities{
			SchemaVersion: 1, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
			Resources: roomy, Sandboxes: []forge.Sandbox{{Kind: forge.SandboxNative}},
		},
		Free: roomy,
	}
}

func config() core.Config {
	return core.Config{
		Runner: runner, Session: session, StateFolder: forge.StateFolderID{ULID: forge.ULID{0: 'F'}},
		Boot: forge.BootID{ULID: forge.ULID{0: 'B'}}, StartCounter: 7, Version: "test",
		Admission: machine(), Slots: 3, Endpoints: 3, Seed: 42,
	}
}

// newAgent returns a fresh process that was not started yet.
func newAgent(t *testing.T, previous ...core.Record) *agent {
	return newAgentWith(t, config(), previous...)
}

func newAgentWith(t *testing.T, cfg core.Config, previous ...core.Record) *agent {
	return &agent{t: t, core: core.New(cfg, policy, previous), now: start, policy: policy, ttl: time.Minute, acked: map[forge.MessageID]bool{}}
}

// online returns a process that is registered and resynced.
func online(t *testing.T) *agent {
	a := newAgent(t)
	a.begin()
	a.connect()
	a.register()
	a.resync()
	return a
}

// step feeds an event and keeps what comes back.
func (a *agent) step(e core.Event) {
	a.t.Helper()
	for _, effect := range slices.Clone(a.core.Step(a.now, e)) {
		switch e := effect.(type) {
		case core.Want:
			a.wants++
		case core.Transmit:
			if e.Seq != a.seq {
				a.t.Fatalf("%T goes to connection %d, the newest is %d", e.Frame.Body, e.Seq, a.seq)
			}
			a.sent = append(a.sent, e.Frame)
		default:
			a.effects = append(a.effects, effect)
		}
	}
	if a.wants > 1 {
		a.t.Fatalf("%d Wants await one Writable", a.wants)
	}
	if a.wants == 1 && !a.blocked {
		a.write()
	}
	a.ackPhases()
}

// ackPhases answers every phase that was not answered yet. The frames stay to be looked at.
func (a *agent) ackPhases() {
	a.t.Helper()
	for _, f := range slices.Clone(a.sent) {
		if m, ok := f.Body.(*forge.PhaseChange); ok && !a.acked[f.ID] {
			a.acked[f.ID] = true
			a.answer(f.ID, &forge.PhaseAck{Attempt: m.Context.Attempt, Seq: m.Seq})
		}
	}
}

// write lets the control stream take one frame.
func (a *agent) write() {
	a.t.Helper()
	if a.wants == 0 {
		a.t.Fatal("nothing wants to be written")
	}
	a.wants--
	a.step(core.Writable{Seq: a.seq})
}

// unblock writes everything that waits.
func (a *agent) unblock() {
	a.t.Helper()
	a.blocked = false
	for a.wants > 0 {
		a.write()
	}
}

// tick lets time pass, and the clock ring at its end.
func (a *agent) tick(d time.Duration) {
	a.t.Helper()
	a.now = a.now.Add(d)
	a.step(core.Tick{})
}

// until rings the clock whenever the core asked for it, up to a moment from now.
func (a *agent) until(d time.Duration) {
	a.t.Helper()
	end := a.now.Add(d)
	for rings := 0; a.core.Wake() <= end; rings++ {
		if rings > 10_000 {
			a.t.Fatalf("the clock rings without end at %v", a.now.Sub(start))
		}
		a.now = max(a.now, a.core.Wake())
		a.step(core.Tick{})
	}
	a.now = end
}

// begin starts the process and kills what an earlier one left.
func (a *agent) begin() {
	a.t.Helper()
	a.step(core.Started{})
	effect[core.KillLeftovers](a)
	a.step(core.LeftoversKilled{})
}

// dial waits until the core dials.
func (a *agent) dial() core.Dial {
	a.t.Helper()
	for rings := 0; !has[core.Dial](a); rings++ {
		if rings > 1000 || a.core.Wake() == forge.Never {
			a.t.Fatal("the core does not dial")
		}
		a.now = max(a.now, a.core.Wake())
		a.step(core.Tick{})
	}
	return effect[core.Dial](a)
}

// connect lets the next dial succeed. What was to be written on the connection before is gone.
func (a *agent) connect() {
	a.t.Helper()
	a.seq = a.dial().Seq
	a.wants, a.sent = 0, nil
	a.step(core.Connected{Seq: a.seq})
}

// lose ends the newest connection.
func (a *agent) lose(reason forge.CloseReason) {
	a.t.Helper()
	a.step(core.Closed{Seq: a.seq, Reason: reason})
}

// receive brings a frame of the daemon on the newest connection.
func (a *agent) receive(m forge.Message) { a.t.Helper(); a.answer(forge.MessageID{}, m) }

func (a *agent) answer(re forge.MessageID, m forge.Message) {
	a.t.Helper()
	a.step(core.Received{Seq: a.seq, Frame: a.frame(re, m)})
}

func (a *agent) frame(re forge.MessageID, m forge.Message) forge.Frame {
	a.frames++
	return forge.Frame{ID: forge.MessageID{ULID: forge.ULID{0: 'D', 15: a.frames}}, Re: re, Body: m}
}

// register accepts the registration.
func (a *agent) register() *forge.Register {
	a.t.Helper()
	f, m := sent[*forge.Register](a)
	a.answer(f.ID, &forge.RegistrationAccepted{Policy: a.policy})
	return m
}

// resync answers the resync: every lease goes on, but for the verdicts that are given.
func (a *agent) resync(verdicts ...forge.LeaseVerdict) *forge.Resync {
	a.t.Helper()
	f, m := sent[*forge.Resync](a)
	reply := &forge.ResyncReply{Nonce: m.Nonce}
	for _, item := range m.Attempts {
		reply.Verdicts = append(reply.Verdicts, a.verdict(item.Lease, verdicts))
	}
	a.answer(f.ID, reply)
	return m
}

// nextBeat waits for a heartbeat, which is not answered yet.
func (a *agent) nextBeat() (forge.Frame, *forge.Heartbeat) {
	a.t.Helper()
	for rings := 0; !hasSent[*forge.Heartbeat](a); rings++ {
		if rings > 1000 {
			a.t.Fatal("the heart does not beat")
		}
		a.now = max(a.now, a.core.Wake())
		a.step(core.Tick{})
	}
	return sent[*forge.Heartbeat](a)
}

// beat lets the heart beat and answers it like resync.
func (a *agent) beat(verdicts ...forge.LeaseVerdict) *forge.Heartbeat {
	a.t.Helper()
	f, m := a.nextBeat()
	reply := &forge.HeartbeatAck{Nonce: m.Nonce}
	for _, item := range m.Attempts {
		reply.Verdicts = append(reply.Verdicts, a.verdict(item.Lease, verdicts))
	}
	a.answer(f.ID, reply)
	return m
}

func (a *agent) verdict(id forge.LeaseID, given []forge.LeaseVerdict) forge.LeaseVerdict {
	for _, v := range given {
		if v.Lease == id {
			return v
		}
	}
	return forge.LeaseVerdict{Lease: id, Verdict: forge.VerdictContinue, HardTTL: a.ttl}
}

// reconnect loses the connection and resyncs on another.
func (a *agent) reconnect(verdicts ...forge.LeaseVerdict) *forge.Resync {
	a.t.Helper()
	a.lose(forge.CloseLost)
	a.connect()
	a.register()
	return a.resync(verdicts...)
}

// context is job n's, offered to this session.
func context(n byte) forge.AttemptContext {
	id := func(kind byte) forge.ULID { return forge.ULID{0: kind, 15: n} }
	return forge.AttemptContext{
		Job: forge.JobID{ULID: id('J')}, Attempt: forge.AttemptID{ULID: id('A')}, Lease: forge.LeaseID{ULID: id('L')},
		Spec: jobspec.ID(encode(spec())), Runner: runner, Session: session,
	}
}

func spec() forge.JobSpec {
	s := forge.DefaultJobSpec()
	s.Job = "build"
	s.Steps = []forge.Step{{Name: "work", Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	return s
}

func encode(s forge.JobSpec) []byte {
	b, err := jobspec.Encode(s)
	if err != nil {
		panic(err)
	}
	return b
}

// offer offers job n.
func (a *agent) offer(n byte) forge.AttemptContext {
	a.t.Helper()
	c := context(n)
	a.receive(&forge.LeaseOffer{Context: c, Spec: encode(spec())})
	return c
}

// grant answers the acceptance of a lease.
func (a *agent) grant(c forge.AttemptContext) *forge.LeaseAccept {
	a.t.Helper()
	f, m := sent[*forge.LeaseAccept](a)
	if m.Context != c {
		a.t.Fatalf("accepted %v, expected %v", m.Context, c)
	}
	a.answer(f.ID, &forge.LeaseAcceptAck{Lease: c.Lease, Nonce: m.Nonce, Granted: true, HardTTL: a.ttl})
	return m
}

// journal makes the latest record durable.
func (a *agent) journal() core.Record {
	a.t.Helper()
	r := effect[core.WriteRecord](a).Record
	a.step(core.Journaled{Attempt: r.Context.Attempt, Version: r.Version})
	return r
}
