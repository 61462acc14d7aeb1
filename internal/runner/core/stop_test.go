package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// Why a workload ends before its time, and what it is called then.

func cancel(c forge.AttemptContext, reason forge.CancelReason) *forge.Cancel {
	return &forge.Cancel{Attempt: c.Attempt, Lease: c.Lease, Reason: reason}
}

// Without a renewal the kill begins three seconds before the deadline, softly, and is hard two seconds later.
func TestTheWatchdogBitesBeforeTheDeadlineWhateverTheExitCode(t *testing.T) {
	for _, stage := range stages[2:4] {
		t.Run(stage.state.String(), func(t *testing.T) {
			a := online(t)
			c := stage.reach(a, 1)
			deadline := a.is(c, stage.state).Deadline
			a.lose(forge.CloseLost)
			a.until(deadline.Sub(a.now) - policy.KillLead - 1)
			no[core.Kill](a, "before it is time")
			a.until(1)
			if k := effect[core.Kill](a); !k.Bite || !k.Soft || k.Attempt != c.Attempt {
				t.Fatalf("%+v", k)
			}
			a.until(policy.SoftGrace)
			if k := effect[core.Kill](a); !k.Bite || k.Soft {
				t.Fatalf("%+v", k)
			}
			if a.now >= deadline {
				t.Fatal("the hard kill comes at the deadline")
			}
			a.ends(c, core.WorkloadEnded{Bitten: true, StopSeen: forge.CancelUser}) // exit code 0
			if h := a.is(c, forge.AttemptUploading); h.Frozen.Outcome() != forge.Lost || h.Frozen.CancelSeen {
				t.Fatalf("it ends as %v", h.Frozen.Outcome())
			}
		})
	}
}

func TestARenewalAfterTheSoftSignalComesTooLate(t *testing.T) {
	a := online(t)
	c := a.running(1)
	deadline := a.is(c, forge.AttemptRunning).Deadline
	a.lose(forge.CloseLost)
	a.until(deadline.Sub(a.now) - policy.KillLead)
	effect[core.Kill](a)
	a.connect()
	a.register()
	a.resync()
	if got := a.is(c, forge.AttemptRunning).Deadline; got != deadline {
		t.Fatal("a renewal called the kill back")
	}
	no[core.MoveDeadline](a, "after the soft signal")
}

func TestAUserCancelStopsWhatIsThere(t *testing.T) {
	for _, stage := range stages {
		t.Run(stage.state.String(), func(t *testing.T) {
			a := online(t)
			c := stage.reach(a, 1)
			for range 2 {
				a.receive(cancel(c, forge.CancelUser))
				if _, ack := sent[*forge.CancelAck](a); ack.Attempt != c.Attempt || ack.Lease != c.Lease {
					t.Fatalf("%+v", ack)
				}
			}
			switch stage.state {
			case forge.AttemptOffered:
				a.grant(c)
				a.journal()
			case forge.AttemptAccepted:
				a.journal()
			case forge.AttemptPreparing, forge.AttemptRunning:
				if s := effect[core.Stop](a); s.Attempt != c.Attempt || s.Reason != forge.CancelUser {
					t.Fatalf("%+v", s)
				}
				a.ends(c, core.WorkloadEnded{StopSeen: forge.CancelUser, Result: forge.Result{Class: forge.Signal}})
			}
			no[core.Stop](a, "twice, or where nothing runs")
			no[core.Prepare](a, "for a cancelled job")
			h, _ := a.held(c)
			if cancelled := stage.state < forge.AttemptUploading; h.Frozen == nil || h.Frozen.CancelSeen != cancelled {
				t.Fatalf("frozen as %+v", h.Frozen)
			}
		})
	}
}

func TestACancelBeforeTheStartKeepsTheWorkloadFromStarting(t *testing.T) {
	a := online(t)
	c := a.preparing(1)
	a.receive(cancel(c, forge.CancelUser))
	a.step(core.Prepared{Attempt: c.Attempt})
	no[core.Start](a, "after a cancel")
}

