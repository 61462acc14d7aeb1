package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// What the runner's owner asks for: drain, resume, stop, end now; and what a new process makes of an old one's leases.

func TestADrainingAgentTakesNothingNewAndEndsWhatItHas(t *testing.T) {
	for name, event := range map[string]func(a *agent){
		"owner":  func(a *agent) { a.step(core.Command{Kind: core.CommandDrain}) },
		"daemon": func(a *agent) { a.receive(&forge.Drain{}) },
	} {
		t.Run(name, func(t *testing.T) {
			a := online(t)
			c := a.running(1)
			event(a)
			if a.core.State() != forge.AgentDraining {
				t.Fatalf("the agent is %v", a.core.State())
			}
			a.offer(2)
			if _, m := sent[*forge.LeaseReject](a); m.Reason != forge.RejectDraining {
				t.Fatalf("%+v", m)
			}
			a.reconnect()
			if name == "daemon" {
				event(a) // a daemon says it again on every connection, or has changed its mind
			}
			if a.core.State() != forge.AgentDraining {
				t.Fatalf("after a reconnect the agent is %v", a.core.State())
			}
			if m := a.beat(); m.State != forge.AgentDraining || len(m.Attempts) != 1 {
				t.Fatalf("%+v", m)
			}
			a.ends(c, core.WorkloadEnded{})
			a.complete(c)
			a.ackLog(c)
			a.sealed(c)
			a.ack(forge.CompletionAccepted)
			a.step(core.CleanedUp{Attempt: c.Attempt})
			no[core.Exit](a, "for a drain")
		})
	}
}

// TestADrainIsSaidAtOnce: a person who drains the machine looks at the daemon next, and the daemon would go on with offers
// until the next heartbeat fell due.
func TestADrainIsSaidAtOnce(t *testing.T) {
	said := func(a *agent, state forge.AgentState) {
		t.Helper()
		f, m := sent[*forge.Heartbeat](a)
		if m.State != state {
			t.Fatalf("the heartbeat says %v", m.State)
		}
		a.answer(f.ID, &forge.HeartbeatAck{Nonce: m.Nonce})
	}
	a := online(t)
	a.running(1)
	notSent[*forge.Heartbeat](a, "before anything has changed")
	a.step(core.Command{Kind: core.CommandDrain})
	said(a, forge.AgentDraining)
	a.step(core.Command{Kind: core.CommandDrain})
	notSent[*forge.Heartbeat](a, "for a drain that changes nothing")
	a.reconnect()
	said(a, forge.AgentDraining)
	a.step(core.Command{Kind: core.CommandResume})
	said(a, forge.AgentOnline)
	a.step(core.Command{Kind: core.CommandStop})
	said(a, forge.AgentShuttingDown)
}

func TestADrainEnds(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandDrain})
	a.step(core.Command{Kind: core.CommandResume})
	a.accepted(1)
	a.receive(&forge.Drain{})
	a.receive(&forge.Resume{})
	a.accepted(2)
	if a.core.State() != forge.AgentOnline {
		t.Fatalf("the agent is %v", a.core.State())
	}
}

func TestADrainOfTheOwnerIsNotEndedByTheDaemonNorTheOtherWayRound(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandDrain})
	a.receive(&forge.Drain{})
	a.receive(&forge.Resume{})
	if a.core.State() != forge.AgentDraining {
		t.Fatalf("the daemon's resume ends the owner's drain: %v", a.core.State())
	}
	a.receive(&forge.Drain{})
	a.step(core.Command{Kind: core.CommandResume})
	if a.core.State() != forge.AgentDraining {
		t.Fatalf("the owner's resume ends the daemon's drain: %v", a.core.State())
	}
	a.reconnect() // a resume that got lost with the old connection
	if a.core.State() != forge.AgentOnline {
		t.Fatalf("a daemon's drain outlives its connection: %v", a.core.State())
	}
	a.accepted(1)
}

func TestAStoppingAgentEndsWhenItHoldsNothing(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.step(core.Command{Kind: core.CommandStop})
	a.step(core.Command{Kind: core.CommandResume}) // it stays
	if a.core.State() != forge.AgentShuttingDown {
		t.Fatalf("the agent is %v", a.core.State())
	}
	a.offer(2)
	sent[*forge.LeaseReject](a)
	a.ends(c, core.WorkloadEnded{})
	a.complete(c)
	a.ackLog(c)
	a.sealed(c)
	a.ack(forge.CompletionAccepted)
	no[core.Exit](a, "before everything is removed")
	a.step(core.CleanedUp{Attempt: c.Attempt})
	if e := effect[core.Exit](a); e.Code != core.ExitStopped {
		t.Fatalf("exit %d", e.Code)
	}
	a.stopped(t)
}

