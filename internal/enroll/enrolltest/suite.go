package enrolltest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Admin is a store with what administrators do to it.
type Admin interface {
	enroll.Store
	AddToken(hash trust.TokenHash, end time.Time)
	SetRunner(id forge.RunnerID, disabled, revoked bool)
}

// Now is the time of the suite.
var Now = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func hashed(what string, n int) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "%s %d", what, n)) }

func redemption(token, key int) enroll.Redemption {
	return enroll.Redemption{Token: hashed("token", token), Key: hashed("key", key), Name: "build", Now: Now}
}

// Store holds a store to what enroll.Store says. open returns an empty one.
func Store(t *testing.T, open func(t *testing.T) Admin) {
	for name, test := range map[string]func(*testing.T, Admin){
		"a token is used up by one key":                usedUp,
		"an answer that was lost is given again":       again,
		"a token ends":                                 ends,
		"a key belongs to one runner":                  oneRunner,
		"a runner that is refused gets nothing":        refused,
		"of two at once one wins, 1,000 times":         races,
		"certificates are superseded by the first use": superseded,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func enrolled(t *testing.T, s Admin, n int) forge.RunnerID {
	t.Helper()
	s.AddToken(hashed("token", n), Now.Add(trust.TokenLifetime))
	grant, err := s.RedeemToken(t.Context(), redemption(n, n))
	if err != nil || grant.Runner.IsZero() || grant.Again {
		t.Fatalf("%+v, %v", grant, err)
	}
	return grant.Runner
}

func usedUp(t *testing.T, s Admin) {
	runner := enrolled(t, s, 1)
	if _, err := s.RedeemToken(t.Context(), redemption(1, 2)); !errors.Is(err, enroll.ErrTokenUsed) {
		t.Errorf("another key: %v", err)
	}
	if _, err := s.RunnerByKey(t.Context(), hashed("key", 2)); !errors.Is(err, enroll.ErrKeyUnknown) {
		t.Errorf("the refused key: %v", err)
	}
	if _, err := s.RedeemToken(t.Context(), redemption(2, 3)); !errors.Is(err, enroll.ErrTokenUnknown) {
		t.Errorf("a token that nobody made: %v", err)
	}
	if got, err := s.RunnerByKey(t.Context(), hashed("key", 1)); err != nil || got.ID != runner || got.Disabled || got.Revoked {
		t.Errorf("%+v, %v", got, err)
	}
}

func again(t *testing.T, s Admin) {
	runner := enrolled(t, s, 1)
	late := redemption(1, 1)
	for range 3 {
		grant, err := s.RedeemToken(t.Context(), late)
		if err != nil || grant.Runner != runner || !grant.Again {
			t.Errorf("%+v, %v", grant, err)
		}
		late.Now = late.Now.Add(trust.TokenLifetime)
	}
}

func ends(t *testing.T, s Admin) {
	s.AddToken(hashed("token", 1), Now)
	if _, err := s.RedeemToken(t.Context(), redemption(1, 1)); !errors.Is(err, enroll.ErrTokenExpired) {
		t.Errorf("at its end: %v", err)
	}
	early := redemption(1, 1)
	early.Now = Now.Add(-time.Second)
	if _, err := s.RedeemToken(t.Context(), early); err != nil {
		t.Errorf("a second before: %v", err)
	}
}

func oneRunner(t *testing.T, s Admin) {
	enrolled(t, s, 1)
	s.AddToken(hashed("token", 2), Now.Add(time.Hour))
	if _, err := s.RedeemToken(t.Context(), redemption(2, 1)); !errors.Is(err, enroll.ErrKeyTaken) {
		t.Errorf("a second token for the key: %v", err)
	}
	if _, err := s.RedeemToken(t.Context(), redemption(2, 2)); err != nil {
		t.Errorf("the token was used up by a refusal: %v", err)
	}
}

func refused(t *testing.T, s Admin) {
	runner := enrolled(t, s, 1)
	c := cert(runner, 1, 1)
	if err := s.RecordCertificate(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		disabled, revoked bool
		want              error
	}{{true, false, enroll.ErrRunnerDisabled}, {false, true, enroll.ErrRunnerRevoked}} {
		s.SetRunner(runner, test.disabled, test.revoked)
		if _, err := s.RedeemToken(t.Context(), redemption(1, 1)); !errors.Is(err, test.want) {
			t.Errorf("redeem: %v, want %v", err, test.want)
		}
		if _, err := s.UseCertificate(t.Context(), c, Now); !errors.Is(err, test.want) {
			t.Errorf("use: %v, want %v", err, test.want)
		}
		got, err := s.RunnerByKey(t.Context(), hashed("key", 1))
		if err != nil || got.Disabled != test.disabled || got.Revoked != test.revoked || !got.NotAfter.Equal(c.NotAfter) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := s.RecordCertificate(t.Context(), cert(runner, 1, 2)); !errors.Is(err, enroll.ErrRunnerRevoked) {
		t.Errorf("record: %v", err)
	}
	if err := s.RecordCertificate(t.Context(), cert(runner, 9, 3)); !errors.Is(err, enroll.ErrKeyUnknown) {
		t.Errorf("record for another key: %v", err)
	}
}

// races is S03.
func races(t *testing.T, s Admin) {
	for n := range 1000 {
		s.AddToken(hashed("token", n), Now.Add(time.Hour))
		var errs [2]error
		var both sync.WaitGroup
		for i := range errs {
			both.Go(func() { _, errs[i] = s.RedeemToken(t.Context(), redemption(n, 2*n+i)) })
		}
		both.Wait()
		won, lost := errs[0], errs[1]
		if won != nil {
			won, lost = lost, won
		}
		if won != nil || !errors.Is(lost, enroll.ErrTokenUsed) {
			t.Fatalf("race %d: %v and %v", n, errs[0], errs[1])
		}
	}
}

func cert(runner forge.RunnerID, key, n int) enroll.Certificate {
	return enroll.Certificate{
		Serial: trust.Serial{0x40, byte(n >> 8), byte(n)}, Runner: runner, Key: hashed("key", key),
		NotBefore: Now, NotAfter: Now.Add(time.Duration(n) * time.Hour),
	}
}

// superseded is T30: every certificate stays good until a newer one is in use.
func superseded(t *testing.T, s Admin) {
	runner, other := enrolled(t, s, 1), enrolled(t, s, 2)
	record := func(c enroll.Certificate) {
		t.Helper()
		for range 2 { // a second time changes nothing
			if err := s.RecordCertificate(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	use := func(c enroll.Certificate, first bool) {
		t.Helper()
		if got, err := s.UseCertificate(t.Context(), c, Now); err != nil || got.First != first || got.Unrecorded {
			t.Errorf("%+v, %v", got, err)
		}
	}
	theirs := cert(other, 2, 900)
	record(theirs)
	use(theirs, true)
	first, last := cert(runner, 1, 1), cert(runner, 1, 101)
	record(first)
	use(first, true)
	for n := 2; n < 101; n++ { // answers that were lost
		record(cert(runner, 1, n))
		use(first, false)
	}
	record(last)
	use(last, true)
	use(last, false)
	for _, c := range []enroll.Certificate{first, cert(runner, 1, 50)} {
		if _, err := s.UseCertificate(t.Context(), c, Now); !errors.Is(err, enroll.ErrSuperseded) {
			t.Errorf("an older one: %v", err)
		}
	}
	use(theirs, false)
	if got, err := s.UseCertificate(t.Context(), cert(runner, 1, 500), Now); err != nil || !got.Unrecorded {
		t.Errorf("one that is not recorded: %+v, %v", got, err)
	}
}
