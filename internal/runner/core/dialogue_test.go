package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// The order of things: leftovers are killed, then a connection is dialled, then register, resync, everything else.

func TestAProcessKillsLeftoversBeforeItDials(t *testing.T) {
	a := newAgent(t)
	a.step(core.Started{})
	effect[core.KillLeftovers](a)
	a.step(core.Reconnect{})
	a.until(time.Hour)
	no[core.Dial](a, "while an orphan may be alive")
	a.step(core.LeftoversKilled{})
	effect[core.Dial](a)
}

func TestAnAgentRegistersThenResyncsThenSpeaks(t *testing.T) {
	a := newAgent(t, record(1, forge.AttemptRunning))
	a.begin()
	a.connect()
	a.step(core.Command{Kind: core.CommandAdmission, Admission: other()})
	a.until(9 * time.Second)
	if diff := cmp.Diff([]string{"*forge.Register"}, kinds(a.sent)); diff != "" {
		t.Fatal(diff)
	}
	a.register()
	a.step(core.Command{Kind: core.CommandAdmission, Admission: machine()})
	a.until(9 * time.Second)
	if diff := cmp.Diff([]string{"*forge.Resync"}, kinds(a.sent)); diff != "" {
		t.Fatal(diff)
	}
	a.resync()
	if diff := cmp.Diff([]string{"*forge.RecoverAttempts", "*forge.CapabilityUpdate"}, kinds(a.sent)); diff != "" {
		t.Fatal(diff)
	}
	if a.core.State() != forge.AgentOnline {
		t.Fatalf("the agent is %v", a.core.State())
	}
}

func TestARegistrationSaysWhoIsThere(t *testing.T) {
	a := newAgent(t)
	a.begin()
	for seq := uint64(1); seq <= 2; seq++ {
		a.connect()
		m := a.register()
		want := &forge.Register{
			Runner: runner, Session: session, StateFolder: config().StateFolder, Boot: config().Boot, StartCounter: 7,
			TransportSeq: seq, Version: "test", Capabilities: machine().Capabilities,
			CapabilityDigest: machine().Capabilities.Digest(),
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Fatal(diff)
		}
		a.lose(forge.CloseLost)
	}
}

func TestAConnectionThatWasNotAskedForIsClosed(t *testing.T) {
	a := online(t)
	a.step(core.Connected{Seq: a.seq + 7})
	if c := effect[core.CloseLink](a); c.Seq != a.seq+7 {
		t.Fatalf("closed connection %d", c.Seq)
	}
	a.beat()
}

func TestOnlyTheNewestConnectionIsListenedTo(t *testing.T) {
	a := online(t)
	old := a.seq
	c := a.running(1)
	a.step(core.Reconnect{})
	a.connect()
	a.forget()
	for _, m := range []forge.Message{
		&forge.LeaseOffer{Context: context(2), Spec: encode(spec())},
		&forge.Cancel{Attempt: c.Attempt, Lease: c.Lease, Reason: forge.CancelUser},
		&forge.RegistrationRejected{Reason: forge.CloseRevoked},
		&forge.HeartbeatAck{Verdicts: []forge.LeaseVerdict{stale(c)}},
		&forge.Drain{}, &forge.GoAway{}, &forge.RefreshCapabilities{},
	} {
		a.step(core.Received{Seq: old, Frame: a.frame(forge.MessageID{}, m)})
	}
	a.step(core.Writable{Seq: old})
	a.step(core.Closed{Seq: old, Reason: forge.CloseRevoked})
	if len(a.effects)+len(a.sent) > 0 {
		t.Fatalf("an older connection was listened to: %v, %v", a.effects, kinds(a.sent))
	}
	a.is(c, forge.AttemptRunning)
	if len(a.core.Held()) != 1 {
		t.Fatalf("%d attempts are held", len(a.core.Held()))
	}
}

func TestTheOldConnectionStandsUntilTheNewOneIsRegistered(t *testing.T) {
	a := online(t)
	old := a.seq
	a.step(core.Reconnect{})
	a.connect()
	f, _ := sent[*forge.Register](a)
	no[core.CloseLink](a, "before the new connection speaks for the runner")
	a.answer(f.ID, &forge.RegistrationAccepted{Policy: policy})
	if c := effect[core.CloseLink](a); c.Seq != old || c.Reason != forge.CloseNormal {
		t.Fatalf("closed connection %d: %v", c.Seq, c.Reason)
	}
}

func TestARequestThatIsNotAnsweredInTimeEndsTheConnection(t *testing.T) {
	for _, test := range []struct {
		name string
		wait func(a *agent)
	}{
		{"register", func(a *agent) { a.connect() }},
		{"resync", func(a *agent) { a.connect(); a.register() }},
		{"accept", func(a *agent) { a.connect(); a.register(); a.resync(); a.offer(1) }},
		{"recover", func(a *agent) { a.connect(); a.register(); a.resync() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAgent(t)
			if test.name == "recover" {
				a = newAgent(t, record(1, forge.AttemptRunning))
			}
			a.begin()
			test.wait(a)
			a.until(policy.Request - 1)
			no[core.CloseLink](a, "while the answer may come in time")
			a.until(1)
			if c := effect[core.CloseLink](a); c.Seq != a.seq || c.Reason != forge.CloseLost {
				t.Fatalf("closed connection %d: %v", c.Seq, c.Reason)
			}
			a.dial()
		})
	}
}

// record is what the journal of an earlier process has of job n.
func record(n byte, state forge.AttemptState) core.Record {
	c := context(n)
	c.Session = forge.AgentSessionID{ULID: forge.ULID{0: 'O'}}
	r := core.Record{Context: c, Version: 1, State: state}
	if state >= forge.AttemptUploading {
		r.Completion = &forge.Completion{Context: c, Message: forge.MessageID{ULID: forge.ULID{0: 'M', 15: n}}, Capture: forge.Succeeded}
		r.Completion.Result.Class = forge.Succeeded
		r.Completion.Hash = r.Completion.ResultHash()
	}
	return r
}

// other is a machine with a GPU.
func other() forge.Admission {
	m := machine()
	m.Capabilities.Devices = []forge.DeviceCount{{Kind: "gpu", Count: 1}}
	return m
}
