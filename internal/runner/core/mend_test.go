package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// What a daemon cannot answer, or never hears, must leave nothing behind that waits for ever.

func TestAnErrorInPlaceOfAnAnswerIsFollowedByAnotherConnection(t *testing.T) {
	for _, test := range []struct {
		name string
		ask  func(a *agent) forge.Frame
	}{
		{"register", func(a *agent) forge.Frame { a.connect(); f, _ := sent[*forge.Register](a); return f }},
		{"resync", func(a *agent) forge.Frame { a.connect(); a.register(); f, _ := sent[*forge.Resync](a); return f }},
		{"recover", func(a *agent) forge.Frame {
			a.connect()
			a.register()
			a.resync()
			f, _ := sent[*forge.RecoverAttempts](a)
			return f
		}},
		{"accept", func(a *agent) forge.Frame {
			a.connect()
			a.register()
			a.resync()
			f, _ := sent[*forge.RecoverAttempts](a)
			a.answer(f.ID, &forge.RecoveryDecisions{})
			a.offer(1)
			f, _ = sent[*forge.LeaseAccept](a)
			return f
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAgent(t, record(2, forge.AttemptRunning))
			a.begin()
			f := test.ask(a)
			a.answer(f.ID, &forge.Error{Code: forge.ErrorInternal, Retry: forge.RetryBackoff})
			a.until(policy.Request)
			if l := effect[core.CloseLink](a); l.Seq != a.seq {
				t.Fatalf("closed connection %d", l.Seq)
			}
			a.connect()
			a.register()
			a.resync()
		})
	}
}

func TestAnErrorToWhatIsSaidAgainAnywayEndsNothing(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.until(policy.Renew)
	f, _ := sent[*forge.Heartbeat](a)
	a.answer(f.ID, &forge.Error{Code: forge.ErrorRate})
	a.beat()
	a.is(c, forge.AttemptRunning)
	no[core.CloseLink](a, "for a heartbeat that was one too many")
}

// Case T11: a daemon that answers every heartbeat and renews nothing is as good as none.
func TestThreeHeartbeatsInARowThatGetNoAcknowledgementEndTheConnection(t *testing.T) {
	a := online(t)
	c := a.running(1)
	refuse := func() {
		f, _ := a.nextBeat()
		a.answer(f.ID, &forge.Error{Code: forge.ErrorInternal, Retry: forge.RetryBackoff})
	}
	for range 3 { // one that is acknowledged begins the count anew
		refuse()
		refuse()
		a.beat()
	}
	no[core.CloseLink](a, "although the heart beats now and then")
	refuse()
	refuse()
	no[core.CloseLink](a, "for two in a row")
	refuse()
	if l := effect[core.CloseLink](a); l.Seq != a.seq || l.Reason != forge.CloseInternal {
		t.Fatalf("closed connection %d for %v", l.Seq, l.Reason)
	}
	a.connect()
	a.register()
	a.resync()
	a.is(c, forge.AttemptRunning)
	refuse()
	refuse()
	no[core.CloseLink](a, "for what was said on the connection before")
}

// The connection ended before the rejection arrived; the store has the lease as accepted, and the agent cleans up.
func TestALeaseThatWasGivenBackIsGivenBackAgainByTheResync(t *testing.T) {
	for _, stage := range stages[1:3] {
		t.Run(stage.state.String(), func(t *testing.T) {
			a := online(t)
			c := stage.reach(a, 1)
			a.lose(forge.CloseLost)
			a.step(core.Command{Kind: core.CommandReject, Attempt: c.Attempt, Reason: forge.RejectPreparation})
			if stage.state == forge.AttemptPreparing {
				a.ends(c, core.WorkloadEnded{})
			}
			effect[core.CleanUp](a)
			a.connect()
			a.register()
			a.resync()
			if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectPreparation {
				t.Fatalf("%+v", m)
			}
			a.step(core.CleanedUp{Attempt: c.Attempt})
			a.gone(c)
		})
	}
}

func TestOnlyWhatWasNotStartedIsGivenBack(t *testing.T) {
	for _, stage := range stages {
		t.Run(stage.state.String(), func(t *testing.T) {
			a := online(t)
			c := stage.reach(a, 1)
			a.sent = nil
			a.step(core.Command{Kind: core.CommandReject, Attempt: c.Attempt, Reason: forge.RejectResourcePressure})
			if stage.state == forge.AttemptPreparing {
				effect[core.Kill](a)
				notSent[*forge.LeaseReject](a, "while something of it may live")
				a.step(core.Prepared{Attempt: c.Attempt})
				no[core.Start](a, "for a lease that is given back")
				a.ends(c, core.WorkloadEnded{})
			}
			if stage.state >= forge.AttemptRunning {
				notSent[*forge.LeaseReject](a, "for what was started")
				a.is(c, stage.state)
				return
			}
			if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectResourcePressure {
				t.Fatalf("%+v", m)
			}
			no[core.Prepare](a, "for a lease that is given back")
		})
	}
}

// The word to start was out already when the lease was to be given back: then the workload ran, and our kill is not its
// author's failure.
func TestAWorkloadThatStartedWhileItWasGivenBackIsInterrupted(t *testing.T) {
	a := online(t)
	c := a.preparing(1)
	a.step(core.Prepared{Attempt: c.Attempt})
	a.step(core.Command{Kind: core.CommandReject, Attempt: c.Attempt, Reason: forge.RejectResourcePressure})
	a.step(core.WorkloadStarted{Attempt: c.Attempt})
	a.ends(c, core.WorkloadEnded{Result: forge.Result{Class: forge.Signal, Signal: 9}})
	notSent[*forge.LeaseReject](a, "for what was started")
	if h := a.is(c, forge.AttemptUploading); h.Frozen.Outcome() != forge.Interrupted {
		t.Fatalf("it ends as %v", h.Frozen.Outcome())
	}
}

func TestAWriterThatIsSlowHoldsUpNothingForLong(t *testing.T) {
	a := online(t)
	c := a.running(1)
	for range 20 {
		a.blocked = true
		a.until(9 * time.Second)
		a.unblock()
		for hasSent[*forge.Heartbeat](a) {
			a.beat()
		}
	}
	a.is(c, forge.AttemptRunning)
	no[core.Kill](a, "although the heart beats in time")
}
