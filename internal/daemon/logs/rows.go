package logs

import (
	"context"
	"errors"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

// RowsOf returns the rows of a database.
func RowsOf(s *store.Store) Rows { return rows{s} }

type rows struct{ store *store.Store }

// Do implements Rows. Logs come after everything that keeps a lease alive.
func (r rows) Do(ctx context.Context, cmd authority.Command) (authority.Answer, error) {
	class := store.ClassState // a seal stands before a result
	if _, ok := cmd.(*authority.AppendLog); ok {
		class = store.ClassRest
	}
	return r.store.Do(ctx, class, cmd)
}

// Log implements Rows.
func (r rows) Log(ctx context.Context, attempt forge.AttemptID) (Row, bool, error) {
	var row Row
	err := r.store.View(ctx, func(v *store.View) error {
		a, err := v.Attempt(attempt)
		if err != nil {
			return err
		}
		row.Log = a.Log
		bytes, err := v.Spec(a.Lease.Context.Spec)
		if err != nil {
			return err
		}
		spec, err := jobspec.Decode(bytes)
		if err != nil {
			return err
		}
		row.Limit = spec.LogLimit
		return nil
	})
	if errors.Is(err, store.ErrNotFound) && row.Log.Attempt.IsZero() {
		return Row{}, false, nil
	}
	return row, err == nil, err
}

// maxUnsealed bounds one look at the logs that nobody sealed; the next look finds the rest.
const maxUnsealed = 500

// Unsealed implements Rows.
func (r rows) Unsealed(ctx context.Context, endedBefore time.Time) ([]Ended, error) {
	var ended []Ended
	err := r.store.View(ctx, func(v *store.View) error {
		attempts, err := v.UnsealedLogs(forge.WallTime(endedBefore.UnixMilli()), maxUnsealed)
		for i := range attempts {
			c := attempts[i].Lease.Context
			ended = append(ended, Ended{Lease: c.Lease, Attempt: c.Attempt})
		}
		return err
	})
	return ended, err
}
