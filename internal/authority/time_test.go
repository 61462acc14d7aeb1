package authority

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// The rules on time. The second and the sixth bind the agent and are tested with its core. The third is in watch_test.go,
// and the fifth is package watchdog's, but for what becomes of a workload that was killed so.

func TestEveryAnswerThatGrantsTimeIsARenewal(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	grants := []struct {
		name string
		ask  func() Answer
	}{
		{"acceptance", func() Answer { return a.accept(c) }},
		{"heartbeat", func() Answer { return a.beat(c) }},
		{"item of a resync", func() Answer { return a.claim(c, forge.AttemptRunning) }},
		{"acceptance repeated in a resync", func() Answer { return a.accept(c) }},
	}
	for i, g := range grants {
		answer := g.ask()
		want := []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: hardTTL}}
		if diff := cmp.Diff(want, answer.Verdicts); diff != "" {
			t.Errorf("%s:\n%s", g.name, diff)
		}
		if got := w.rows.Leases[c.Lease].Renewals; got != uint64(i+1) {
			t.Errorf("after the %s: %d renewals, want %d", g.name, got, i+1)
		}
	}
}

func TestARepeatedAcceptIsAnsweredByAFreshRenewal(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	first := w.rows.Leases[c.Lease]
	again := a.accept(c)
	if !again.Done || again.Verdicts[0].HardTTL != hardTTL {
		t.Errorf("the second acceptance is answered %+v", again)
	}
	if now := w.rows.Leases[c.Lease]; now.Renewals != first.Renewals+1 || now.State != forge.LeaseAccepted {
		t.Errorf("the second acceptance left %+v", now)
	}
}

func TestARenewalGrantsTheHardTTLOfTheOfferAndNothingOnTop(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	job := w.rows.Jobs[c.Job]
	job.HardTTL *= 10
	w.rows.Jobs[c.Job] = job
	for range 3 {
		if v := a.renewed(c); v.HardTTL != hardTTL {
			t.Errorf("a renewal grants %v, want %v", v.HardTTL, hardTTL)
		}
	}
}

func TestAWorkloadKilledForItsDeadlineIsLostAndNeverTheUsersFailure(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.job(forge.RetryPolicy{Infra: 1, Max: 1, On: []forge.RetryWord{forge.RetryExit}}))
	a.runs(c, forge.AttemptRunning)
	a.logged(c)
	w.must(a.complete(w.completion(c, forge.Result{Class: forge.Lost, ExitCode: 1})), "complete")
	if got := w.rows.Attempts[c.Attempt]; got.State != forge.AttemptLost || got.Outcome != forge.Lost {
		t.Errorf("the attempt is %v with outcome %v, want Lost", got.State, got.Outcome)
	}
	if job := w.rows.Jobs[c.Job]; job.State != forge.JobReady || job.InfraRetries != 1 || job.UserRetries != 0 {
		t.Errorf("the job is %v, infra retries %d, user retries %d", job.State, job.InfraRetries, job.UserRetries)
	}
}

func TestALeaseThatLivedItsLifeIsToldToStopAndRenewedNoMore(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	for w.rows.Leases[c.Lease].Lived < maxLifetime {
		w.watchFor(15 * time.Second)
		a.beat(c)
	}
	last := w.rows.Leases[c.Lease].Renewals
	want := forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictCancel, Cancel: forge.CancelMaxLifetime}
	for _, ask := range []func() Answer{
		func() Answer { return a.beat(c) },
		func() Answer { return a.claim(c, forge.AttemptRunning) },
		func() Answer { return a.accept(c) },
	} {
		w.watchFor(15 * time.Second)
		if diff := cmp.Diff([]forge.LeaseVerdict{want}, ask().Verdicts); diff != "" {
			t.Error(diff)
		}
	}
	if got := w.rows.Leases[c.Lease].Renewals; got != last {
		t.Errorf("renewed %d times beyond its life", got-last)
	}
	w.watchFor(policy.Watch(hardTTL))
	if w.sweep() != 1 || w.rows.Leases[c.Lease].State != forge.LeaseExpired {
		t.Errorf("a lease that is renewed no more is %v after its time", w.rows.Leases[c.Lease].State)
	}
}

func TestAUsersCancelIsNamedEvenWhereALeaseHasLivedItsLife(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
	w.watchFor(maxLifetime)
	want := forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictCancel, Cancel: forge.CancelUser}
	if diff := cmp.Diff(want, a.renewed(c)); diff != "" {
		t.Error(diff)
	}
}

func TestALeaseLivesOnlyTheTimeThatADaemonWatchedItSinceItsVeryRenewal(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	lived := func(step string, want time.Duration) {
		t.Helper()
		if got := w.rows.Leases[c.Lease].Lived; got != want {
			t.Errorf("%s: lived %v, want %v", step, got, want)
		}
	}
	w.watchFor(5 * time.Second)
	a.accept(c)
	lived("the offer's time does not count", 0)
	w.pass(10 * time.Second)
	a.beat(c)
	lived("unseen time after an unseen renewal does not count", 0)
	w.watchFor(10 * time.Second)
	a.beat(c)
	lived("watched time counts", 10*time.Second)
	a.beat(c)
	lived("what was watched before another renewal does not count twice", 10*time.Second)
	w.look()
	w.pass(20 * time.Second)
	w.restartDaemon()
	w.look()
	a.beat(c)
	lived("what a daemon saw before its restart does not count", 10*time.Second)
}
