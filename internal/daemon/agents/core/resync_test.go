package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// A resync: what the agent names is claimed, what it does not name is lost, then the reply, then the offers.

func item(n byte, phase forge.AttemptState) forge.ResyncItem {
	c := context(n, 1)
	return forge.ResyncItem{Job: c.Job, Attempt: c.Attempt, Lease: c.Lease, Spec: c.Spec, Phase: phase, EventSeq: uint64(n)}
}

func TestAResyncGoesItemByItemThenWhatIsAbsentThenTheReply(t *testing.T) {
	d := newDaemon(t)
	d.register(1, registration(1, 1))
	id := d.receive(1, &forge.Resync{Nonce: 33, Attempts: []forge.ResyncItem{item(2, forge.AttemptRunning), item(1, forge.AttemptOffered)}})
	snapshot := &authority.Snapshot{Leases: []authority.Lease{
		lease(1, forge.LeaseAccepted), lease(2, forge.LeaseAccepted), lease(3, forge.LeaseAccepted), lease(4, forge.LeaseOffered),
	}}
	other := lease(5, forge.LeaseAccepted)
	other.Context.Session = sessionOf(7)
	snapshot.Leases = append(snapshot.Leases, other)
	if l := d.load(snapshot); l.Runner != runner {
		t.Fatalf("read %+v", l)
	}
	for i, n := range []byte{2, 1} {
		d.silentBut(t, 1)
		cmd := commit[*authority.Claim](d, authority.Answer{Done: true, Verdicts: []forge.LeaseVerdict{renewed(n)}})
		phase := []forge.AttemptState{forge.AttemptRunning, forge.AttemptOffered}[i]
		if cmd.Context != context(n, 1) || cmd.Phase != phase || cmd.EventSeq != uint64(n) || cmd.Fence != fence(registration(1, 1)) {
			t.Fatalf("%+v", cmd)
		}
	}
	d.silentBut(t, 1)
	if cmd := commit[*authority.Absent](d, authority.Answer{Done: true}); cmd.Context != context(3, 1) {
		t.Fatalf("%+v", cmd)
	}
	d.silentBut(t, 1)
	commit[*authority.Touch](d, authority.Answer{Done: true})
	s, m := answer[*forge.ResyncReply](d)
	want := &forge.ResyncReply{Nonce: 33, Verdicts: []forge.LeaseVerdict{renewed(2), renewed(1)}}
	if diff := cmp.Diff(want, m); diff != "" || s.Frame.Re != id {
		t.Fatal(diff, s.Frame.Re)
	}
	if len(d.offers) != 1 || d.offers[0].Context != context(4, 1) || d.offers[0].Conn != 1 {
		t.Fatalf("offers sent again: %+v", d.offers)
	}
}

func TestAnOfferThatTheResyncAcceptsIsNotSentAgain(t *testing.T) {
	d := newDaemon(t)
	d.register(1, registration(1, 1))
	d.receive(1, &forge.Resync{Attempts: []forge.ResyncItem{item(1, forge.AttemptOffered)}})
	d.load(&authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseOffered)}})
	commit[*authority.Claim](d, authority.Answer{Done: true, Verdicts: []forge.LeaseVerdict{renewed(1)}})
	commit[*authority.Touch](d, authority.Answer{Done: true})
	answer[*forge.ResyncReply](d)
	d.silent()
}

func TestAnOfferIsSentAgainAfterEveryResync(t *testing.T) {
	d := newDaemon(t)
	for seq := range uint64(3) {
		id := core.ConnID(seq + 1)
		d.register(id, registration(1, seq+1))
		d.closed = nil
		d.resync(id, authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseOffered)}})
		if len(d.offers) != 1 || d.offers[0].Conn != id || d.offers[0].ID.IsZero() {
			t.Fatalf("%+v", d.offers)
		}
		d.offers = nil
	}
}

func TestAResyncThatCannotReadTheStoreIsNotAnswered(t *testing.T) {
	d := newDaemon(t)
	d.register(1, registration(1, 1))
	d.receive(1, &forge.Resync{})
	d.load(nil)
	d.isClosed(1, forge.CloseInternal)
}

