package authority

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// One way in.

func TestAnOfferMakesJobAttemptAndLeaseInOneTransaction(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	job := w.anyJob()
	cmd := a.offered(job)
	answer := w.run(cmd)
	want := forge.AttemptContext{
		Job: job, Attempt: cmd.Attempt, Lease: cmd.Lease, Spec: w.rows.Jobs[job].Spec, Runner: a.runner, Session: a.session,
	}
	if !answer.Done || answer.Context != want {
		t.Fatalf("the answer is %+v", answer)
	}
	if j := w.rows.Jobs[job]; j.State != forge.JobOffered || j.Open != want || j.Attempts != 1 {
		t.Errorf("the job is %+v", j)
	}
	if diff := cmp.Diff(Attempt{ID: cmd.Attempt, Job: job, Number: 1, State: forge.AttemptOffered}, w.rows.Attempts[cmd.Attempt]); diff != "" {
		t.Error(diff)
	}
	lease := Lease{
		Context: want, StateFolder: a.folder, Boot: a.boot, StartCounter: a.start, State: forge.LeaseOffered,
		HardTTL: hardTTL, MaxLifetime: maxLifetime,
	}
	if diff := cmp.Diff(lease, w.rows.Leases[cmd.Lease]); diff != "" {
		t.Error(diff)
	}
}

func TestAnOfferLocksItsRunnerBeforeItCountsLeasesAndThenItsJob(t *testing.T) {
	w := newWorld(t)
	cmd := w.runner(1).offered(w.anyJob())
	want := []Key{
		{Table: TableSession, Lock: Share, ID: cmd.Fence.Runner.ULID},
		{Table: TableRunner, Lock: Update, ID: cmd.Fence.Runner.ULID},
		{Table: TableOpenLeases, ID: cmd.Fence.Runner.ULID},
		{Table: TableJob, Lock: Update, ID: cmd.Job.ULID},
		{Table: TableLease, Lock: Update, ID: cmd.Lease.ULID},
	}
	if diff := cmp.Diff(want, cmd.Keys(nil)); diff != "" {
		t.Error(diff)
	}
}

func TestOneJobIsOfferedOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.runner(4), w.runner(4)
	job := w.anyJob()
	w.offer(a, job)
	w.unchanged(func() {
		for _, other := range []*agent{a, b} {
			if answer := w.run(other.offered(job)); answer.Done {
				t.Errorf("an offered job is offered again: %+v", answer)
			}
		}
	})
}

func TestOnlyAReadyJobThatNobodyWantsCancelledIsOffered(t *testing.T) {
	for s := forge.JobWaiting; s <= forge.JobSkipped; s++ {
		for _, cancelled := range []bool{false, true} {
			w := newWorld(t)
			a := w.runner(1)
			job := w.rows.Jobs[w.anyJob()]
			job.State, job.CancelRequested = s, cancelled
			var rows Rows
			cmd := a.offered(job.ID)
			for _, key := range cmd.Keys(nil) {
				w.load(&rows, key, cmd)
			}
			rows.Job.Value = job
			if done := cmd.Apply(&rows).Done; done != (s == forge.JobReady && !cancelled) {
				t.Errorf("%v, cancel requested %v: offered %v", s, cancelled, done)
			}
		}
	}
}

func TestARunnerHoldsNoMoreLeasesThanItHasSlots(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	first := w.offer(a, w.anyJob())
	a.hold(w.anyJob())
	job := w.anyJob()
	w.unchanged(func() {
		if w.run(a.offered(job)).Done {
			t.Error("a third lease on two slots")
		}
	})
	w.must(w.run(&Reject{Fence: a.fence(), Context: first, Reason: forge.RejectDraining}), "reject")
	w.offer(a, job)
}

func TestAnOfferIsMadeOnlyToTheVeryConnectionItWillBeSentOn(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	job := w.anyJob()
	onOld := a.offered(job)
	a.connect()
	onDead := a.offered(job)
	next := a.restarted()
	next.connect()
	w.unchanged(func() {
		if w.run(onOld).Done || w.run(onDead).Done {
			t.Error("offered to a connection that has lost its voice")
		}
	})
}

func TestALeaseIDIsUsedOnce(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	first := a.offered(w.anyJob())
	w.must(w.run(first), "offer")
	second := a.offered(w.anyJob())
	second.Lease = first.Lease
	w.unchanged(func() {
		if w.run(second).Done {
			t.Error("two leases of one id")
		}
	})
}

func TestARunnerThatIsDisabledRevokedOrDrainingGetsNoNewLease(t *testing.T) {
	for _, set := range []SetRunner{{Disabled: true}, {Revoked: true}, {Draining: true}} {
		w := newWorld(t)
		a := w.runner(1)
		set.Runner = a.runner
		w.must(w.run(&set), "set")
		job := w.anyJob()
		w.unchanged(func() {
			if w.run(a.offered(job)).Done {
				t.Errorf("%+v: a new lease", set)
			}
		})
	}
}

func TestAttemptsOfAJobAreCountedFromOne(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	job := w.anyJob()
	var numbers []uint32
	for range 3 {
		c := w.offer(a, job)
		numbers = append(numbers, w.rows.Attempts[c.Attempt].Number)
		w.must(w.run(&Reject{Fence: a.fence(), Context: c, Reason: forge.RejectOther}), "reject")
	}
	if !slices.Equal(numbers, []uint32{1, 2, 3}) {
		t.Errorf("attempts are numbered %v", numbers)
	}
}

func TestAWaitingJobBecomesReadyWithItsSpecOnceAndOnlyThen(t *testing.T) {
	w := newWorld(t)
	id := w.anyJob()
	job := w.rows.Jobs[id]
	job.State, job.Spec = forge.JobWaiting, forge.JobSpecID{}
	w.rows.Jobs[id] = job
	spec := forge.SpecID([]byte("planned"))
	w.must(w.run(&Plan{Job: id, Spec: spec}), "plan")
	if j := w.rows.Jobs[id]; j.State != forge.JobReady || j.Spec != spec {
		t.Errorf("planned: %+v", j)
	}
	w.unchanged(func() {
		if w.run(&Plan{Job: id, Spec: forge.SpecID([]byte("changed"))}).Done || w.run(&Plan{Job: forge.JobID{ULID: w.id()}}).Done {
			t.Error("a spec was changed after it was fixed, or a job came from nowhere")
		}
	})
}
