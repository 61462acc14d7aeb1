package authority

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// RecoverAttempts: what a process says of those that its predecessor ran.

// recovers registers a process and names an attempt as dead.
func (a *agent) recovers(item forge.RecoveredAttempt) Answer {
	a.w.t.Helper()
	a.w.must(a.connect(), "connect")
	return a.w.run(&Recover{Fence: a.fence(), Item: item})
}

func TestTheNextProcessOnTheSameFolderAndBootEndsWhatItKilledAtOnce(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.job(forge.RetryPolicy{Infra: 1}))
	a.runs(c, forge.AttemptRunning)
	answer := a.restarted().recovers(forge.RecoveredAttempt{Context: c, Killed: true})
	if diff := cmp.Diff(Answer{Done: true, Recovery: forge.RecoveryEnded}, answer); diff != "" {
		t.Error(diff)
	}
	if l, at := w.rows.Leases[c.Lease], w.rows.Attempts[c.Attempt]; l.State != forge.LeaseLost || at.State != forge.AttemptLost {
		t.Errorf("the lease is %v, its attempt %v", l.State, at.State)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobReady || j.InfraRetries != 1 {
		t.Errorf("the job is %+v", j)
	}
}

func TestAnyOtherWordThatAnAttemptIsDeadWaitsForItsExpiry(t *testing.T) {
	for _, story := range []struct {
		name   string
		killed bool
		who    func(*agent) *agent
	}{
		{"not killed", false, (*agent).restarted},
		{"another boot", true, (*agent).rebooted},
		{"another folder, in the same boot", true, func(a *agent) *agent {
			copied := a.restarted()
			copied.folder = forge.StateFolderID{ULID: a.w.id()}
			return copied
		}},
		{"another folder and boot", true, (*agent).elsewhere},
	} {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		w.watchFor(policy.Watch(hardTTL)) // for another folder to be let in at all
		next := story.who(a)
		w.must(next.connect(), "connect")
		w.unchanged(func() {
			got := w.run(&Recover{Fence: next.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: story.killed}})
			if diff := cmp.Diff(Answer{Recovery: forge.RecoveryWaits}, got); diff != "" {
				t.Errorf("%s:\n%s", story.name, diff)
			}
		})
		if w.sweep() != 1 {
			t.Errorf("%s: the lease does not expire", story.name)
		}
	}
}

func TestAWordAboutAnotherTupleEndsNothing(t *testing.T) {
	for _, change := range changes {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		next := a.restarted()
		w.must(next.connect(), "connect")
		change.edit(w, &c)
		w.unchanged(func() {
			got := w.run(&Recover{Fence: next.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}})
			if got.Done || got.Recovery != forge.RecoveryWaits {
				t.Errorf("another %s: answered %+v", change.name, got)
			}
		})
	}
}

func TestAProcessDoesNotRecoverWhatItHoldsItself(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.unchanged(func() {
		if got := w.run(&Recover{Fence: a.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}}); got.Recovery != forge.RecoveryWaits {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestAnOfferOfThePreviousProcessWaitsForItsExpiry(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	if got := a.restarted().recovers(forge.RecoveredAttempt{Context: c, Killed: true}); got.Done || got.Recovery != forge.RecoveryWaits {
		t.Errorf("answered %+v", got)
	}
}

func TestARecoveredAttemptThatNobodyNamesExpires(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	next := a.restarted()
	w.must(next.connect(), "connect")
	next.beat()
	if l := w.rows.Leases[c.Lease]; l.State != forge.LeaseAccepted {
		t.Fatalf("the lease is %v before its time", l.State)
	}
	w.watchFor(policy.Watch(hardTTL))
	if w.sweep() != 1 || w.rows.Leases[c.Lease].State != forge.LeaseExpired {
		t.Errorf("the lease is %v after its time", w.rows.Leases[c.Lease].State)
	}
}

func TestAPendingCompletionThatHadBeenAppliedIsSaidToBe(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	m := w.completion(c, good)
	w.must(a.complete(m), "complete")
	next := a.restarted()
	w.must(next.connect(), "connect")
	w.unchanged(func() {
		item := forge.RecoveredAttempt{Context: c, Killed: true, Completion: m.Message, Hash: m.Hash}
		if got := w.run(&Recover{Fence: next.fence(), Item: item}); got.Recovery != forge.RecoveryApplied {
			t.Errorf("answered %+v", got)
		}
		item.Hash = digest.Of([]byte("another result"))
		if got := w.run(&Recover{Fence: next.fence(), Item: item}); got.Recovery != forge.RecoveryEnded {
			t.Errorf("with another result: answered %+v", got)
		}
	})
}

func TestAPendingCompletionThatNeverArrivedIsWorthNothing(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{Infra: 1})
	m := w.completion(c, good)
	got := a.restarted().recovers(forge.RecoveredAttempt{Context: c, Killed: true, Completion: m.Message, Hash: m.Hash})
	if got.Recovery != forge.RecoveryEnded || w.rows.Attempts[c.Attempt].State != forge.AttemptLost {
		t.Errorf("answered %+v, the attempt is %v", got, w.rows.Attempts[c.Attempt].State)
	}
}

func TestAnAttemptThatIsOverStaysAsItEnded(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.watchFor(policy.Watch(hardTTL))
	w.sweep()
	next := a.restarted()
	w.must(next.connect(), "connect")
	w.unchanged(func() {
		if got := w.run(&Recover{Fence: next.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}}); got.Recovery != forge.RecoveryEnded {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestARunnerRecoversNothingOfAnother(t *testing.T) {
	w := newWorld(t)
	a, b := w.runner(1), w.runner(1)
	c := a.hold(w.anyJob())
	w.unchanged(func() {
		want := Answer{Recovery: forge.RecoveryWaits, Audit: AuditForeignAttempt}
		got := w.run(&Recover{Fence: b.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
