package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// The order of a dialogue: register, resync, then everything else; one request at a time.

// requests are the messages that an agent may send once it is resynced.
func requests() []forge.Message {
	c := context(1, 1)
	return []forge.Message{
		&forge.LeaseAccept{Context: c}, &forge.LeaseReject{Context: c, Reason: forge.RejectDraining}, &forge.Heartbeat{},
		&forge.PhaseChange{Context: c}, &forge.LogFinal{Context: c}, &forge.Completion{Context: c},
		&forge.RecoverAttempts{Previous: []forge.RecoveredAttempt{{Context: c}}}, &forge.CapabilityUpdate{}, &forge.CancelAck{},
	}
}

func TestNothingIsHeardBeforeRegistrationAndResync(t *testing.T) {
	for _, m := range append(requests(), &forge.Resync{}) {
		d := newDaemon(t)
		d.open(1)
		d.receive(1, m)
		d.isClosed(1, forge.CloseBadState)
	}
	for _, m := range append(requests(), registration(1, 2)) {
		d := newDaemon(t)
		d.register(1, registration(1, 1))
		d.receive(1, m)
		d.isClosed(1, forge.CloseBadState)
	}
	for _, m := range []forge.Message{&forge.Resync{}, registration(1, 2)} {
		d := online(t)
		d.receive(1, m)
		d.isClosed(1, forge.CloseBadState)
	}
}

func TestARegistrationIsOfTheRunnerOfTheCertificate(t *testing.T) {
	d := newDaemon(t)
	d.open(1)
	m := registration(3, 4)
	m.Runner = forge.RunnerID{ULID: forge.ULID{0: 'X'}}
	d.receive(1, m)
	cmd, _ := begun[*authority.Register](d)
	want := &authority.Register{
		Runner: runner, Session: m.Session, StateFolder: m.StateFolder, Boot: m.Boot, StartCounter: 3, TransportSeq: 4,
		Version: "test", Patience: 122*time.Second + 400*time.Millisecond,
	}
	if diff := cmp.Diff(want, cmd); diff != "" {
		t.Fatal(diff)
	}
}

func TestARegistrationIsAnsweredWithTheTimeScale(t *testing.T) {
	d := newDaemon(t)
	d.open(1)
	id := d.receive(1, registration(1, 1))
	d.silentBut(t, 1)
	commit[*authority.Register](d, authority.Answer{Done: true})
	s, m := answer[*forge.RegistrationAccepted](d)
	if s.Conn != 1 || s.Frame.Re != id || m.Policy != policy {
		t.Fatalf("%+v", s)
	}
}

// silentBut expects n transactions and nothing else.
func (d *daemon) silentBut(t *testing.T, n int) {
	t.Helper()
	if len(d.begun) != n || len(d.sent)+len(d.closed)+len(d.offers) > 0 {
		t.Fatalf("%d transactions, sent %+v, closed %+v", len(d.begun), d.sent, d.closed)
	}
}

func TestAConnectionThatDoesNotRegisterInTimeIsClosed(t *testing.T) {
	d := newDaemon(t)
	d.open(1)
	d.until(core.RegisterWithin - 1)
	d.silent()
	d.until(1)
	d.isClosed(1, forge.CloseRegisterTimeout)
}

func TestRequestsAreHandledOneAtATimeAndInOrder(t *testing.T) {
	d := online(t)
	c := context(1, 1)
	accept := d.receive(1, &forge.LeaseAccept{Context: c, Nonce: 11})
	d.receive(1, &forge.CapabilityUpdate{Runner: runner})
	phase := d.receive(1, &forge.PhaseChange{Context: c, Seq: 1, Phase: forge.AttemptPreparing})
	beat := d.receive(1, &forge.Heartbeat{Nonce: 12})
	d.silentBut(t, 1)
	if len(d.other) > 0 {
		t.Fatalf("what came later is done already: %v", d.other)
	}
	commit[*authority.Claim](d, authority.Answer{Done: true, Verdicts: []forge.LeaseVerdict{renewed(1)}})
	if s, m := answer[*forge.LeaseAcceptAck](d); s.Frame.Re != accept || m.Nonce != 11 || !m.Granted {
		t.Fatalf("%+v", m)
	}
	d.silentBut(t, 1)
	if cmd := commit[*authority.Phase](d, authority.Answer{Done: true}); cmd.Seq != 1 || cmd.Context != c {
		t.Fatalf("%+v", cmd)
	}
	if s, _ := answer[*forge.PhaseAck](d); s.Frame.Re != phase {
		t.Fatalf("%+v", s)
	}
	commit[*authority.Heartbeat](d, authority.Answer{Done: true})
	if s, m := answer[*forge.HeartbeatAck](d); s.Frame.Re != beat || m.Nonce != 12 {
		t.Fatalf("%+v", m)
	}
	d.silent()
}

