package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// A lease: taken once, worth nothing before it is granted, and for how long.

func TestNothingIsPreparedBeforeTheLeaseIsGranted(t *testing.T) {
	a := online(t)
	c := a.offer(1)
	a.until(policy.Request - 1)
	no[core.WriteRecord](a, "before the lease was granted")
	no[core.Prepare](a, "before the lease was granted")
	if h := a.is(c, forge.AttemptOffered); h.Granted {
		t.Fatal("an acceptance that was not answered counts as granted")
	}
	a.grant(c)
	no[core.Prepare](a, "before the record is durable")
	a.journal()
	p := effect[core.Prepare](a)
	if p.Context != c || string(p.Bytes) != string(encode(spec())) {
		t.Fatalf("prepared %v from %d bytes", p.Context, len(p.Bytes))
	}
}

func TestAnAcceptanceNamesTheWholeTuple(t *testing.T) {
	a := online(t)
	c := a.offer(1)
	if m := a.grant(c); m.Context != c || m.Nonce == 0 {
		t.Fatalf("%+v", m)
	}
}

func TestTheDeadlineCountsFromBeforeTheRequestLessTwoPercent(t *testing.T) {
	a := online(t)
	a.blocked = true
	c := a.offer(1)
	a.tick(3 * time.Second) // in the queue
	a.unblock()
	asked := a.now
	a.tick(4 * time.Second) // on its way
	a.grant(c)
	if got, want := a.is(c, forge.AttemptAccepted).Deadline, asked.Add(a.ttl*98/100); got != want {
		t.Fatalf("the deadline is %v after the request, should be %v", got.Sub(asked), want.Sub(asked))
	}
	a.journal()
	if p := effect[core.Prepare](a); p.Deadline != asked.Add(a.ttl*98/100) {
		t.Fatalf("the sandbox is told another deadline: %v", p.Deadline.Sub(asked))
	}
}

func TestARenewalMovesTheDeadlineForwardOnly(t *testing.T) {
	a := online(t)
	c := a.running(1)
	before := a.is(c, forge.AttemptRunning).Deadline
	a.beat()
	after := a.is(c, forge.AttemptRunning).Deadline
	if after <= before {
		t.Fatal("a renewal gave no time")
	}
	if m := effect[core.MoveDeadline](a); m.Attempt != c.Attempt || m.Deadline != after {
		t.Fatalf("the sandbox was told %+v", m)
	}
	a.ttl = 20 * time.Second // less than what is left
	a.beat()
	if got := a.is(c, forge.AttemptRunning).Deadline; got != after {
		t.Fatalf("the deadline moved by %v", got.Sub(after))
	}
	no[core.MoveDeadline](a, "although nothing moved")
}

func TestAnAnswerToAnOlderTransmissionMovesNothing(t *testing.T) {
	a := online(t)
	c := a.running(1)
	before := a.is(c, forge.AttemptRunning).Deadline
	a.until(policy.Renew)
	f, m := sent[*forge.Heartbeat](a)
	verdicts := []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: time.Hour}}
	a.answer(f.ID, &forge.HeartbeatAck{Nonce: m.Nonce - 1, Verdicts: verdicts})
	a.answer(forge.MessageID{ULID: forge.ULID{9}}, &forge.HeartbeatAck{Nonce: m.Nonce, Verdicts: verdicts})
	if got := a.is(c, forge.AttemptRunning).Deadline; got != before {
		t.Fatalf("the deadline moved by %v", got.Sub(before))
	}
	a.answer(f.ID, &forge.HeartbeatAck{Nonce: m.Nonce, Verdicts: verdicts})
	moved := a.is(c, forge.AttemptRunning).Deadline
	if moved == before {
		t.Fatal("the right answer moved nothing")
	}
	a.tick(time.Second)
	a.answer(f.ID, &forge.HeartbeatAck{Nonce: m.Nonce, Verdicts: []forge.LeaseVerdict{{Lease: c.Lease, Verdict: forge.VerdictContinue, HardTTL: 2 * time.Hour}}})
	if got := a.is(c, forge.AttemptRunning).Deadline; got != moved {
		t.Fatal("one request was answered twice")
	}
}

