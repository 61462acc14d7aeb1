package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// The end of an attempt: what is said is frozen, made durable, and said until it is heard.

func TestPhasesAreReportedInOrderAndOnce(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	want := []*forge.PhaseChange{
		{Context: c, Seq: 1, Phase: forge.AttemptPreparing},
		{Context: c, Seq: 2, Phase: forge.AttemptRunning},
		{Context: c, Seq: 3, Phase: forge.AttemptUploading},
		{Context: c, Seq: 4, Phase: forge.AttemptCompleting},
	}
	a.step(core.WorkloadStarted{Attempt: c.Attempt})
	a.ends(c, core.WorkloadEnded{})
	var got []*forge.PhaseChange
	for hasSent[*forge.PhaseChange](a) {
		_, m := sent[*forge.PhaseChange](a)
		got = append(got, m)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestTheRunningPhaseComesOnlyAfterTheWorkloadRuns(t *testing.T) {
	a := online(t)
	c := a.preparing(1)
	a.sent = nil
	a.step(core.Prepared{Attempt: c.Attempt})
	notSent[*forge.PhaseChange](a, "before the workload runs")
	a.step(core.WorkloadStarted{Attempt: c.Attempt})
	if _, m := sent[*forge.PhaseChange](a); m.Phase != forge.AttemptRunning {
		t.Fatalf("reported %v", m.Phase)
	}
}

func TestNothingIsDeliveredSealedOrSaidBeforeTheRecordIsDurable(t *testing.T) {
	a := online(t)
	c := a.uploading(1)
	ended := effect[core.WriteRecord](a).Record
	if ended.State != forge.AttemptUploading || ended.Completion == nil {
		t.Fatalf("%+v", ended)
	}
	no[core.Deliver](a, "before the end is durable")
	a.step(core.Journaled{Attempt: c.Attempt, Version: ended.Version - 1})
	no[core.Deliver](a, "for an older record")
	a.step(core.Journaled{Attempt: c.Attempt, Version: ended.Version})
	if d := effect[core.Deliver](a); d.Outcome != forge.Succeeded {
		t.Fatalf("%+v", d)
	}
	a.step(delivered(c))
	a.ackLog(c)
	whole := effect[core.WriteRecord](a).Record
	if whole.State != forge.AttemptCompleting || whole.Completion.Hash != whole.Completion.ResultHash() {
		t.Fatalf("%+v", whole)
	}
	notSent[*forge.LogFinal](a, "before the whole completion is durable")
	a.step(core.Journaled{Attempt: c.Attempt, Version: whole.Version})
	a.sealed(c)
	_, m := sent[*forge.Completion](a)
	if diff := cmp.Diff(whole.Completion, m); diff != "" {
		t.Fatal("what was said is not what is durable:", diff)
	}
}

func TestALogIsSealedOnceEveryFrameIsAcknowledged(t *testing.T) {
	a := online(t)
	c := a.completing(1)
	a.receive(&forge.LogAck{Attempt: c.Attempt, Next: seal().Last})
	notSent[*forge.LogFinal](a, "while the last frame is on its way")
	a.receive(&forge.LogAck{Attempt: c.Attempt, Next: 2})
	a.ackLog(c)
	f, m := sent[*forge.LogFinal](a)
	if m.Context != c || m.Seal != seal() {
		t.Fatalf("%+v", m)
	}
	a.ackLog(c)
	notSent[*forge.LogFinal](a, "twice on one connection")
	notSent[*forge.Completion](a, "before the log is sealed")
	a.answer(f.ID, &forge.LogFinalAck{Attempt: c.Attempt})
	_, done := sent[*forge.Completion](a)
	if done.Context != c || done.Log != seal() || done.Validate() != nil {
		t.Fatalf("%+v: %v", done, done.Validate())
	}
}

func TestACompletionIsFrozenWhenTheWorkloadHasEnded(t *testing.T) {
	a := online(t)
	c := a.uploading(1)
	frozen := *a.is(c, forge.AttemptUploading).Frozen
	cancel := &forge.Cancel{Attempt: c.Attempt, Lease: c.Lease, Reason: forge.CancelUser}
	a.receive(cancel)
	a.ends(c, core.WorkloadEnded{Result: forge.Result{Class: forge.ExitCode, ExitCode: 1}, StopSeen: forge.CancelUser})
	a.complete(c)
	a.receive(cancel)
	a.reconnect(forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: a.ttl, Cancel: forge.CancelUser})
	no[core.Stop](a, "for what has ended")
	a.ackLog(c)
	a.sealed(c)
	_, m := sent[*forge.Completion](a)
	if m.Message != frozen.Message || m.CancelSeen || !cmp.Equal(m.Result, frozen.Result) {
		t.Fatalf("frozen as %+v, sent as %+v", frozen, m)
	}
}

func TestEveryAnswerEndsACompletion(t *testing.T) {
	for answer := forge.CompletionAccepted; answer <= forge.CompletionInvalid; answer++ {
		a := online(t)
		c := a.asking(1)
		no[core.CleanUp](a, "before the completion is answered")
		m := a.ack(answer)
		if u := effect[core.CleanUp](a); u.Attempt != c.Attempt {
			t.Fatalf("%+v", u)
		}
		no[core.DropRecord](a, "before everything is removed")
		a.step(core.CleanedUp{Attempt: c.Attempt})
		effect[core.DropRecord](a)
		a.gone(c)
		a.reconnect()
		a.until(5 * time.Second)
		notSent[*forge.Completion](a, "after its answer")
		if m.Context != c {
			t.Fatalf("%+v", m.Context)
		}
	}
}

func TestAnAnswerToAnotherCompletionEndsNothing(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	a.receive(&forge.CompletionAck{Attempt: c.Attempt, Message: forge.MessageID{ULID: forge.ULID{7}}, Answer: forge.CompletionStale})
	a.is(c, forge.AttemptCompleting)
	no[core.CleanUp](a, "for an answer to something else")
}

// The acknowledgement may be lost any number of times, and the store may say anything about the lease meanwhile.
func TestACompletionIsSentAgainAfterEveryResyncUntilItIsAnswered(t *testing.T) {
	for verdict := forge.VerdictContinue; verdict <= forge.VerdictStale; verdict++ {
		a := online(t)
		c := a.asking(1)
		_, first := sent[*forge.Completion](a)
		for range 3 {
			a.reconnect(forge.LeaseVerdict{Lease: c.Lease, Verdict: verdict, HardTTL: a.ttl})
			f, again := sent[*forge.Completion](a)
			if diff := cmp.Diff(first, again); diff != "" || f.ID != first.Message {
				t.Fatalf("another completion is sent as %v: %s", f.ID, diff)
			}
			no[core.CleanUp](a, "before the answer")
		}
		a.lose(forge.CloseLost)
		a.connect()
		a.register()
		a.resync()
		a.ack(forge.CompletionDuplicate)
		effect[core.CleanUp](a)
		a.is(c, forge.AttemptSucceeded)
	}
}

func TestWhatWasTooEarlyIsMendedWithTheSameMessage(t *testing.T) {
	t.Run("log", func(t *testing.T) {
		a := online(t)
		c := a.asking(1)
		f, first := sent[*forge.Completion](a)
		a.answer(f.ID, &forge.Error{Code: forge.ErrorNotYetLog, Retry: forge.RetryDelayed})
		notSent[*forge.LogFinal](a, "at once")
		a.until(time.Second)
		a.sealed(c)
		if _, again := sent[*forge.Completion](a); again.Message != first.Message || again.Hash != first.Hash {
			t.Fatalf("%+v", again)
		}
	})
	t.Run("frames", func(t *testing.T) {
		a := online(t)
		c := a.completing(1)
		a.ackLog(c)
		f, _ := sent[*forge.LogFinal](a)
		a.effects = nil
		a.answer(f.ID, &forge.Error{Code: forge.ErrorNotYetLog, Retry: forge.RetryDelayed})
		a.until(time.Second)
		effect[core.StreamLog](a)
		if again, _ := sent[*forge.LogFinal](a); again.ID != f.ID {
			t.Fatal("the message has another id")
		}
	})
}

// The daemon closes a log a while after its attempt was lost. What comes later finds no place there, and must not keep
// the agent's slot.
func TestALogThatTakesNoFrameHoldsUpNothingOnceItsLeaseIsOver(t *testing.T) {
	a := online(t)
	c := a.completing(1)
	a.reconnect(stale(c))
	for range 3 {
		a.beat(stale(c))
		if hasSent[*forge.Completion](a) {
			break
		}
	}
	a.ack(forge.CompletionStale)
	effect[core.CleanUp](a)
}

func TestALogThatMovesIsFinishedThoughItsLeaseIsOver(t *testing.T) {
	a := online(t)
	c := a.completing(1)
	a.reconnect(stale(c))
	for next := forge.LogSeq(2); next <= 6; next++ {
		a.receive(&forge.LogAck{Attempt: c.Attempt, Next: next})
		a.beat(stale(c))
		notSent[*forge.Completion](a, "while frames are on their way")
	}
	a.ackLog(c)
	a.sealed(c)
	a.ack(forge.CompletionStale)
	effect[core.CleanUp](a)
}

func TestALeaseThatOutlivesItsTimeWhileUploadingKillsNothing(t *testing.T) {
	a := online(t)
	c := a.uploading(1)
	a.reconnect(stale(c))
	a.beat(stale(c))
	a.beat(stale(c))
	a.complete(c)
	no[core.Kill](a, "for a workload that has ended")
	no[core.CleanUp](a, "before the answer")
	a.ackLog(c)
	a.sealed(c)
	a.ack(forge.CompletionStale)
	effect[core.CleanUp](a)
}
