package authority

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// ready is an agent that holds a lease whose log is sealed.
func ready(t *testing.T, retry forge.RetryPolicy) (*world, *agent, forge.AttemptContext) {
	t.Helper()
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.job(retry))
	a.runs(c, forge.AttemptRunning)
	a.logged(c)
	return w, a, c
}

func TestACompletionEndsLeaseAttemptAndJobWithItsResult(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	m := w.completion(c, good)
	if diff := cmp.Diff(Answer{Completion: forge.CompletionAccepted, Done: true}, a.complete(m)); diff != "" {
		t.Fatal(diff)
	}
	if l := w.rows.Leases[c.Lease]; l.State != forge.LeaseReleased {
		t.Errorf("the lease is %v", l.State)
	}
	at := w.rows.Attempts[c.Attempt]
	if at.State != forge.AttemptSucceeded || at.Outcome != forge.Succeeded || at.Completion != m.Message || at.ResultHash != m.Hash {
		t.Errorf("the attempt is %+v", at)
	}
	if j := w.rows.Jobs[c.Job]; j.State != forge.JobSucceeded || j.Outcome != forge.Succeeded {
		t.Errorf("the job is %+v", j)
	}
}

func TestTheExitCodeOfAResultDecidesWhetherItIsTriedAgain(t *testing.T) {
	for code, want := range map[uint8]forge.JobState{7: forge.JobReady, 8: forge.JobFailed} {
		w, a, c := ready(t, forge.RetryPolicy{Max: 1, On: []forge.RetryWord{forge.RetryExit}, ExitCodes: []uint8{7}})
		w.must(a.complete(w.completion(c, forge.Result{Class: forge.ExitCode, ExitCode: code})), "complete")
		if j := w.rows.Jobs[c.Job]; j.State != want {
			t.Errorf("exit code %d: the job is %v", code, j.State)
		}
	}
}

func TestALostAnswerIsAskedForAgainAndTheResultCountsOnce(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{Max: 5, On: []forge.RetryWord{forge.RetryExit}})
	m := w.completion(c, bad)
	w.must(a.complete(m), "complete")
	w.must(a.connect(), "connect")
	w.unchanged(func() {
		for range 3 {
			if diff := cmp.Diff(Answer{Completion: forge.CompletionDuplicate, Done: true}, a.complete(m)); diff != "" {
				t.Error(diff)
			}
		}
	})
	if j := w.rows.Jobs[c.Job]; j.UserRetries != 1 {
		t.Errorf("one result was charged %d times", j.UserRetries)
	}
}

func TestTheNextProcessHearsThatACompletionHadBeenAccepted(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	m := w.completion(c, good)
	w.must(a.complete(m), "complete")
	next := a.restarted()
	w.must(next.connect(), "connect")
	w.unchanged(func() {
		if got := next.complete(m).Completion; got != forge.CompletionDuplicate {
			t.Errorf("answered %d", got)
		}
	})
}

