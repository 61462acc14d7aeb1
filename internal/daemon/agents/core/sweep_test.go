package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// What a daemon does by itself: it reads, expires what stood still, passes cancels on, closes what may not speak.

func TestALeaseIsExpiredOnceItWasSeenStandingStillForItsWholeTimeAndAMargin(t *testing.T) {
	for _, test := range []struct {
		lease    authority.Lease
		patience time.Duration
	}{
		{lease(1, forge.LeaseAccepted), time.Minute + 2*time.Second},
		{lease(1, forge.LeaseOffered), policy.OfferTTL},
	} {
		test.lease.Renewals = 3
		d := newDaemon(t)
		d.read(authority.Snapshot{Leases: []authority.Lease{test.lease}})
		first := d.now
		for len(d.begun) == 0 {
			d.read(authority.Snapshot{Leases: []authority.Lease{test.lease}})
			if d.now.Sub(first) > 2*test.patience {
				t.Fatal("it is never expired")
			}
		}
		if watched := d.now.Sub(first); watched < test.patience || watched > test.patience+core.ReadEvery {
			t.Fatalf("%v is expired after %v, not %v", test.lease.State, watched, test.patience)
		}
		cmd, _ := begun[*authority.Expire](d)
		want := &authority.Expire{Context: test.lease.Context, State: test.lease.State, Renewals: 3}
		if diff := cmp.Diff(want, cmd); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestARenewalStartsTheWatchAnew(t *testing.T) {
	d := newDaemon(t)
	l := lease(1, forge.LeaseAccepted)
	for range 10 {
		l.Renewals++
		for range 61 {
			d.read(authority.Snapshot{Leases: []authority.Lease{l}})
		}
	}
	d.silent()
}

// The watch counts from the return of a reading: while it was on its way the lease may have been renewed.
func TestTheWatchCountsFromTheReturnOfTheReading(t *testing.T) {
	d := newDaemon(t)
	s := authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseAccepted)}}
	d.step(core.Tick{})
	d.until(time.Hour) // the store stalls
	d.load(&s)
	d.read(s)
	d.silent()
}

func TestTheStoreIsReadOnceASecondAndOneReadingAtATime(t *testing.T) {
	d := newDaemon(t)
	d.until(0)
	if len(d.loads) != 1 {
		t.Fatalf("%d readings", len(d.loads))
	}
	d.until(time.Minute)
	if len(d.loads) != 1 {
		t.Fatalf("%d readings at once", len(d.loads))
	}
	d.load(nil) // it failed
	d.until(core.ReadEvery - 1)
	if len(d.loads) != 0 {
		t.Fatal("read again too early")
	}
	d.until(1)
	if l := d.load(&authority.Snapshot{}); !l.Runner.IsZero() {
		t.Fatalf("%+v", l)
	}
}

func TestACancelRevokesAnOffer(t *testing.T) {
	d := online(t)
	d.read(authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseOffered)}, Cancel: []bool{true}})
	if cmd := commit[*authority.Revoke](d, authority.Answer{Done: true}); cmd.Context != context(1, 1) {
		t.Fatalf("%+v", cmd)
	}
	d.silent()
}

func TestACancelIsToldOnceOnEachConnection(t *testing.T) {
	d := online(t)
	s := authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseAccepted), lease(2, forge.LeaseAccepted)}, Cancel: []bool{true, false}}
	told := func() {
		t.Helper()
		sent, m := answer[*forge.Cancel](d)
		want := &forge.Cancel{Attempt: context(1, 1).Attempt, Lease: context(1, 1).Lease, Reason: forge.CancelUser}
		if diff := cmp.Diff(want, m); diff != "" || !sent.Frame.Re.IsZero() {
			t.Fatal(diff)
		}
		d.silent()
	}
	d.read(s)
	told()
	for range 5 {
		d.read(s)
	}
	d.silent()
	d.active(2, registration(1, 2))
	d.closed = nil
	d.read(s)
	told()
}

func TestACancelIsNotToldToAnotherProcess(t *testing.T) {
	d := newDaemon(t)
	d.active(1, registration(2, 1))
	d.read(authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseAccepted)}, Cancel: []bool{true}})
	d.silent()
}

// What was told is forgotten with its lease, so that a connection that lives for months does not grow.
func TestACancelIsForgottenWithItsLease(t *testing.T) {
	d := online(t)
	s := authority.Snapshot{Leases: []authority.Lease{lease(1, forge.LeaseAccepted)}, Cancel: []bool{true}}
	d.read(s)
	answer[*forge.Cancel](d)
	d.read(authority.Snapshot{})
	d.read(s) // cannot be, for a lease that ended; but it shows what is remembered
	answer[*forge.Cancel](d)
	d.silent()
}

func TestARunnerThatMayNotSpeakHearsTheCancelAndIsClosedWithinFiveSeconds(t *testing.T) {
	for _, test := range []struct {
		runner authority.Runner
		reason forge.CloseReason
	}{
		{authority.Runner{ID: runner, Disabled: true}, forge.CloseRunnerDisabled},
		{authority.Runner{ID: runner, Revoked: true, Disabled: true}, forge.CloseRevoked},
	} {
		d := online(t)
		s := authority.Snapshot{
			Sessions: []authority.SeenSession{{Runner: test.runner, Session: authority.Session{Runner: runner, Session: sessionOf(1), TransportSeq: 1}}},
			Leases:   []authority.Lease{lease(1, forge.LeaseAccepted)},
		}
		d.read(authority.Snapshot{})
		set := d.now // just after a reading
		d.until(core.ReadEvery + 900*time.Millisecond)
		d.load(&s) // that took a while
		if _, m := answer[*forge.Cancel](d); m.Reason != forge.CancelDisabled || m.Lease != context(1, 1).Lease {
			t.Fatalf("%+v", m)
		}
		for len(d.closed) == 0 {
			d.read(s)
		}
		if after := d.now.Sub(set); after >= 5*time.Second {
			t.Fatalf("closed after %v", after)
		}
		d.isClosed(1, test.reason)
	}
}

func TestADrainIsToldOnceOnEachConnectionAndSoIsItsEnd(t *testing.T) {
	d := online(t)
	s := authority.Snapshot{Sessions: []authority.SeenSession{{
		Runner: authority.Runner{ID: runner, Draining: true}, Session: authority.Session{Runner: runner, Session: sessionOf(1), TransportSeq: 1},
	}}}
	d.read(s)
	answer[*forge.Drain](d)
	d.read(s)
	d.silent()
	d.active(2, registration(1, 2))
	d.closed = nil
	s.Sessions[0].Session.TransportSeq = 2
	d.read(s)
	answer[*forge.Drain](d)
	s.Sessions[0].Runner.Draining = false
	d.read(s)
	answer[*forge.Resume](d)
	d.read(s)
	d.silent()
}

func TestAConnectionThatRegistersAndNeverResyncsIsClosed(t *testing.T) {
	d := newDaemon(t)
	d.register(1, registration(1, 1))
	d.until(core.RegisterWithin)
	d.isClosed(1, forge.CloseRegisterTimeout)
}

func TestARunnerThatMayNotSpeakGetsNoOffer(t *testing.T) {
	d := online(t)
	d.read(authority.Snapshot{Sessions: []authority.SeenSession{{
		Runner: authority.Runner{ID: runner, Disabled: true}, Session: authority.Session{Runner: runner, Session: sessionOf(1), TransportSeq: 1},
	}}})
	d.step(core.Place{Job: context(1, 1).Job, Runner: runner})
	d.silent()
}
