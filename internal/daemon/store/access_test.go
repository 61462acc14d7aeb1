package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// access makes a token whose id is a number.
func access(n byte, name string) store.AccessToken {
	return store.AccessToken{
		ID: forge.AccessTokenID{ULID: forge.ULID{15: n}}, Name: name, Role: forge.RoleDeveloper, Trust: forge.TrustTrusted,
		Hash: digest.Digest{n}, Creator: "ann",
	}
}

func (y *yard) access(n byte) (t store.AccessToken) {
	y.t.Helper()
	y.see(func(v *store.View) (err error) {
		t, err = v.AccessToken(forge.AccessTokenID{ULID: forge.ULID{15: n}})
		return err
	})
	return t
}

func TestAnAccessTokenIsStoredUsedAndRevokedOnce(t *testing.T) {
	y := newYard(t)
	made := access(1, "ci")
	made.Expires = 9_000_000
	y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(made) })
	want := made
	want.Sequence, want.Created = 1, 1_001_000
	if diff := cmp.Diff(want, y.access(1)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	y.later(func(tx *store.Tx) error { return tx.TouchAccessToken(made.ID) })
	y.later(func(tx *store.Tx) error {
		first, err := tx.RevokeAccessToken(made.ID)
		if !first {
			t.Error("revoked for the first time it had been already")
		}
		return err
	})
	y.later(func(tx *store.Tx) error {
		first, err := tx.RevokeAccessToken(made.ID)
		if first {
			t.Error("it was revoked twice")
		}
		return err
	})
	want.Used, want.Revoked = 1_002_000, 1_003_000
	if diff := cmp.Diff(want, y.access(1)); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
	if err := y.try(func(tx *store.Tx) error {
		_, err := tx.RevokeAccessToken(forge.AccessTokenID{ULID: forge.ULID{15: 2}})
		return err
	}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoked what there is not: %v", err)
	}
}

func TestANameIsOfOneGoodAccessTokenAtATime(t *testing.T) {
	y := newYard(t)
	first := access(1, "ci")
	first.Expires = 2_000_000
	y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(first) })
	if err := y.try(func(tx *store.Tx) error { return tx.CreateAccessToken(access(2, "ci")) }); !errors.Is(err, store.ErrExists) {
		t.Errorf("the name is taken: %v", err)
	}
	y.now = 2_000_000 - 1
	if err := y.try(func(tx *store.Tx) error { return tx.CreateAccessToken(access(2, "ci")) }); !errors.Is(err, store.ErrExists) {
		t.Errorf("a moment before the first one's end: %v", err)
	}
	y.now = 2_000_000
	if err := y.try(func(tx *store.Tx) error { return tx.CreateAccessToken(access(2, "ci")) }); err != nil {
		t.Errorf("at the first one's end: %v", err)
	}
	y.later(func(tx *store.Tx) error { _, err := tx.RevokeAccessToken(access(2, "").ID); return err })
	named := func() (last store.AccessToken) {
		y.see(func(v *store.View) (err error) { last, err = v.AccessTokenByName("ci", y.now); return err })
		return last
	}
	if last := named(); last.ID != access(2, "").ID || last.Good(y.now) {
		t.Errorf("by name, where none is good: %+v", last)
	}
	later := y.now
	if y.now = 2_000_000 - 1; named().ID != first.ID { // as after a clock that was set back
		t.Errorf("by name, where an older one is good: %+v", named())
	}
	y.now = later
	y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(access(3, "ci")) })
	y.see(func(v *store.View) error {
		good, err := v.AccessTokenByName("ci", y.now)
		if err != nil || good.ID != access(3, "").ID {
			t.Errorf("by name: %+v, %v", good, err)
		}
		newest, next, err := v.AccessTokens(0, 2)
		if len(newest) != 2 || newest[0].ID != good.ID || next != newest[1].Sequence || err != nil {
			t.Errorf("the first page: %+v, %d, %v", newest, next, err)
		}
		rest, next, err := v.AccessTokens(next, 2)
		if len(rest) != 1 || rest[0].ID != first.ID || next != 0 {
			t.Errorf("the second: %+v, %d", rest, next)
		}
		return err
	})
}

func TestAccessTokensThatEndedLongAgoAreForgotten(t *testing.T) {
	y := newYard(t)
	expired, revoked, good := access(1, "a"), access(2, "b"), access(3, "c")
	expired.Expires = y.now + 10_000
	for _, one := range []store.AccessToken{expired, revoked, good} {
		y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(one) })
	}
	y.later(func(tx *store.Tx) error { _, err := tx.RevokeAccessToken(revoked.ID); return err })
	names := func() (names string) {
		y.see(func(v *store.View) error {
			all, _, err := v.AccessTokens(0, 10)
			for _, one := range all {
				names += one.Name
			}
			return err
		})
		return names
	}
	y.now += forge.WallTime((89 * 24 * time.Hour).Milliseconds())
	y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(access(4, "d")) })
	if got := names(); got != "dcba" {
		t.Errorf("after 89 days there are %s", got)
	}
	y.now += forge.WallTime((2 * 24 * time.Hour).Milliseconds())
	y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(access(5, "e")) })
	if got := names(); got != "edc" {
		t.Errorf("after 91 days there are %s", got)
	}
}

func TestThereAreNoMoreGoodAccessTokensThanTheBound(t *testing.T) {
	y := newYard(t)
	y.later(func(tx *store.Tx) error {
		for i := range store.MaxAccessTokens {
			one := access(0, fmt.Sprintf("t%d", i))
			one.ID.ULID[0], one.ID.ULID[1] = byte(i), byte(i>>8)
			if err := tx.CreateAccessToken(one); err != nil {
				return err
			}
		}
		return nil
	})
	if err := y.try(func(tx *store.Tx) error { return tx.CreateAccessToken(access(9, "more")) }); !errors.Is(err, store.ErrAccessTokens) {
		t.Errorf("one past the bound: %v", err)
	}
	y.later(func(tx *store.Tx) error { _, err := tx.RevokeAccessToken(forge.AccessTokenID{}); return err })
	y.later(func(tx *store.Tx) error { return tx.CreateAccessToken(access(9, "more")) })
}