func TestOneMessageWithTwoResultsIsInvalidAndAudited(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	m := w.completion(c, good)
	w.must(a.complete(m), "complete")
	changed := *m
	changed.Result = bad
	changed.Hash = changed.ResultHash()
	w.unchanged(func() {
		want := Answer{Completion: forge.CompletionInvalid, Audit: AuditChangedResult}
		if diff := cmp.Diff(want, a.complete(&changed)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASecondMessageAboutACompletedAttemptIsStale(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	w.must(a.complete(w.completion(c, bad)), "complete")
	w.unchanged(func() {
		if got := a.complete(w.completion(c, good)); got.Completion != forge.CompletionStale || got.Done {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestACompletionAfterItsLeaseEndedIsStale(t *testing.T) {
	for name, end := range map[string]func(*world, *agent, forge.AttemptContext){
		"expired": func(w *world, _ *agent, _ forge.AttemptContext) {
			w.watchFor(policy.Watch(hardTTL))
			w.sweep()
		},
		"lost": func(w *world, a *agent, c forge.AttemptContext) {
			w.must(w.run(&Absent{Fence: a.fence(), Context: c}), "absent")
		},
	} {
		w, a, c := ready(t, forge.RetryPolicy{Infra: 1})
		end(w, a, c)
		w.unchanged(func() {
			if diff := cmp.Diff(Answer{Completion: forge.CompletionStale}, a.complete(w.completion(c, good))); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		})
	}
}

func TestACompletionOfAnOldSessionIsNotAcceptedFromANewOne(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	m := w.completion(c, good)
	next := a.restarted()
	w.must(next.connect(), "connect")
	own := c
	own.Session = next.session
	w.unchanged(func() {
		if got := next.complete(m); got.Completion != forge.CompletionStale {
			t.Errorf("the old session's completion is answered %+v", got)
		}
		if got := next.complete(w.completion(own, good)); got.Completion != forge.CompletionInvalid || got.Audit != AuditForeignAttempt {
			t.Errorf("one in the new session's name is answered %+v", got)
		}
	})
}

func TestACompletionOfAnOfferIsInvalid(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	a.logged(c)
	w.unchanged(func() {
		if got := a.complete(w.completion(c, good)); got.Completion != forge.CompletionInvalid {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestACompletionWaitsForItsLogAndIsThenAcceptedUnchanged(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	m := w.completion(c, good)
	w.must(a.writeLog(c, 1, 3), "append")
	w.unchanged(func() {
		if diff := cmp.Diff(Answer{NotYet: forge.ErrorNotYetLog}, a.complete(m)); diff != "" {
			t.Error(diff)
		}
	})
	w.must(a.seal(c, sealOf(c, 3)), "seal")
	if got := a.complete(m); got.Completion != forge.CompletionAccepted {
		t.Errorf("answered %+v", got)
	}
}

func TestACompletionThatNamesAnotherSealIsInvalid(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	m := w.completion(c, good)
	m.Log.Hash = digest.Of([]byte("another log"))
	m.Hash = m.ResultHash()
	w.unchanged(func() {
		if diff := cmp.Diff(Answer{Completion: forge.CompletionInvalid}, a.complete(m)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnOutputThatThisAttemptNeitherUploadedNorWasGivenIsInvalid(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	own, foreign := forge.OutputRef{Ref: digest.RefOf([]byte("own"))}, forge.OutputRef{Ref: digest.RefOf([]byte("foreign"))}
	w.rows.Refs[c.Attempt] = map[forge.OutputRef]RefState{own: {Known: true}, foreign: {Live: true}}
	m := w.completion(c, good)
	m.Outputs = []forge.OutputRef{own, foreign}
	m.Hash = m.ResultHash()
	w.unchanged(func() {
		if diff := cmp.Diff(Answer{Completion: forge.CompletionInvalid}, a.complete(m)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACompletionWaitsForItsOutputsAndIsThenAcceptedUnchanged(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	one, two := forge.OutputRef{Ref: digest.RefOf([]byte("one"))}, forge.OutputRef{Ref: digest.RefOf([]byte("two")), Output: 1}
	states := map[forge.OutputRef]RefState{one: {Known: true, Live: true}, two: {Known: true}}
	w.rows.Refs[c.Attempt] = states
	m := w.completion(c, good)
	m.Outputs = []forge.OutputRef{one, two}
	m.Hash = m.ResultHash()
	w.unchanged(func() {
		if diff := cmp.Diff(Answer{NotYet: forge.ErrorNotYetRef}, a.complete(m)); diff != "" {
			t.Error(diff)
		}
	})
	states[two] = RefState{Known: true, Live: true}
	if got := a.complete(m); got.Completion != forge.CompletionAccepted {
		t.Errorf("answered %+v", got)
	}
}

func TestACompletionHoldsTheSealItReadUntilItsCommit(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	cmd := &Complete{Fence: a.fence(), Completion: w.completion(c, good)}
	want := []Key{
		{Table: TableSession, Lock: Share, ID: c.Runner.ULID},
		{Table: TableRunner, Lock: Update, ID: c.Runner.ULID},
		{Table: TableJob, Lock: Update, ID: c.Job.ULID},
		{Table: TableLease, Lock: Update, ID: c.Lease.ULID},
		{Table: TableLog, Lock: Share, ID: c.Attempt.ULID},
		{Table: TableRefs, ID: c.Attempt.ULID},
	}
	if diff := cmp.Diff(want, cmd.Keys(nil)); diff != "" {
		t.Error(diff)
	}
}

func TestOutputsAloneFinishNothing(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	w.rows.Refs[c.Attempt] = map[forge.OutputRef]RefState{{Ref: digest.RefOf([]byte("out"))}: {Known: true, Live: true}}
	a.runs(c, forge.AttemptCompleting)
	a.beat(c)
	if l, j := w.rows.Leases[c.Lease], w.rows.Jobs[c.Job]; l.State != forge.LeaseAccepted || j.State != forge.JobActive {
		t.Errorf("without a completion the lease is %v, the job %v", l.State, j.State)
	}
}
