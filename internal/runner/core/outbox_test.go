package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// What waits for a control stream that is slow: classes, order, bounds.

// blockBeforeBeat stops the control stream just before the heart beats.
func (a *agent) blockBeforeBeat() {
	a.t.Helper()
	a.beat()
	a.until(a.core.Wake().Sub(a.now) - 1)
	a.forget()
	a.blocked = true
}

func TestTheMostUrgentClassIsWrittenFirst(t *testing.T) {
	a := online(t)
	running := a.running(1)
	ended := a.completing(2)
	a.blockBeforeBeat()
	a.step(core.Command{Kind: core.CommandAdmission, Admission: other()})
	a.tick(1)
	a.offer(3)
	a.ends(running, core.WorkloadEnded{})
	a.receive(&forge.LeaseOffer{Context: forge.AttemptContext{Lease: context(9).Lease}})
	a.ackLog(ended)
	a.receive(&forge.Cancel{Attempt: running.Attempt, Lease: running.Lease, Reason: forge.CancelUser})
	a.unblock()
	want := []string{
		"*forge.CancelAck",
		"*forge.LeaseAccept", "*forge.PhaseChange", "*forge.LeaseReject", "*forge.LogFinal",
		"*forge.Heartbeat", "*forge.CapabilityUpdate",
	}
	if diff := cmp.Diff(want, kinds(a.sent)); diff != "" {
		t.Fatal(diff)
	}
}

// A stream of log frames or objects may fill the connection: a cancel is heard and acknowledged all the same, for the
// core owes nobody an answer before.
func TestACancelReachesTheWorkloadWhileNothingCanBeWritten(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.blocked = true
	a.receive(&forge.Cancel{Attempt: c.Attempt, Lease: c.Lease, Reason: forge.CancelUser})
	if s := effect[core.Stop](a); s.Attempt != c.Attempt || s.Reason != forge.CancelUser {
		t.Fatalf("%+v", s)
	}
	a.forget()
	a.unblock()
	if ack, ok := a.sent[0].Body.(*forge.CancelAck); !ok || ack.Lease != c.Lease {
		t.Fatalf("%v", kinds(a.sent))
	}
}

func TestOneHeartbeatWaitsHoweverManyFellDue(t *testing.T) {
	a := newAgent(t)
	a.policy.TTL, a.policy.Renew = 6*time.Second, 1500*time.Millisecond
	a.begin()
	a.connect()
	a.register()
	a.resync()
	c := a.preparing(1)
	a.blockBeforeBeat()
	a.until(5 * time.Second)
	a.step(core.Prepared{Attempt: c.Attempt})
	a.step(core.WorkloadStarted{Attempt: c.Attempt})
	a.unblock()
	if diff := cmp.Diff([]string{"*forge.PhaseChange", "*forge.Heartbeat"}, kinds(a.sent)); diff != "" {
		t.Fatal(diff)
	}
	_, m := sent[*forge.Heartbeat](a)
	if len(m.Attempts) != 1 || m.Attempts[0].Phase != forge.AttemptRunning {
		t.Fatalf("the body is old: %+v", m.Attempts)
	}
}

func TestAHeartbeatNamesTheGrantedLeases(t *testing.T) {
	a := online(t)
	c := a.completing(1)
	rejected := a.preparing(2)
	a.step(core.Command{Kind: core.CommandReject, Attempt: rejected.Attempt, Reason: forge.RejectPreparation})
	a.ends(rejected, core.WorkloadEnded{})
	m := a.beat()
	want := &forge.Heartbeat{
		Runner: runner, Session: session, Nonce: m.Nonce, State: forge.AgentOnline,
		CapabilityDigest: machine().Capabilities.Digest(),
		Attempts:         []forge.HeartbeatItem{{Attempt: c.Attempt, Lease: c.Lease, Phase: forge.AttemptCompleting}},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Fatal(diff)
	}
}

func TestHeartbeatsAreJitteredAroundTheIntervalThatTheDaemonTells(t *testing.T) {
	a := online(t)
	a.beat()
	shortest, longest := time.Hour, time.Duration(0)
	for range 200 {
		last := a.now
		a.beat()
		shortest, longest = min(shortest, a.now.Sub(last)), max(longest, a.now.Sub(last))
	}
	if low, high := policy.Renew*4/5, policy.Renew*6/5; shortest < low || shortest > low+low/10 || longest > high || longest < high-high/10 {
		t.Fatalf("between %v and %v", shortest, longest)
	}
}

func TestWhatAwaitsAnAnswerIsBounded(t *testing.T) {
	cfg := config()
	cfg.Slots = 3 * core.MaxOutstanding
	a := newAgentWith(t, cfg)
	a.begin()
	a.connect()
	a.register()
	a.resync()
	for n := range core.MaxOutstanding + 50 {
		c := context(1)
		c.Lease.ULID[14], c.Lease.ULID[13] = byte(n), byte(n>>8)
		c.Attempt.ULID = c.Lease.ULID
		a.receive(&forge.LeaseOffer{Context: c, Spec: encode(spec())})
	}
	if len(a.sent) != core.MaxOutstanding || a.wants != 0 {
		t.Fatalf("%d requests await an answer, %d Wants are out", len(a.sent), a.wants)
	}
	f := a.sent[0]
	m := f.Body.(*forge.LeaseAccept)
	a.answer(f.ID, &forge.LeaseAcceptAck{Lease: m.Context.Lease, Nonce: m.Nonce, Refused: forge.RefusedExpired})
	if len(a.sent) != core.MaxOutstanding+1 {
		t.Fatal("an answer makes no room for the next request")
	}
}

// A daemon may say the same things for ever to an agent that cannot write. What would answer it is lost, as it might be
// on the way.
func TestAFloodThatCannotBeAnsweredTakesNoMemory(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.forget()
	a.blocked = true
	const flood = 5000
	for n := range flood {
		o := context(1)
		o.Lease.ULID[14], o.Lease.ULID[13] = byte(n), byte(n>>8)
		a.receive(&forge.LeaseOffer{Context: o})
		a.receive(&forge.Cancel{Attempt: c.Attempt, Lease: o.Lease, Reason: forge.CancelUser})
	}
	a.unblock()
	if len(a.sent) > 4096 {
		t.Fatalf("%d frames waited", len(a.sent))
	}
	if !hasSent[*forge.LeaseReject](a) || !hasSent[*forge.CancelAck](a) {
		t.Fatalf("%v", kinds(a.sent))
	}
}
