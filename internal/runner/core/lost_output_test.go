package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// Outputs that the daemon had, and has lost before it took the completion.

// misses has the daemon say that it misses an output of the completion that was sent.
func (a *agent) misses() *forge.Completion {
	a.t.Helper()
	f, m := sent[*forge.Completion](a)
	if f.ID != m.Message {
		a.t.Fatalf("completion %v is sent as %v", m.Message, f.ID)
	}
	a.answer(f.ID, &forge.Error{Code: forge.ErrorNotYetRef, Retry: forge.RetryDelayed})
	return m
}

// live lets time pass with a daemon that renews the leases.
func (a *agent) live(d time.Duration) {
	a.t.Helper()
	end := a.now.Add(d)
	for a.core.Wake() <= end {
		a.until(max(0, a.core.Wake().Sub(a.now)))
		if hasSent[*forge.Heartbeat](a) {
			a.beat()
		}
	}
	a.now = end
}

// uploads is how long uploads of a job here may take.
func uploads() time.Duration { return forge.DefaultJobSpec().Timeouts.Upload }

func TestAnOutputThatTheDaemonMissesIsDeliveredAgainBeforeTheSameCompletion(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	a.effects = nil
	first := a.misses()
	again := effect[core.Redeliver](a)
	if again.Attempt != c.Attempt || again.Within != uploads() {
		t.Fatalf("%+v", again)
	}
	a.until(5 * time.Second)
	a.reconnect()
	notSent[*forge.Completion](a, "while the output is on its way")
	a.step(core.Redelivered{Attempt: c.Attempt})
	f, m := sent[*forge.Completion](a)
	if diff := cmp.Diff(first, m); diff != "" || f.ID != first.Message {
		t.Fatalf("another completion is sent as %v: %s", f.ID, diff)
	}
	notSent[*forge.LogFinal](a, "for a log that is sealed")
	no[core.StreamLog](a, "for a log that is sealed")
	no[core.WriteRecord](a, "for what has not changed")
	a.answer(f.ID, &forge.CompletionAck{Attempt: c.Attempt, Message: m.Message, Answer: forge.CompletionAccepted})
	effect[core.CleanUp](a)
	a.is(c, forge.AttemptSucceeded)
}

func TestADaemonThatStillMissesWhatItWasSentIsNotAskedInALoop(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	a.misses()
	a.step(core.Redelivered{Attempt: c.Attempt})
	notSent[*forge.Completion](a, "at once, though nothing had to be sent")
	a.until(time.Second)
	if !hasSent[*forge.Completion](a) {
		t.Fatal("nothing is asked")
	}
}

// TestTheTimeForUploadsBoundsEveryDelivery: what the first took counts, and so does the time in which the daemon does not
// find what it was given again.
func TestTheTimeForUploadsBoundsEveryDelivery(t *testing.T) {
	a := online(t)
	c := a.uploading(1)
	a.journal()
	effect[core.Deliver](a)
	a.live(uploads() / 2)
	a.step(delivered(c))
	a.journal()
	a.live(uploads()) // until the log is sealed; nothing is uploaded meanwhile
	a.ackLog(c)
	a.sealed(c)
	first := a.misses()
	if again := effect[core.Redeliver](a); again.Within != uploads()/2 {
		t.Fatalf("%v are left", again.Within)
	}
	a.live(uploads() / 4)
	a.step(core.Redelivered{Attempt: c.Attempt})
	a.misses()
	if again := effect[core.Redeliver](a); again.Within != uploads()/4 {
		t.Fatalf("%v are left after more", again.Within)
	}
	a.live(uploads() / 4)
	a.step(core.Redelivered{Attempt: c.Attempt})
	a.misses()
	no[core.Redeliver](a, "after the time for uploads")
	a.saysWithout(c, first)
}

func TestACompletionIsSaidAnewWithoutOutputsThatAreGone(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	first := a.misses()
	a.step(core.Redelivered{Attempt: c.Attempt, Failed: true})
	a.saysWithout(c, first)
}

