package authority

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Heartbeat and Resync.

func TestAHeartbeatAnswersEachLeaseByItself(t *testing.T) {
	w := newWorld(t)
	a := w.runner(4)
	goes, cancelled, ended, offered := a.hold(w.anyJob()), a.hold(w.anyJob()), a.hold(w.anyJob()), w.offer(a, w.anyJob())
	w.must(w.run(&CancelJob{Job: cancelled.Job}), "cancel")
	w.must(w.run(&Absent{Fence: a.fence(), Context: ended}), "absent")
	unknown := forge.AttemptContext{Lease: forge.LeaseID{ULID: w.id()}}
	got := map[forge.LeaseID]forge.LeaseVerdict{}
	for _, v := range a.beat(goes, cancelled, ended, offered, unknown).Verdicts {
		got[v.Lease] = v
	}
	want := map[forge.LeaseID]forge.LeaseVerdict{
		goes.Lease:      {Lease: goes.Lease, Verdict: forge.VerdictContinue, HardTTL: hardTTL},
		cancelled.Lease: {Lease: cancelled.Lease, Verdict: forge.VerdictContinue, HardTTL: hardTTL, Cancel: forge.CancelUser},
		ended.Lease:     {Lease: ended.Lease, Verdict: forge.VerdictStale},
		offered.Lease:   {Lease: offered.Lease, Verdict: forge.VerdictStale},
		unknown.Lease:   {Lease: unknown.Lease, Verdict: forge.VerdictStale},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALeaseThatAHeartbeatDoesNotNameIsMerelyNotRenewed(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	named, absent := a.hold(w.anyJob()), a.hold(w.anyJob())
	before := w.rows.Leases[absent.Lease]
	a.beat(named)
	a.beat()
	if got := w.rows.Leases[absent.Lease]; got != before {
		t.Errorf("an absent lease changed:\n%s", cmp.Diff(before, got))
	}
}

func TestAHeartbeatRenewsNoLeaseOfAnother(t *testing.T) {
	w := newWorld(t)
	a, b := w.runner(1), w.runner(1)
	c := a.hold(w.anyJob())
	before := w.rows.Leases[c.Lease]
	if v := b.renewed(c); v.Verdict != forge.VerdictStale {
		t.Errorf("answered %+v", v)
	}
	next := a.restarted()
	w.must(next.connect(), "connect")
	if v := next.renewed(c); v.Verdict != forge.VerdictStale {
		t.Errorf("the next process is answered %+v", v)
	}
	if got := w.rows.Leases[c.Lease]; got != before {
		t.Errorf("the lease changed:\n%s", cmp.Diff(before, got))
	}
}

func TestEveryHeartbeatAndEmptyResyncIsASignOfLife(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	a.beat()
	a.beat()
	w.must(w.run(&Touch{Fence: a.fence()}), "touch")
	if got := w.rows.Beats[a.runner]; got != (Beat{Runner: a.runner, Count: 3}) {
		t.Errorf("counted %+v", got)
	}
}

func TestAResyncContinuesWhatRunsAndTakesItsPhaseOver(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(a.connect(), "connect")
	answer := a.claim(c, forge.AttemptUploading)
	if v := answer.Verdicts[0]; v.Verdict != forge.VerdictContinue || v.HardTTL != hardTTL {
		t.Errorf("answered %+v", v)
	}
	if got := w.rows.Attempts[c.Attempt].State; got != forge.AttemptUploading {
		t.Errorf("the attempt is %v", got)
	}
	a.claim(c, forge.AttemptRunning)
	if got := w.rows.Attempts[c.Attempt].State; got != forge.AttemptUploading {
		t.Errorf("an older phase brought the attempt back to %v", got)
	}
}

func TestAnItemOfAResyncThatIsStillAcceptingIsAnAcceptance(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	w.must(a.connect(), "connect")
	if answer := a.claim(c, forge.AttemptOffered); !answer.Done || w.rows.Leases[c.Lease].State != forge.LeaseAccepted {
		t.Errorf("answered %+v", answer)
	}
}

func TestAResyncThatTakesAnOfferForGrantedIsStale(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	w.unchanged(func() {
		if v := a.claim(c, forge.AttemptRunning).Verdicts[0]; v.Verdict != forge.VerdictStale {
			t.Errorf("answered %+v", v)
		}
	})
}

func TestAResyncHearsACancelThatCameMeanwhile(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
	w.must(a.connect(), "connect")
	if v := a.claim(c, forge.AttemptRunning).Verdicts[0]; v.Cancel != forge.CancelUser {
		t.Errorf("answered %+v", v)
	}
}

func TestAnAcceptedLeaseThatItsSessionNoLongerNamesIsLostAtOnce(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.job(forge.RetryPolicy{Infra: 1}))
	a.runs(c, forge.AttemptRunning)
	w.must(a.connect(), "connect")
	w.must(w.run(&Absent{Fence: a.fence(), Context: c}), "absent")
	if l := w.rows.Leases[c.Lease]; l.State != forge.LeaseLost {
		t.Errorf("the lease is %v", l.State)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobReady || j.InfraRetries != 1 {
		t.Errorf("the job is %+v", j)
	}
}

func TestWhatIsLostCostsARetryOnlyOnceItWasSaidToRun(t *testing.T) {
	for phase := forge.AttemptAccepted; phase <= forge.AttemptCompleting; phase++ {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.job(forge.RetryPolicy{Infra: 1}))
		if phase > forge.AttemptAccepted {
			a.runs(c, phase)
		}
		w.must(w.run(&Absent{Fence: a.fence(), Context: c}), "absent")
		charged := uint32(0)
		if phase >= forge.AttemptRunning {
			charged = 1
		}
		if j := w.rows.Jobs[c.Job]; j.InfraRetries != charged || j.FreeRetries != 1-charged {
			t.Errorf("lost in phase %v: charged infra %d, free %d", phase, j.InfraRetries, j.FreeRetries)
		}
	}
}

func TestWhatASessionDoesNotNameIsLostOnlyIfItIsItsOwnAndAccepted(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	accepted, offered := a.hold(w.anyJob()), w.offer(a, w.anyJob())
	next := a.restarted()
	w.must(next.connect(), "connect")
	w.unchanged(func() {
		for _, c := range []forge.AttemptContext{accepted, offered} {
			if w.run(&Absent{Fence: next.fence(), Context: c}).Done {
				t.Error("a process ended what another one holds")
			}
		}
	})
	b := w.runner(1)
	own := w.offer(b, w.anyJob())
	w.unchanged(func() {
		if w.run(&Absent{Fence: b.fence(), Context: own}).Done {
			t.Error("an offer that never arrived is lost")
		}
	})
}

func TestAnotherDaemonAnswersAResyncFromTheStoreAlone(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	a.runs(c, forge.AttemptRunning)
	w.restartDaemon()
	w.must(a.connect(), "connect")
	w.must(a.claim(c, forge.AttemptRunning), "resync")
	w.pass(10 * time.Second)
	if v := a.renewed(c); v.Verdict != forge.VerdictContinue {
		t.Errorf("answered %+v", v)
	}
	a.logged(c)
	if answer := a.complete(w.completion(c, good)); answer.Completion != forge.CompletionAccepted {
		t.Errorf("the completion is answered %+v", answer)
	}
}