func TestAnIdleAgentStopsAtOnce(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandStop})
	if e := effect[core.Exit](a); e.Code != core.ExitStopped {
		t.Fatalf("exit %d", e.Code)
	}
}

func TestAStoppingAgentEndsWhenItsOfferIsRefused(t *testing.T) {
	a := online(t)
	c := a.offer(1)
	a.step(core.Command{Kind: core.CommandStop})
	no[core.Exit](a, "while an acceptance is on its way")
	f, m := sent[*forge.LeaseAccept](a)
	a.answer(f.ID, &forge.LeaseAcceptAck{Lease: c.Lease, Nonce: m.Nonce, Refused: forge.RefusedCancelled})
	effect[core.Exit](a)
}

func TestAForcedEndWaitsForNothing(t *testing.T) {
	a := online(t)
	a.running(1)
	a.step(core.Command{Kind: core.CommandStop})
	a.step(core.Command{Kind: core.CommandForce})
	if e := effect[core.Exit](a); e.Code != core.ExitForced {
		t.Fatalf("exit %d", e.Code)
	}
	a.stopped(t)
}

func TestANewProcessReportsWhatTheOldOneHeldAndTakesUpNothingOfIt(t *testing.T) {
	previous := []core.Record{record(1, forge.AttemptRunning), record(2, forge.AttemptUploading), record(3, forge.AttemptCompleting)}
	a := newAgent(t, previous...)
	a.begin()
	a.connect()
	if m := a.register(); m.Session == previous[0].Context.Session {
		t.Fatal("the new process has the old session")
	}
	if m := a.resync(); len(m.Attempts) > 0 {
		t.Fatalf("leases of another session are named: %+v", m.Attempts)
	}
	f, m := sent[*forge.RecoverAttempts](a)
	want := &forge.RecoverAttempts{Runner: runner, Session: session, Previous: []forge.RecoveredAttempt{
		{Context: previous[0].Context, Killed: true},
		{Context: previous[1].Context, Killed: true}, // its completion was not whole
		{Context: previous[2].Context, Killed: true, Completion: previous[2].Completion.Message, Hash: previous[2].Completion.Hash},
	}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Fatal(diff)
	}
	no[core.CleanUp](a, "before the daemon has decided")
	a.answer(f.ID, &forge.RecoveryDecisions{Decisions: []forge.RecoveryDecision{
		{Verdict: forge.RecoveryEnded}, {Verdict: forge.RecoveryWaits}, {Verdict: forge.RecoveryApplied},
	}})
	for _, r := range previous {
		if u := effect[core.CleanUp](a); u.Attempt != r.Context.Attempt {
			t.Fatalf("%+v", u)
		}
		no[core.DropRecord](a, "before everything is removed")
		a.step(core.CleanedUp{Attempt: r.Context.Attempt})
		effect[core.DropRecord](a)
	}
	if m := a.beat(); len(m.Attempts) > 0 {
		t.Fatalf("%+v", m.Attempts)
	}
	notSent[*forge.Completion](a, "of an old session")
	a.reconnect()
	notSent[*forge.Completion](a, "of an old session")
	notSent[*forge.RecoverAttempts](a, "after the decision")
}

func TestAReportThatWasNotAnsweredIsRepeated(t *testing.T) {
	a := newAgent(t, record(1, forge.AttemptRunning))
	a.begin()
	a.connect()
	a.register()
	a.resync()
	for range 3 {
		a.reconnect()
		if _, m := sent[*forge.RecoverAttempts](a); len(m.Previous) != 1 {
			t.Fatalf("%+v", m)
		}
	}
}

func TestALongReportIsMadeInParts(t *testing.T) {
	var previous []core.Record
	for n := range forge.MaxRecovered + 5 {
		r := record(1, forge.AttemptRunning)
		r.Context.Attempt.ULID[14], r.Context.Attempt.ULID[13] = byte(n), byte(n>>8)
		previous = append(previous, r)
	}
	a := newAgent(t, previous...)
	a.begin()
	a.connect()
	a.register()
	a.resync()
	var named []forge.AttemptID
	for _, n := range []int{forge.MaxRecovered, 5} {
		f, m := sent[*forge.RecoverAttempts](a)
		if len(m.Previous) != n {
			t.Fatalf("%d attempts in one report", len(m.Previous))
		}
		for _, p := range m.Previous {
			named = append(named, p.Context.Attempt)
		}
		a.answer(f.ID, &forge.RecoveryDecisions{})
	}
	for i, r := range previous {
		if named[i] != r.Context.Attempt {
			t.Fatalf("attempt %d is another", i)
		}
	}
	a.until(time.Minute)
	notSent[*forge.RecoverAttempts](a, "after everything was decided")
}