func TestACancelOfAnotherAttemptStopsNothing(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.receive(&forge.Cancel{Attempt: context(2).Attempt, Lease: c.Lease, Reason: forge.CancelUser})
	a.receive(&forge.Cancel{Attempt: c.Attempt, Lease: context(2).Lease, Reason: forge.CancelUser})
	no[core.Stop](a, "for another attempt")
}

func TestACancelComesWithAnyAnswerThatGrantsTime(t *testing.T) {
	for _, test := range []struct {
		name string
		hear func(a *agent) forge.AttemptContext
	}{
		{"acceptance", func(a *agent) forge.AttemptContext {
			c := a.offer(1)
			f, m := sent[*forge.LeaseAccept](a)
			a.answer(f.ID, &forge.LeaseAcceptAck{Lease: c.Lease, Nonce: m.Nonce, Granted: true, HardTTL: a.ttl, Cancel: forge.CancelUser})
			a.journal()
			no[core.Prepare](a, "for a cancelled job")
			return c
		}},
		{"heartbeat", func(a *agent) forge.AttemptContext {
			c := a.running(1)
			a.beat(forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: a.ttl, Cancel: forge.CancelUser})
			a.ends(c, core.WorkloadEnded{StopSeen: effect[core.Stop](a).Reason})
			return c
		}},
		{"resync", func(a *agent) forge.AttemptContext {
			c := a.running(1)
			a.reconnect(forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: a.ttl, Cancel: forge.CancelUser})
			a.ends(c, core.WorkloadEnded{StopSeen: effect[core.Stop](a).Reason})
			return c
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := online(t)
			c := test.hear(a)
			if h := a.is(c, forge.AttemptUploading); h.Frozen.Outcome() != forge.Cancelled {
				t.Fatalf("it ends as %v", h.Frozen.Outcome())
			}
		})
	}
}

func TestTheReasonOfAStopNamesTheEnd(t *testing.T) {
	failed := forge.Result{Class: forge.ExitCode, ExitCode: 143}
	for _, test := range []struct {
		reason forge.CancelReason
		seen   forge.CancelReason // what had reached pid 1 in time
		want   forge.Class
	}{
		{forge.CancelUser, forge.CancelUser, forge.Cancelled},
		{forge.CancelUser, forge.CancelNone, forge.ExitCode}, // it had ended before
		{forge.CancelMaxLifetime, forge.CancelMaxLifetime, forge.TimedOut},
		{forge.CancelMaxLifetime, forge.CancelNone, forge.ExitCode},
		{forge.CancelDisabled, forge.CancelDisabled, forge.Interrupted},
	} {
		a := online(t)
		c := a.running(1)
		v := forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: a.ttl, Cancel: test.reason}
		if test.reason == forge.CancelMaxLifetime {
			v.Verdict, v.HardTTL = forge.VerdictCancel, 0
		}
		a.beat(v)
		if s := effect[core.Stop](a); s.Reason != test.reason {
			t.Fatalf("%+v", s)
		}
		a.receive(cancel(c, forge.CancelUser))
		no[core.Stop](a, "for a second reason")
		a.ends(c, core.WorkloadEnded{Result: failed, StopSeen: test.seen})
		if h := a.is(c, forge.AttemptUploading); h.Frozen.Outcome() != test.want {
			t.Errorf("%v seen as %v ends as %v, should be %v", test.reason, test.seen, h.Frozen.Outcome(), test.want)
		}
	}
}

func TestAVerdictOfCancelRenewsNothing(t *testing.T) {
	a := online(t)
	c := a.running(1)
	before := a.is(c, forge.AttemptRunning).Deadline
	a.tick(time.Second)
	a.beat(forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictCancel, HardTTL: time.Hour, Cancel: forge.CancelMaxLifetime})
	if got := a.is(c, forge.AttemptRunning).Deadline; got != before {
		t.Fatalf("the deadline moved by %v", got.Sub(before))
	}
}
