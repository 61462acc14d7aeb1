package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Which connection speaks for a runner, and what it is offered.

func TestANewerConnectionClosesTheOlderOne(t *testing.T) {
	for _, test := range []struct {
		name     string
		old, now *forge.Register
		reason   forge.CloseReason
	}{
		{"of the same process", registration(1, 1), registration(1, 2), forge.CloseFenced},
		{"of a newer process", registration(1, 9), registration(2, 1), forge.CloseSessionSuperseded},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDaemon(t)
			d.active(1, test.old)
			d.register(2, test.now)
			d.isClosed(1, test.reason)
			d.receive(1, &forge.Heartbeat{})
			d.silent()
			d.resync(2, authority.Snapshot{})
		})
	}
}

// The store decided the newer one first, but its answer came last.
func TestTheNewerConnectionWinsThoughItsAnswerCameFirst(t *testing.T) {
	for _, test := range []struct {
		name     string
		old, now *forge.Register
		reason   forge.CloseReason
	}{
		{"of the same process", registration(1, 1), registration(1, 2), forge.CloseFenced},
		{"of a newer process", registration(1, 9), registration(2, 1), forge.CloseSessionSuperseded},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDaemon(t)
			d.open(1)
			d.receive(1, test.old)
			d.open(2)
			d.receive(2, test.now)
			_, first := begun[*authority.Register](d)
			_, second := begun[*authority.Register](d)
			d.step(core.Done{Tx: second, Committed: true, Answer: authority.Answer{Done: true}})
			if s, _ := answer[*forge.RegistrationAccepted](d); s.Conn != 2 {
				t.Fatalf("connection %d is told that it speaks", s.Conn)
			}
			d.step(core.Done{Tx: first, Committed: true, Answer: authority.Answer{Done: true}})
			d.isClosed(1, test.reason)
		})
	}
}

func TestAConnectionOfAnotherFolderIsLeftToTheStore(t *testing.T) {
	d := online(t)
	m := registration(2, 1)
	m.StateFolder = forge.StateFolderID{ULID: forge.ULID{0: 'G'}}
	d.register(2, m)
	d.silent()
}

func TestAConnectionOfAnotherRunnerIsLeftAlone(t *testing.T) {
	d := online(t)
	d.step(core.Opened{Conn: 2, Runner: forge.RunnerID{ULID: forge.ULID{0: 'Q'}}})
	d.receive(2, registration(1, 5))
	commit[*authority.Register](d, authority.Answer{Done: true})
	answer[*forge.RegistrationAccepted](d)
	d.silent()
}

// Another daemon has the newer connection: the reading shows it.
func TestAConnectionThatIsOlderThanTheStoreSaysIsClosed(t *testing.T) {
	d := online(t)
	seen := authority.SeenSession{
		Runner: authority.Runner{ID: runner}, Session: authority.Session{Runner: runner, Session: sessionOf(1), TransportSeq: 1},
	}
	d.read(authority.Snapshot{Sessions: []authority.SeenSession{seen}})
	d.silent()
	seen.Session.TransportSeq = 2
	d.read(authority.Snapshot{Sessions: []authority.SeenSession{seen}})
	d.isClosed(1, forge.CloseFenced)
}

func TestAReadingFromBeforeTheRegistrationClosesNothing(t *testing.T) {
	d := newDaemon(t)
	d.active(1, registration(2, 5))
	for _, s := range []authority.Session{
		{Runner: runner, Session: sessionOf(2), TransportSeq: 4},
		{Runner: runner, Session: sessionOf(1), TransportSeq: 9},
	} {
		d.read(authority.Snapshot{Sessions: []authority.SeenSession{{Runner: authority.Runner{ID: runner}, Session: s}}})
	}
	d.silent()
}

func place() core.Place {
	c := context(1, 1)
	return core.Place{Job: c.Job, Runner: runner, Attempt: c.Attempt, Lease: c.Lease}
}

func TestAnOfferIsSentOnceItIsCommitted(t *testing.T) {
	d := online(t)
	d.step(place())
	d.silentBut(t, 1)
	c := context(1, 1)
	cmd := commit[*authority.Offer](d, authority.Answer{Done: true, Context: c})
	want := &authority.Offer{Fence: fence(registration(1, 1)), Job: c.Job, Attempt: c.Attempt, Lease: c.Lease}
	if diff := cmp.Diff(want, cmd); diff != "" {
		t.Fatal(diff)
	}
	if len(d.offers) != 1 || d.offers[0].Context != c || d.offers[0].Conn != 1 {
		t.Fatalf("%+v", d.offers)
	}
}

func TestAnOfferIsNotSentWhereItWasNotMade(t *testing.T) {
	for name, done := range map[string]core.Done{
		"refused":       {Committed: true},
		"unknown":       {Unknown: true, Answer: authority.Answer{Done: true}},
		"not committed": {Answer: authority.Answer{Done: true}},
	} {
		d := online(t)
		d.step(place())
		_, done.Tx = begun[*authority.Offer](d)
		d.step(done)
		if d.silent(); t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestAnOfferWhoseConnectionIsGoneIsLost(t *testing.T) {
	d := online(t)
	d.step(place())
	d.step(core.Closed{Conn: 1})
	commit[*authority.Offer](d, authority.Answer{Done: true, Context: context(1, 1)})
	d.silent()
	d.register(2, registration(1, 2))
	d.resync(2, authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseOffered)}})
	if len(d.offers) != 1 || d.offers[0].Conn != 2 {
		t.Fatalf("%+v", d.offers)
	}
}

func TestNobodyIsOfferedAJobBeforeTheResync(t *testing.T) {
	d := newDaemon(t)
	d.step(place())
	d.register(1, registration(1, 1))
	d.step(place())
	d.silent()
}
