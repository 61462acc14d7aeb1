package authority

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Cancel and the expiry sweep's condition.

func TestACancelEndsAJobThatNobodyHoldsInItsOwnTransaction(t *testing.T) {
	for _, s := range []forge.JobState{forge.JobWaiting, forge.JobReady} {
		w := newWorld(t)
		id := w.anyJob()
		job := w.rows.Jobs[id]
		job.State = s
		w.rows.Jobs[id] = job
		w.must(w.run(&CancelJob{Job: id}), "cancel")
		if j := w.rows.Jobs[id]; j.State != forge.JobCancelled || j.Outcome != forge.Cancelled || !j.CancelRequested {
			t.Errorf("%v: the job is %+v", s, j)
		}
	}
}

func TestACancelOfAnOfferRevokesIt(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	answer := w.run(&CancelJob{Job: c.Job})
	if !answer.Done || answer.Context != c {
		t.Fatalf("answered %+v", answer)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobOffered || !j.CancelRequested {
		t.Fatalf("the job is %+v", j)
	}
	w.must(w.run(&Revoke{Context: c}), "revoke")
	if l, at := w.rows.Leases[c.Lease], w.rows.Attempts[c.Attempt]; l.State != forge.LeaseRevoked || at.State != forge.AttemptCancelled {
		t.Errorf("the lease is %v, its attempt %v", l.State, at.State)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobCancelled {
		t.Errorf("the job is %v", j.State)
	}
}

func TestAnOfferIsRevokedOnlyForACancelAndOnlyWhileItIsOne(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	wanted, accepted := w.offer(a, w.anyJob()), a.hold(w.anyJob())
	w.must(w.run(&CancelJob{Job: accepted.Job}), "cancel")
	w.unchanged(func() {
		for _, c := range []forge.AttemptContext{wanted, accepted, {Lease: forge.LeaseID{ULID: w.id()}}} {
			if w.run(&Revoke{Context: c}).Done {
				t.Errorf("revoked %+v", c)
			}
		}
	})
}

func TestACancelOfWhatRunsIsInEveryLaterAnswer(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	if answer := w.run(&CancelJob{Job: c.Job}); !answer.Done || answer.Context != c {
		t.Fatalf("answered %+v", answer)
	}
	if l := w.rows.Leases[c.Lease]; l.State != forge.LeaseAccepted {
		t.Fatalf("the lease is %v", l.State)
	}
	want := []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: hardTTL, Cancel: forge.CancelUser}}
	for range 3 {
		for _, answer := range []Answer{a.accept(c), a.beat(c), a.claim(c, forge.AttemptRunning)} {
			if diff := cmp.Diff(want, answer.Verdicts); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestACancelIsRepeatedWithoutHarmAndChangesNothingThatIsOver(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
	over := w.anyJob()
	w.must(w.run(&CancelJob{Job: over}), "cancel")
	w.unchanged(func() {
		w.must(w.run(&CancelJob{Job: c.Job}), "repeated cancel")
		if w.run(&CancelJob{Job: over}).Done || w.run(&CancelJob{Job: forge.JobID{ULID: w.id()}}).Done {
			t.Error("a job that is over, or none, was cancelled")
		}
	})
}

func TestACancelledJobIsNeverTriedAgainHoweverItsAttemptEnds(t *testing.T) {
	ends := map[string]func(*world, *agent, forge.AttemptContext){
		"expired": func(w *world, _ *agent, _ forge.AttemptContext) {
			w.watchFor(policy.Watch(hardTTL))
			w.sweep()
		},
		"lost": func(w *world, a *agent, c forge.AttemptContext) { w.run(&Absent{Fence: a.fence(), Context: c}) },
		"rejected": func(w *world, a *agent, c forge.AttemptContext) {
			w.run(&Reject{Fence: a.fence(), Context: c, Reason: forge.RejectPreparation})
		},
		"failed on our side": func(w *world, a *agent, c forge.AttemptContext) {
			a.complete(w.completion(c, forge.Result{Class: forge.InputFetch}))
		},
	}
	for name, end := range ends {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.job(forge.RetryPolicy{Infra: 5}))
		a.logged(c)
		w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
		end(w, a, c)
		if j := w.rows.Jobs[c.Job]; j.State != forge.JobCancelled {
			t.Errorf("%s: the job is %v", name, j.State)
		}
		if w.run(a.offered(c.Job)).Done {
			t.Errorf("%s: a cancelled job is offered", name)
		}
	}
}

func TestAResultThatSawTheCancelIsCancelled(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
	m := w.completion(c, bad)
	m.CancelSeen = true
	m.Hash = m.ResultHash()
	w.must(a.complete(m), "complete")
	if j, at := w.rows.Jobs[c.Job], w.rows.Attempts[c.Attempt]; j.State != forge.JobCancelled || at.State != forge.AttemptCancelled {
		t.Errorf("the job is %v, its attempt %v", j.State, at.State)
	}
}

func TestAResultFromBeforeTheCancelStandsButIsNotTriedAgain(t *testing.T) {
	retry := forge.RetryPolicy{Max: 5, On: []forge.RetryWord{forge.RetryExit}}
	for want, result := range map[forge.JobState]forge.Result{forge.JobSucceeded: good, forge.JobFailed: bad} {
		w, a, c := ready(t, retry)
		w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
		w.must(a.complete(w.completion(c, result)), "complete")
		if j := w.rows.Jobs[c.Job]; j.State != want || j.Outcome != result.Class {
			t.Errorf("%v: the job is %v, outcome %v", result.Class, j.State, j.Outcome)
		}
	}
}

func TestAnExpiryHoldsOnlyForTheVeryStateThatWasWatched(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	held, offered := a.hold(w.anyJob()), w.offer(a, w.anyJob())
	renewed := &Expire{Context: held, State: forge.LeaseAccepted, Renewals: w.rows.Leases[held.Lease].Renewals}
	accepted := &Expire{Context: offered, State: forge.LeaseOffered, Renewals: w.rows.Leases[offered.Lease].Renewals}
	// The end of an offer's time ends no lease that was accepted in it, whatever its counter: the state counts by itself.
	unrenewed := &Expire{Context: offered, State: forge.LeaseOffered, Renewals: 1}
	a.beat(held)
	a.accept(offered)
	w.unchanged(func() {
		for _, cmd := range []*Expire{renewed, accepted, unrenewed, {Context: forge.AttemptContext{Lease: forge.LeaseID{ULID: w.id()}}}} {
			if w.run(cmd).Done {
				t.Errorf("expired %+v", cmd)
			}
		}
	})
	w.must(w.run(&Expire{Context: held, State: forge.LeaseAccepted, Renewals: renewed.Renewals + 1}), "expire")
	w.unchanged(func() {
		if w.run(&Expire{Context: held, State: forge.LeaseExpired, Renewals: renewed.Renewals + 1}).Done {
			t.Error("expired what has ended")
		}
	})
}

func TestEveryWayOutLocksSessionRunnerJobAndLease(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	want := []Key{
		{Table: TableSession, Lock: Share, ID: c.Runner.ULID},
		{Table: TableRunner, Lock: Update, ID: c.Runner.ULID},
		{Table: TableJob, Lock: Update, ID: c.Job.ULID},
		{Table: TableLease, Lock: Update, ID: c.Lease.ULID},
	}
	for _, cmd := range []Command{
		&Reject{Fence: a.fence(), Context: c}, &Absent{Fence: a.fence(), Context: c}, &Expire{Context: c}, &Revoke{Context: c},
		&Recover{Fence: a.fence(), Item: forge.RecoveredAttempt{Context: c}},
		&Complete{Fence: a.fence(), Completion: w.completion(c, good)},
	} {
		if diff := cmp.Diff(want, cmd.Keys(nil)[:len(want)]); diff != "" {
			t.Errorf("%T:\n%s", cmd, diff)
		}
	}
}
