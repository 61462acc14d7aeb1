package authority

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// LeaseOffer, LeaseAccept, LeaseReject.

func TestAnOfferStandsForTenSecondsThenItsJobIsReadyAtNoCost(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.job(forge.RetryPolicy{}))
	w.watchFor(policy.OfferTTL - 1)
	if w.sweep() != 0 {
		t.Fatal("an offer expired early")
	}
	w.watchFor(1)
	if w.sweep() != 1 {
		t.Fatal("an offer outlived its time")
	}
	if l, at := w.rows.Leases[c.Lease], w.rows.Attempts[c.Attempt]; l.State != forge.LeaseExpired || at.State != forge.AttemptLost {
		t.Errorf("the lease is %v, its attempt %v", l.State, at.State)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobReady || j.FreeRetries != 1 || j.InfraRetries != 0 {
		t.Errorf("the job is %+v", j)
	}
}

func TestAnAcceptedOfferIsGranted(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	want := Answer{Done: true, Verdicts: []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: hardTTL}}}
	if diff := cmp.Diff(want, a.accept(c)); diff != "" {
		t.Error(diff)
	}
	l, at, j := w.rows.Leases[c.Lease], w.rows.Attempts[c.Attempt], w.rows.Jobs[c.Job]
	if l.State != forge.LeaseAccepted || at.State != forge.AttemptAccepted || j.State != forge.JobActive {
		t.Errorf("lease %v, attempt %v, job %v", l.State, at.State, j.State)
	}
}

func TestAnOfferIsAcceptedOverAnyConnectionOfItsSession(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	w.must(a.connect(), "connect")
	w.must(a.accept(c), "accept")
}

func TestAnOfferOfAnEarlierProcessIsNotAcceptedByTheNext(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	next := a.restarted()
	w.must(next.connect(), "connect")
	own := c
	own.Session = next.session
	w.unchanged(func() {
		for _, claimed := range []forge.AttemptContext{c, own} {
			if got := next.accept(claimed); got.Done || got.Refused == 0 {
				t.Errorf("answered %+v", got)
			}
		}
	})
}

func TestALeaseOfAnEarlierProcessDoesNotGoOnForTheNext(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	next := a.restarted()
	w.must(next.connect(), "connect")
	w.unchanged(func() {
		for _, phase := range []forge.AttemptState{forge.AttemptOffered, forge.AttemptRunning} {
			if got := next.claim(c, phase); got.Done || got.Refused != forge.RefusedSuperseded || got.Verdicts[0].Verdict != forge.VerdictStale {
				t.Errorf("in phase %v: answered %+v", phase, got)
			}
		}
	})
}

func TestAnAcceptanceThatIsNotGrantedSaysWhy(t *testing.T) {
	for _, story := range []struct {
		name string
		want forge.RefuseReason
		tell func(*world, *agent, *forge.AttemptContext)
	}{
		{"cancelled", forge.RefusedCancelled, func(w *world, _ *agent, c *forge.AttemptContext) {
			w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
		}},
		{"cancelled and revoked", forge.RefusedCancelled, func(w *world, _ *agent, c *forge.AttemptContext) {
			w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
			w.must(w.run(&Revoke{Context: *c}), "revoke")
		}},
		{"expired", forge.RefusedExpired, func(w *world, _ *agent, _ *forge.AttemptContext) {
			w.watchFor(policy.OfferTTL)
			w.sweep()
		}},
		{"rejected before", forge.RefusedSuperseded, func(w *world, a *agent, c *forge.AttemptContext) {
			w.must(w.run(&Reject{Fence: a.fence(), Context: *c}), "reject")
		}},
		{"never offered", forge.RefusedUnknown, func(w *world, _ *agent, c *forge.AttemptContext) { c.Lease.ULID = w.id() }},
	} {
		w := newWorld(t)
		a := w.runner(1)
		c := w.offer(a, w.anyJob())
		story.tell(w, a, &c)
		want := Answer{Refused: story.want, Verdicts: []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictStale}}}
		w.unchanged(func() {
			if diff := cmp.Diff(want, a.accept(c)); diff != "" {
				t.Errorf("%s:\n%s", story.name, diff)
			}
		})
	}
}

func TestAnExpiredLeaseIsNeverAcceptedAgain(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.watchFor(policy.Watch(hardTTL))
	w.sweep()
	w.unchanged(func() {
		for _, phase := range []forge.AttemptState{forge.AttemptOffered, forge.AttemptRunning} {
			if got := a.claim(c, phase); got.Refused != forge.RefusedExpired || got.Verdicts[0].Verdict != forge.VerdictStale {
				t.Errorf("a claim in phase %v is answered %+v", phase, got)
			}
		}
	})
}

func TestARejectedOfferGivesItsJobBackAtNoCostAndKeepsTheReason(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.job(forge.RetryPolicy{}))
	w.must(w.run(&Reject{Fence: a.fence(), Context: c, Reason: forge.RejectDiskInsufficient}), "reject")
	if l, at := w.rows.Leases[c.Lease], w.rows.Attempts[c.Attempt]; l.State != forge.LeaseRefused || at.State != forge.AttemptRefused {
		t.Errorf("the lease is %v, its attempt %v", l.State, at.State)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobReady || j.FreeRetries != 1 || j.InfraRetries != 0 {
		t.Errorf("the job is %+v", j)
	}
	if r := w.rows.Runners[a.runner]; r.LastReject != forge.RejectDiskInsufficient {
		t.Errorf("the runner keeps the reason %v", r.LastReject)
	}
}

func TestALeaseIsRejectedOnlyWhileNothingWasStarted(t *testing.T) {
	for phase := forge.AttemptAccepted; phase <= forge.AttemptCompleting; phase++ {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.job(forge.RetryPolicy{}))
		if phase > forge.AttemptAccepted {
			a.runs(c, phase)
		}
		answer := w.run(&Reject{Fence: a.fence(), Context: c, Reason: forge.RejectPreparation})
		if want := phase < forge.AttemptRunning; answer.Done != want || w.rows.Leases[c.Lease].State.Ended() != want {
			t.Errorf("in phase %v: rejected %v, the lease is %v", phase, answer.Done, w.rows.Leases[c.Lease].State)
		}
	}
}

func TestARejectedLeaseIsNotRejectedTwice(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	reject := &Reject{Fence: a.fence(), Context: c, Reason: forge.RejectDraining}
	w.must(w.run(reject), "reject")
	w.offer(a, c.Job)
	w.unchanged(func() {
		if answer := w.run(reject); answer.Done {
			t.Errorf("answered %+v", answer)
		}
	})
}

func TestADisabledRunnerGetsNoNewLeaseAndIsToldToStopWhatItHas(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	held := a.hold(w.anyJob())
	offered := w.offer(a, w.anyJob())
	w.must(w.run(&SetRunner{Runner: held.Runner, Disabled: true}), "disable")
	if got := a.accept(offered); got.Done || got.Refused != forge.RefusedSuperseded {
		t.Errorf("an offer is accepted of a disabled runner: %+v", got)
	}
	if got := a.accept(held); !got.Done || got.Verdicts[0].Cancel != forge.CancelDisabled {
		t.Errorf("what it holds: %+v", got)
	}
}