func TestAResyncThatIsFencedInTheMiddleGetsNoVerdict(t *testing.T) {
	d := newDaemon(t)
	d.register(1, registration(1, 1))
	d.receive(1, &forge.Resync{Attempts: []forge.ResyncItem{item(1, forge.AttemptRunning), item(2, forge.AttemptRunning)}})
	d.load(&authority.Snapshot{})
	commit[*authority.Claim](d, authority.Answer{Done: true, Verdicts: []forge.LeaseVerdict{renewed(1)}})
	commit[*authority.Claim](d, authority.Answer{Close: forge.CloseFenced})
	d.isClosed(1, forge.CloseFenced)
}

func TestAttemptsOfAnEarlierProcessAreDecidedInOrder(t *testing.T) {
	d := online(t)
	previous := []forge.RecoveredAttempt{
		{Context: context(3, 9), Killed: true}, {Context: context(1, 9), Killed: true}, {Context: context(2, 9)},
	}
	id := d.receive(1, &forge.RecoverAttempts{Previous: previous})
	verdicts := []forge.RecoveryVerdict{forge.RecoveryApplied, forge.RecoveryEnded, forge.RecoveryWaits}
	var want []forge.RecoveryDecision
	for i, p := range previous {
		d.silentBut(t, 1)
		cmd := commit[*authority.Recover](d, authority.Answer{Recovery: verdicts[i]})
		if diff := cmp.Diff(p, cmd.Item); diff != "" {
			t.Fatal(diff)
		}
		want = append(want, forge.RecoveryDecision{Attempt: p.Context.Attempt, Verdict: verdicts[i]})
	}
	s, m := answer[*forge.RecoveryDecisions](d)
	if diff := cmp.Diff(want, m.Decisions); diff != "" || s.Frame.Re != id {
		t.Fatal(diff)
	}
	d.receive(1, &forge.Heartbeat{})
	d.silentBut(t, 1)
}

func TestARecoveryOfNothingIsAnswered(t *testing.T) {
	d := online(t)
	id := d.receive(1, &forge.RecoverAttempts{})
	if s, m := answer[*forge.RecoveryDecisions](d); s.Frame.Re != id || len(m.Decisions) > 0 {
		t.Fatalf("%+v", s)
	}
	d.receive(1, &forge.Heartbeat{})
	d.silentBut(t, 1)
}

// Rows are locked in the order of their ids, each once; the agent gets its verdicts in the order in which it asked.
func TestAHeartbeatIsAnsweredInTheOrderOfItsItems(t *testing.T) {
	d := online(t)
	m := &forge.Heartbeat{Nonce: 7}
	for _, n := range []byte{3, 1, 3, 2, 1} {
		m.Attempts = append(m.Attempts, forge.HeartbeatItem{Attempt: context(n, 1).Attempt, Lease: context(n, 1).Lease})
	}
	d.receive(1, m)
	cmd, tx := begun[*authority.Heartbeat](d)
	locked := []forge.LeaseID{context(1, 1).Lease, context(2, 1).Lease, context(3, 1).Lease}
	if diff := cmp.Diff(locked, cmd.Leases); diff != "" {
		t.Fatal(diff)
	}
	if len(cmd.Watched) != len(cmd.Leases) {
		t.Fatalf("%+v", cmd.Watched)
	}
	d.step(core.Done{Tx: tx, Committed: true, Answer: authority.Answer{Verdicts: []forge.LeaseVerdict{renewed(1), renewed(2), renewed(3)}}})
	_, ack := answer[*forge.HeartbeatAck](d)
	want := &forge.HeartbeatAck{Nonce: 7, Verdicts: []forge.LeaseVerdict{renewed(3), renewed(1), renewed(3), renewed(2), renewed(1)}}
	if diff := cmp.Diff(want, ack); diff != "" {
		t.Fatal(diff)
	}
}

func TestARenewalSaysHowLongThisDaemonHasWatched(t *testing.T) {
	d := online(t)
	l := lease(1, forge.LeaseAccepted)
	l.Renewals = 4
	d.read(authority.Snapshot{Leases: []authority.Lease{l}})
	d.until(300 * time.Millisecond)
	d.receive(1, &forge.Heartbeat{Attempts: []forge.HeartbeatItem{{Lease: l.Context.Lease}, {Lease: context(2, 1).Lease}}})
	cmd, _ := begun[*authority.Heartbeat](d)
	want := []authority.Watched{
		{Lease: l.Context.Lease, Renewals: 4, For: 300 * time.Millisecond}, {Lease: context(2, 1).Lease},
	}
	if diff := cmp.Diff(want, cmd.Watched); diff != "" {
		t.Fatal(diff)
	}
}