// saysWithout fails the story unless the completion is said anew, once that is durable, without outputs and otherwise the same.
func (a *agent) saysWithout(c forge.AttemptContext, first *forge.Completion) {
	a.t.Helper()
	a.until(2 * time.Second)
	notSent[*forge.Completion](a, "before the new one is durable")
	a.reconnect()
	notSent[*forge.Completion](a, "before the new one is durable, on a new connection")
	if r := a.journal(); r.State != forge.AttemptCompleting || r.Completion.Hash != r.Completion.ResultHash() {
		a.t.Fatalf("%+v", r)
	}
	f, m := sent[*forge.Completion](a)
	want := *first
	want.Message, want.Outputs, want.Capture = f.ID, nil, forge.UploadFailed
	want.Hash = want.ResultHash()
	if diff := cmp.Diff(&want, m); diff != "" || m.Message == first.Message || m.Validate() != nil {
		a.t.Fatalf("said as %v: %s, %v", f.ID, diff, m.Validate())
	}
	a.receive(&forge.CompletionAck{Attempt: c.Attempt, Message: first.Message, Answer: forge.CompletionAccepted})
	no[core.CleanUp](a, "for the answer to the one before")
	a.answer(f.ID, &forge.CompletionAck{Attempt: c.Attempt, Message: m.Message, Answer: forge.CompletionAccepted})
	effect[core.CleanUp](a)
	a.is(c, forge.AttemptFailed)
}

func TestWhyOutputsWereMissingBeforeStaysSaid(t *testing.T) {
	a := online(t)
	c := a.uploading(1)
	a.journal()
	d := delivered(c)
	d.Capture = forge.OutputMissing
	a.step(d)
	a.journal()
	a.ackLog(c)
	a.sealed(c)
	a.misses()
	a.step(core.Redelivered{Attempt: c.Attempt, Failed: true})
	a.journal()
	if _, m := sent[*forge.Completion](a); m.Capture != forge.OutputMissing || m.Outputs != nil {
		t.Fatalf("%+v", m)
	}
}

func TestNothingIsDeliveredAgainForACompletionWithoutOutputs(t *testing.T) {
	a := online(t)
	c := a.uploading(1)
	a.journal()
	d := delivered(c)
	d.Outputs = nil
	a.step(d)
	a.journal()
	a.ackLog(c)
	a.sealed(c)
	first := a.misses()
	no[core.Redeliver](a, "of nothing")
	a.until(time.Second)
	if _, m := sent[*forge.Completion](a); m.Message != first.Message {
		t.Fatalf("%+v", m)
	}
}

// TestALeaseThatEndsWhileOutputsAreBroughtAgainKillsNothing: the daemon takes nothing of it any more, and says so to the
// completion, which is answered whatever the lease.
func TestALeaseThatEndsWhileOutputsAreBroughtAgainKillsNothing(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	a.misses()
	a.effects = nil
	a.reconnect(stale(c))
	a.beat(stale(c))
	a.beat(stale(c))
	no[core.Kill](a, "for a workload that has ended")
	no[core.CleanUp](a, "before the answer")
	a.step(core.Redelivered{Attempt: c.Attempt, Failed: true})
	a.journal()
	a.ack(forge.CompletionStale)
	effect[core.CleanUp](a)
}

func TestAnAnswerThatComesWhileOutputsAreBroughtAgainEndsTheAttempt(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	first := a.misses()
	a.receive(&forge.CompletionAck{Attempt: c.Attempt, Message: first.Message, Answer: forge.CompletionAccepted})
	effect[core.CleanUp](a)
	a.effects = nil
	a.step(core.Redelivered{Attempt: c.Attempt, Failed: true})
	a.step(core.CleanedUp{Attempt: c.Attempt})
	no[core.WriteRecord](a, "of an attempt that is over")
	a.gone(c)
}
