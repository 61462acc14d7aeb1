package enroll_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func TestARenewalKeepsTheRunnerAndItsKey(t *testing.T) {
	y := newYard(t, nil)
	id := y.member()
	y.pass(16 * 24 * time.Hour)
	next, err := y.renew(id)
	if err != nil {
		t.Fatal(err)
	}
	if next.Runner() != id.Runner() || trust.KeyIDOf(next.Leaf()) != trust.KeyIDOf(id.Leaf()) ||
		!next.Leaf().NotAfter.Equal(y.clock().Add(trust.RunnerLifetime)) {
		t.Errorf("%v until %v became %v until %v", id, id.Leaf().NotAfter, next, next.Leaf().NotAfter)
	}
	y.expect(enroll.EventRenewed)
}

// TestAfterAHundredLostRenewalsBothCertificatesAreGood is T30: until the new one is used.
func TestAfterAHundredLostRenewalsBothCertificatesAreGood(t *testing.T) {
	y := newYard(t, nil)
	id := y.member()
	for range 100 {
		if _, err := y.renew(id); err != nil { // and nobody gets the answer
			t.Fatal(err)
		}
		y.pass(2 * time.Minute)
		if err := y.use(id.Leaf()); err != nil {
			t.Fatal(err)
		}
	}
	next, err := y.renew(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := y.use(id.Leaf()); err != nil {
		t.Errorf("the old one, before the new one is used: %v", err)
	}
	if err := y.use(next.Leaf()); err != nil {
		t.Errorf("the new one: %v", err)
	}
	if err := y.use(id.Leaf()); !errors.Is(err, enroll.ErrSuperseded) {
		t.Errorf("the old one, after the new one was used: %v", err)
	}
	if again, err := y.recover(id); err != nil || again.Runner() != id.Runner() {
		t.Errorf("an agent whose folder went back gets another one by its key: %v, %v", again, err)
	}
}

func TestARenewalIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(*yard, *trust.Identity) error
		want error
	}{
		"for another key": {func(y *yard, id *trust.Identity) error {
			w, err := enroll.NewRenewal(id, session)
			if err != nil {
				return err
			}
			w.Request = request(y.t, trusttest.NewKey(y.t)).Request
			_, err = y.desk.Renew(y.t.Context(), id.Leaf(), w)
			return err
		}, enroll.ErrOtherKey},
		"in another runner's name": {func(y *yard, id *trust.Identity) error {
			w, err := enroll.NewRenewal(id, session)
			if err != nil {
				return err
			}
			w.Peer = protocol.NewPeer(y.member().Runner(), session)
			_, err = y.desk.Renew(y.t.Context(), id.Leaf(), w)
			return err
		}, enroll.ErrOtherRunner},
		"with another runner's certificate": {func(y *yard, id *trust.Identity) error {
			w, err := enroll.NewRenewal(id, session)
			if err != nil {
				return err
			}
			_, err = y.desk.Renew(y.t.Context(), y.member().Leaf(), w)
			return err
		}, enroll.ErrOtherRunner},
		"without a proof": {func(y *yard, id *trust.Identity) error {
			w, err := enroll.NewRenewal(id, session)
			if err != nil {
				return err
			}
			w.Request[len(w.Request)-1] ^= 1
			_, err = y.desk.Renew(y.t.Context(), id.Leaf(), w)
			return err
		}, trust.ErrRequest},
		"by a runner that is revoked": {func(y *yard, id *trust.Identity) error {
			y.store.SetRunner(id.Runner(), false, true)
			_, err := y.renew(id)
			return err
		}, enroll.ErrRunnerRevoked},
		"by a runner that is disabled": {func(y *yard, id *trust.Identity) error {
			y.store.SetRunner(id.Runner(), true, false)
			_, err := y.renew(id)
			return err
		}, enroll.ErrRunnerDisabled},
		"by a daemon's certificate": {func(y *yard, id *trust.Identity) error {
			w, err := enroll.NewRenewal(id, session)
			if err != nil {
				return err
			}
			_, err = y.desk.Renew(y.t.Context(), y.Daemon().Leaf, w)
			return err
		}, trust.ErrIdentity},
		"for a key that was replaced": {func(y *yard, id *trust.Identity) error {
			token := y.CA.Mint()
			y.store.BindToken(token.Hash(), y.clock().Add(time.Hour), id.Runner())
			again, err := y.enrol(token, trusttest.NewKey(y.t))
			if err != nil || again.Runner() != id.Runner() {
				y.t.Errorf("to enrol again: %v, %v", again, err)
			}
			y.heard()
			_, err = y.renew(id)
			return err
		}, enroll.ErrKeyUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, nil)
			y.t = t
			id := y.member()
			y.pass(time.Hour)
			if err := test.ask(y, id); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			y.expect(enroll.EventRenewalRefused)
		})
	}
}

