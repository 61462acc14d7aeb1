package authority

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Phase, log frames, LogFinal.

func TestAPhaseIsIdempotentByItsSequence(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	phase := &Phase{Fence: a.fence(), Context: c, Seq: 5, Phase: forge.AttemptRunning}
	w.must(w.run(phase), "phase")
	w.unchanged(func() {
		if !w.run(phase).Done {
			t.Error("a repeated phase is not acknowledged")
		}
		if !w.run(&Phase{Fence: a.fence(), Context: c, Seq: 5, Phase: forge.AttemptUploading}).Done {
			t.Error("another phase under a used sequence is not acknowledged")
		}
	})
	if got := w.rows.Attempts[c.Attempt]; got.State != forge.AttemptRunning || got.EventSeq != 5 {
		t.Errorf("the attempt is %+v", got)
	}
}

func TestAPhaseOnlyGoesForwardWhateverItsSequence(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	a.runs(c, forge.AttemptUploading)
	w.unchanged(func() {
		for _, p := range []forge.AttemptState{
			forge.AttemptOffered, forge.AttemptAccepted, forge.AttemptPreparing, forge.AttemptRunning, forge.AttemptUploading,
			forge.AttemptSucceeded, forge.AttemptLost, 99,
		} {
			w.run(&Phase{Fence: a.fence(), Context: c, Seq: 100, Phase: p})
		}
	})
}

func TestAPhaseNeedsAnAcceptedLease(t *testing.T) {
	w := newWorld(t)
	a := w.runner(2)
	offered, ended := w.offer(a, w.anyJob()), a.hold(w.anyJob())
	w.must(w.run(&Absent{Fence: a.fence(), Context: ended}), "absent")
	w.unchanged(func() {
		for _, c := range []forge.AttemptContext{offered, ended} {
			if w.run(&Phase{Fence: a.fence(), Context: c, Seq: 9, Phase: forge.AttemptRunning}).Done {
				t.Error("a phase of an attempt that nobody holds")
			}
		}
	})
}

func TestAFrameIsStoredOnceAndInOrder(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	for _, step := range []struct {
		first, count uint64
		done         bool
		next         forge.LogSeq
	}{
		{1, 3, true, 4},
		{1, 3, false, 4}, // the same again
		{3, 2, false, 4}, // an overlap
		{5, 1, false, 4}, // a gap
		{4, 0, false, 4}, // nothing
		{4, 2, true, 6},
	} {
		answer := a.writeLog(c, step.first, step.count)
		if answer.Done != step.done || answer.Next != step.next {
			t.Errorf("%d frames from %d: stored %v, next %d; want %v, %d", step.count, step.first, answer.Done, answer.Next, step.done, step.next)
		}
	}
	want := Log{Attempt: c.Attempt, Runner: a.runner, Next: 6, Bytes: 5, Hash: logHash(c, 5)}
	if diff := cmp.Diff(want, w.rows.Logs[c.Attempt]); diff != "" {
		t.Error(diff)
	}
}

func TestAfterItsEndAnyProcessOfTheRunnerMayFinishALogAndItChangesNoOutcome(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(a.writeLog(c, 1, 1), "append")
	next := a.restarted()
	w.must(next.connect(), "connect")
	w.must(w.run(&Recover{Fence: next.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}}), "recover")
	job, attempt := w.rows.Jobs[c.Job], w.rows.Attempts[c.Attempt]
	w.must(next.writeLog(c, 2, 2), "append")
	w.must(next.seal(c, sealOf(c, 3)), "seal")
	if w.rows.Jobs[c.Job] != job || w.rows.Attempts[c.Attempt] != attempt {
		t.Error("the rest of a log changed an outcome")
	}
}

func TestALogIsOnlyItsRunnersToWriteOrSeal(t *testing.T) {
	w := newWorld(t)
	a, b := w.runner(1), w.runner(1)
	c := a.hold(w.anyJob())
	w.must(a.writeLog(c, 1, 3), "append")
	w.unchanged(func() {
		for _, answer := range []Answer{
			b.writeLog(c, 4, 1), b.seal(c, sealOf(c, 3)), b.writeLog(forge.AttemptContext{Attempt: forge.AttemptID{ULID: w.id()}}, 1, 1),
		} {
			if diff := cmp.Diff(Answer{Audit: AuditForeignAttempt}, answer); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestALogIsSealedOnlyAsItIsStored(t *testing.T) {
	stored := func(c forge.AttemptContext) forge.LogSeal { return sealOf(c, 3) }
	for _, claim := range []struct {
		name string
		edit func(*forge.LogSeal)
	}{
		{"more frames", func(s *forge.LogSeal) { s.Last++ }},
		{"fewer frames", func(s *forge.LogSeal) { s.Last-- }},
		{"other bytes", func(s *forge.LogSeal) { s.Bytes++ }},
		{"another hash", func(s *forge.LogSeal) { s.Hash = digest.Of([]byte("another")) }},
	} {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		w.must(a.writeLog(c, 1, 3), "append")
		seal := stored(c)
		claim.edit(&seal)
		w.unchanged(func() {
			if diff := cmp.Diff(Answer{NotYet: forge.ErrorNotYetLog, Next: 4}, a.seal(c, seal)); diff != "" {
				t.Errorf("%s:\n%s", claim.name, diff)
			}
		})
		w.must(a.seal(c, stored(c)), "seal")
	}
}

func TestASealedLogIsSealedAgainAlikeAndTakesNothingMore(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	a.logged(c)
	other := sealOf(c, 3)
	other.Bytes++
	w.unchanged(func() {
		if !a.seal(c, sealOf(c, 3)).Done {
			t.Error("a repeated seal is not acknowledged")
		}
		if a.seal(c, other).Done {
			t.Error("another seal is acknowledged")
		}
		if a.writeLog(c, 4, 1).Done {
			t.Error("a frame after the seal")
		}
	})
}

func TestALogThatNobodySealsIsClosedAsItIs(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(a.writeLog(c, 1, 3), "append")
	w.unchanged(func() {
		if w.run(&CloseLog{Lease: c.Lease, Attempt: c.Attempt}).Done {
			t.Error("the log of an attempt that runs is closed")
		}
	})
	w.must(w.run(&Expire{Context: c, State: forge.LeaseAccepted, Renewals: w.rows.Leases[c.Lease].Renewals}), "expire")
	w.must(w.run(&CloseLog{Lease: c.Lease, Attempt: c.Attempt}), "close")
	if got := w.rows.Logs[c.Attempt]; !got.Sealed || got.Seal != sealOf(c, 3) {
		t.Errorf("closed as %+v", got)
	}
	w.unchanged(func() {
		if w.run(&CloseLog{Lease: c.Lease, Attempt: c.Attempt}).Done || w.run(&CloseLog{Lease: c.Lease, Attempt: forge.AttemptID{ULID: w.id()}}).Done {
			t.Error("closed twice, or from nothing")
		}
	})
}