func TestALeaseIsTakenOnceInTheLifeOfAProcess(t *testing.T) {
	a := online(t)
	c := a.asking(1)
	for range 2 {
		a.offer(1)
	}
	notSent[*forge.LeaseAccept](a, "for a copy of an offer")
	notSent[*forge.LeaseReject](a, "for a lease that is held")
	if len(a.core.Held()) != 1 {
		t.Fatalf("%d attempts are held", len(a.core.Held()))
	}
	a.ack(forge.CompletionAccepted)
	a.step(core.CleanedUp{Attempt: c.Attempt})
	a.refusesAgain(t, 1)
}

func TestALeaseThatWasDroppedIsRefusedWhenItComesAgain(t *testing.T) {
	a := online(t)
	c := a.offer(1)
	f, m := sent[*forge.LeaseAccept](a)
	a.answer(f.ID, &forge.LeaseAcceptAck{Lease: c.Lease, Nonce: m.Nonce, Refused: forge.RefusedExpired})
	a.gone(c)
	a.refusesAgain(t, 1)
}

func TestALeaseThatWasRejectedIsRefusedWhenItComesAgain(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandDrain})
	a.offer(1)
	sent[*forge.LeaseReject](a)
	a.step(core.Command{Kind: core.CommandResume})
	a.refusesAgain(t, 1)
}

// refusesAgain offers job n once more.
func (a *agent) refusesAgain(t *testing.T, n byte) {
	t.Helper()
	c := a.offer(n)
	if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectAlreadyTaken {
		t.Fatalf("%+v", m)
	}
	notSent[*forge.LeaseAccept](a, "for a lease that is over here")
	a.gone(c)
}

func TestARefusalDropsOnlyWhatWasNotStarted(t *testing.T) {
	for _, test := range []struct {
		name    string
		reach   func(a *agent) forge.AttemptContext
		dropped bool
	}{
		{"offered", func(a *agent) forge.AttemptContext { return a.offer(1) }, true},
		{"accepted", func(a *agent) forge.AttemptContext { return a.accepted(1) }, false},
		{"preparing", func(a *agent) forge.AttemptContext { return a.preparing(1) }, false},
		{"running", func(a *agent) forge.AttemptContext { return a.running(1) }, false},
		{"uploading", func(a *agent) forge.AttemptContext { return a.uploading(1) }, false},
		{"completing", func(a *agent) forge.AttemptContext { return a.completing(1) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := online(t)
			c := test.reach(a)
			a.effects = nil
			a.receive(&forge.LeaseAcceptAck{Lease: c.Lease, Refused: forge.RefusedSuperseded})
			if _, held := a.held(c); held == test.dropped {
				t.Fatalf("held: %v", held)
			}
			no[core.Kill](a, "for a refusal")
			no[core.CleanUp](a, "for a refusal")
		})
	}
}

func TestAnExpiredLeaseNeverRuns(t *testing.T) {
	a := online(t)
	c := a.offer(1)
	f, m := sent[*forge.LeaseAccept](a)
	a.answer(f.ID, &forge.LeaseAcceptAck{Lease: c.Lease, Nonce: m.Nonce, Refused: forge.RefusedExpired})
	a.until(time.Minute)
	no[core.WriteRecord](a, "for a lease that had expired")
	no[core.Prepare](a, "for a lease that had expired")
	a.gone(c)
}

func TestAGrantThatComesTooLateStartsNothing(t *testing.T) {
	a := online(t)
	a.ttl = 6 * time.Second
	c := a.offer(1)
	a.tick(3 * time.Second)
	a.grant(c)
	a.journal()
	no[core.Prepare](a, "when the kill would be due at once")
	if h := a.is(c, forge.AttemptUploading); h.Frozen.Outcome() != forge.Lost {
		t.Fatalf("it ends as %v", h.Frozen.Outcome())
	}
}

func TestAPauseBetweenPreparedAndStartIsNoticed(t *testing.T) {
	a := online(t)
	c := a.preparing(1)
	a.now = a.now.Add(time.Hour) // the machine slept; no tick yet
	a.step(core.Prepared{Attempt: c.Attempt})
	no[core.Start](a, "after the deadline")
	a.step(core.Tick{})
	if k := effect[core.Kill](a); !k.Bite || k.Soft {
		t.Fatalf("%+v", k)
	}
}