// TestAnExpiredCertificateIsReplacedByProofOfItsKey holds the limit of it, and T31: each refusal is another one.
func TestAnExpiredCertificateIsReplacedByProofOfItsKey(t *testing.T) {
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		after  time.Duration // since it was issued
		do     func(*yard, *trust.Identity)
		reason forge.CloseReason
	}{
		"before its end":       {29 * day, nil, 0},
		"after its end":        {31 * day, nil, 0},
		"at the limit":         {60 * day, nil, 0},
		"past the limit":       {60*day + time.Second, nil, forge.CloseAuthFailed},
		"of a revoked runner":  {31 * day, func(y *yard, id *trust.Identity) { y.store.SetRunner(id.Runner(), false, true) }, forge.CloseRevoked},
		"of a disabled runner": {31 * day, func(y *yard, id *trust.Identity) { y.store.SetRunner(id.Runner(), true, false) }, forge.CloseRunnerDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, nil)
			y.t = t
			id := y.member()
			y.pass(test.after)
			if test.do != nil {
				test.do(y, id)
			}
			next, err := y.recover(id)
			if test.reason != 0 {
				if reasonOf(err) != test.reason {
					t.Errorf("%v, want %v", err, test.reason)
				}
				y.expect(enroll.EventEnrolRefused)
				return
			}
			if err != nil || next.Runner() != id.Runner() || !next.Leaf().NotAfter.After(y.clock()) {
				t.Errorf("%v, %v", next, err)
			}
			y.expect(enroll.EventRecovered)
		})
	}
}

func TestAKeyThatIsNotKnownRecoversNothing(t *testing.T) {
	y := newYard(t, nil)
	stranger := y.Runner(forge.MakeID[forge.RunnerID](forge.ULID{1})) // of this CA, but of no table
	if _, err := y.recover(stranger); reasonOf(err) != forge.CloseAuthFailed {
		t.Error(err)
	}
}

func TestRecoveryCanBeTurnedOff(t *testing.T) {
	y := newYard(t, func(d *enroll.DeskConfig, _ *enroll.CounterConfig) { d.RecoverWithin = -1 })
	id := y.member()
	if _, err := y.recover(id); reasonOf(err) != forge.CloseAuthFailed {
		t.Error(err)
	}
}

// TestARestoredDaemonTakesNewerCertificatesOfItsOwnCA writes them down, and says so.
func TestARestoredDaemonTakesNewerCertificatesOfItsOwnCA(t *testing.T) {
	y := newYard(t, nil)
	id := y.member()
	y.store.Forget()
	for range 2 {
		if err := y.use(id.Leaf()); err != nil {
			t.Fatal(err)
		}
	}
	y.expect(enroll.EventUnrecorded)
}

func TestOnlySomeRefusalsAreWorthToAskAbout(t *testing.T) {
	for reason := forge.CloseNormal; reason.Valid(); reason++ {
		want := reason == forge.CloseAuthFailed || reason == forge.CloseCertExpired
		if got := enroll.Recoverable(reason); got != want {
			t.Errorf("%v: %v", reason, got)
		}
	}
}

// Whoever asks without end for what is refused fills no table.
func TestRefusalsAreAuditedWithABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		one, other := y.member(), y.member()
		y.heard()
		w, err := enroll.NewRenewal(other, session)
		if err != nil {
			t.Fatal(err)
		}
		refuse := func() {
			if _, err := y.desk.Renew(t.Context(), one.Leaf(), w); err == nil {
				t.Fatal("a certificate for another runner")
			}
		}
		const burst, most = 60, 200
		for range most {
			refuse()
		}
		if n := len(y.heard()); n != burst {
			t.Errorf("%d events of %d refusals, not %d", n, most, burst)
		}
		time.Sleep(time.Minute) // of the bubble
		refuse()
		events := y.heard()
		if len(events) != 1 || !strings.Contains(events[0].Why, "140 refusals before it") {
			t.Errorf("then %+v", events)
		}
		refuse()
		if events := y.heard(); len(events) != 1 || strings.Contains(events[0].Why, "before it") {
			t.Errorf("and then %+v", events)
		}
	})
}