func TestConnectionsDoNotWaitForEachOther(t *testing.T) {
	d := online(t)
	d.step(core.Opened{Conn: 2, Runner: forge.RunnerID{ULID: forge.ULID{0: 'Q'}}})
	d.receive(1, &forge.Heartbeat{})
	d.receive(2, registration(2, 1))
	d.silentBut(t, 2)
}

// Every rule carries the fence of its connection: the runner of the certificate, the session, the connection's number.
func TestEveryRequestIsFenced(t *testing.T) {
	want := fence(registration(1, 1))
	for _, m := range requests() {
		d := online(t)
		d.receive(1, m)
		for _, b := range d.begun {
			if got := fenceOf(b.Command); got != want {
				t.Errorf("%T: %+v", b.Command, got)
			}
		}
	}
}

func fenceOf(cmd authority.Command) authority.Fence {
	switch c := cmd.(type) {
	case *authority.Claim:
		return c.Fence
	case *authority.Reject:
		return c.Fence
	case *authority.Heartbeat:
		return c.Fence
	case *authority.Phase:
		return c.Fence
	case *authority.SealLog:
		return c.Fence
	case *authority.Complete:
		return c.Fence
	case *authority.Recover:
		return c.Fence
	}
	return authority.Fence{}
}

func TestNothingIsAnsweredWhereTheCommitIsNotKnown(t *testing.T) {
	for _, m := range append(requests(), &forge.Register{}, &forge.Resync{}) {
		for _, unknown := range []bool{false, true} {
			d := daemonFor(t, m)
			d.receive(1, m)
			if len(d.loads) > 0 {
				d.load(&authority.Snapshot{})
			}
			if len(d.begun) == 0 {
				continue // nothing to store, nothing to say
			}
			tx := d.begun[0].Tx
			d.begun = nil
			d.silent()
			d.step(core.Done{Tx: tx, Unknown: unknown, Answer: authority.Answer{Done: true}})
			d.isClosed(1, forge.CloseInternal)
		}
	}
}

// daemonFor returns a daemon whose connection may send the message.
func daemonFor(t *testing.T, m forge.Message) *daemon {
	d := newDaemon(t)
	switch m.(type) {
	case *forge.Register:
		d.open(1)
	case *forge.Resync:
		d.register(1, registration(1, 1))
	default:
		d.active(1, registration(1, 1))
	}
	return d
}

func TestAFencedRequestGetsTheCloseAndNoVerdict(t *testing.T) {
	for _, m := range append(requests(), &forge.Register{}, &forge.Resync{Attempts: []forge.ResyncItem{{}}}) {
		for _, reason := range []forge.CloseReason{forge.CloseFenced, forge.CloseSessionSuperseded} {
			d := daemonFor(t, m)
			d.receive(1, m)
			if len(d.loads) > 0 {
				d.load(&authority.Snapshot{})
			}
			if len(d.begun) == 0 {
				continue
			}
			tx := d.begun[0].Tx
			d.begun = nil
			d.step(core.Done{Tx: tx, Committed: true, Answer: authority.Answer{Close: reason}})
			d.isClosed(1, reason)
			d.receive(1, &forge.Heartbeat{})
			d.silent()
		}
	}
}

func TestAConnectionThatSendsTooMuchIsClosed(t *testing.T) {
	d := online(t)
	d.receive(1, &forge.Heartbeat{})
	for range core.MaxQueued {
		d.receive(1, &forge.CancelAck{})
	}
	d.silentBut(t, 1)
	d.begun = nil
	d.receive(1, &forge.CancelAck{})
	d.isClosed(1, forge.CloseOverloaded)
}

func TestATransactionOfAConnectionThatIsGoneChangesNothing(t *testing.T) {
	for _, m := range append(requests(), &forge.Register{}, &forge.Resync{}) {
		d := daemonFor(t, m)
		d.receive(1, m)
		d.step(core.Closed{Conn: 1})
		begun, loads := d.begun, d.loads
		d.begun, d.loads, d.other = nil, nil, nil
		for _, b := range begun {
			d.step(core.Done{Tx: b.Tx, Committed: true, Answer: authority.Answer{Done: true}})
		}
		for _, l := range loads {
			d.step(core.Loaded{Tx: l.Tx, Snapshot: &authority.Snapshot{}})
		}
		d.silent()
		if len(d.other) > 0 {
			t.Fatalf("%v", d.other)
		}
	}
}

func TestATransactionIsAnsweredOnce(t *testing.T) {
	d := online(t)
	d.receive(1, &forge.Heartbeat{})
	_, tx := begun[*authority.Heartbeat](d)
	for range 2 {
		d.step(core.Done{Tx: tx, Committed: true})
	}
	d.step(core.Done{Tx: tx + 100})
	answer[*forge.HeartbeatAck](d)
	d.silent()
}
