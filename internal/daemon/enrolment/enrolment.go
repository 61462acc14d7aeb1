// Package enrolment is the daemon's database as enrolment sees it: an enroll.Store on a store.Store. Each method is one
// transaction of the store, and every rule stands there; here the words of the one are turned into those of the other.
//
// It starts no goroutine. A Store is safe for concurrent use.
package enrolment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Store implements enroll.Store.
type Store struct{ db *store.Store }

// New returns the store of a database, which it does not close.
func New(db *store.Store) *Store { return &Store{db} }

// RedeemToken implements enroll.Store.
func (s *Store) RedeemToken(ctx context.Context, r enroll.Redemption) (grant enroll.Grant, err error) {
	redemption := store.Redemption{
		Token: digest.Digest(r.Token), Key: digest.Digest(r.Key), Runner: ident.New[forge.RunnerID](), Name: r.Name, Now: wall(r.Now),
	}
	err = s.db.Update(ctx, store.ClassLease, func(tx *store.Tx) error {
		runner, again, err := tx.RedeemToken(redemption)
		grant = enroll.Grant{Runner: runner.ID, Name: runner.Name, Again: again}
		return err
	})
	if err != nil {
		return enroll.Grant{}, translate(err, enroll.ErrTokenUnknown)
	}
	return grant, nil
}

// RunnerByKey implements enroll.Store.
func (s *Store) RunnerByKey(ctx context.Context, key trust.KeyID) (found enroll.Runner, err error) {
	err = s.db.View(ctx, func(v *store.View) error {
		r, err := v.RunnerByKey(digest.Digest(key))
		if err != nil {
			return err
		}
		found = enroll.Runner{ID: r.ID, Disabled: r.Disabled, Revoked: r.Revoked}
		last, err := v.Certificates(r.ID, 1)
		if len(last) > 0 {
			found.NotAfter = day(last[0].NotAfter)
		}
		return err
	})
	if err != nil {
		return enroll.Runner{}, translate(err, enroll.ErrKeyUnknown)
	}
	return found, nil
}

// RecordCertificate implements enroll.Store.
func (s *Store) RecordCertificate(ctx context.Context, c enroll.Certificate) error {
	err := s.db.Update(ctx, store.ClassLease, func(tx *store.Tx) error { return tx.RecordCertificate(record(c)) })
	return translate(err, enroll.ErrKeyUnknown)
}

// UseCertificate implements enroll.Store. The time of the use is that of the transaction.
func (s *Store) UseCertificate(ctx context.Context, c enroll.Certificate, _ time.Time) (use enroll.Use, err error) {
	err = s.db.Update(ctx, store.ClassLease, func(tx *store.Tx) error {
		u, err := tx.UseCertificate(record(c))
		use = enroll.Use(u)
		return err
	})
	if err != nil {
		return enroll.Use{}, translate(err, enroll.ErrRunnerRevoked)
	}
	return use, nil
}

func record(c enroll.Certificate) store.Certificate {
	return store.Certificate{
		Serial: c.Serial.String(), Runner: c.Runner, Key: digest.Digest(c.Key), NotBefore: wall(c.NotBefore), NotAfter: wall(c.NotAfter),
	}
}

func wall(t time.Time) forge.WallTime { return forge.WallTime(t.UnixMilli()) }

func day(w forge.WallTime) time.Time { return time.UnixMilli(int64(w)).UTC() }

// translate puts enrolment's word for an error in front of the store's. What is not found is said by missing. An error
// that is none of these means what enroll.Store says of any other.
func translate(err, missing error) error {
	for _, pair := range []struct{ from, to error }{
		{store.ErrNotFound, missing},
		{store.ErrUsed, enroll.ErrTokenUsed},
		{store.ErrExpired, enroll.ErrTokenExpired},
		{store.ErrKeyTaken, enroll.ErrKeyTaken},
		{store.ErrKeyUnknown, enroll.ErrKeyUnknown},
		{store.ErrDisabled, enroll.ErrRunnerDisabled},
		{store.ErrRevoked, enroll.ErrRunnerRevoked},
		{store.ErrSuperseded, enroll.ErrSuperseded},
	} {
		if errors.Is(err, pair.from) {
			return fmt.Errorf("%w: %w", pair.to, err)
		}
	}
	return err
}
