// Package storetest is the suite that each store of the daemon passes, and a store in memory that passes it too.
//
// The suite sees a store as the rules of package authority see it: runners, jobs, and commands that change them. Random
// histories of commands run on the store under test and on the Model beside it; after each, the answers and all rows
// must be the same. Histories of several callers at once must have an order in which the Model gives the same answers.
//
// The Model starts no goroutine and is safe for concurrent use.
package storetest

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Rules is a store as far as the rules of authority go.
type Rules interface {
	// MakeRunner makes a runner with its empty session.
	MakeRunner(ctx context.Context, n store.NewRunner) error
	// MakeRun stores a run and makes all of its jobs ready, each with its draft as its spec.
	MakeRun(ctx context.Context, n store.NewRun) error
	// Upload notes an output of an attempt.
	Upload(ctx context.Context, attempt forge.AttemptID, ref forge.OutputRef, live bool) error
	// Do carries out a rule: with a nil error it is committed, with any other nothing was changed.
	Do(ctx context.Context, class store.Class, cmd authority.Command) (authority.Answer, error)
	// Snapshot reads what is watched, sorted by ids.
	Snapshot(ctx context.Context, runner forge.RunnerID) (*authority.Snapshot, error)
	// Jobs lists the rows of a run's jobs in their order.
	Jobs(ctx context.Context, run forge.RunID) ([]authority.Job, error)
	// Attempts lists the rows of a job's attempts by number.
	Attempts(ctx context.Context, job forge.JobID) ([]Attempt, error)
}

// Attempt is all that authority has about one attempt.
type Attempt struct {
	Attempt authority.Attempt
	Lease   authority.Lease
	Log     authority.Log
}

// Of shows a real store as Rules.
func Of(s *store.Store) Rules { return real{s} }

type real struct{ *store.Store }

func (s real) MakeRunner(ctx context.Context, n store.NewRunner) error {
	return s.Update(ctx, store.ClassState, func(tx *store.Tx) error { return tx.CreateRunner(n) })
}

func (s real) MakeRun(ctx context.Context, n store.NewRun) error {
	return s.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		_, made, err := tx.CreateRun(n)
		if err == nil && !made {
			err = errors.New("the run was there already")
		}
		if err != nil {
			return err
		}
		return tx.Settle(n.ID, PlanAll)
	})
}

// PlanAll makes every waiting job ready, whatever it needs.
func PlanAll(_ store.Run, jobs []store.Job) store.Settlement {
	var s store.Settlement
	for _, j := range jobs {
		if j.State == forge.JobWaiting {
			s.Plan = append(s.Plan, store.Planned{Plan: authority.Plan{Job: j.ID, Spec: j.Draft}})
		}
	}
	return s
}

func (s real) Upload(ctx context.Context, attempt forge.AttemptID, ref forge.OutputRef, live bool) error {
	return s.Update(ctx, store.ClassState, func(tx *store.Tx) error { return tx.RecordUpload(attempt, ref, live) })
}

func (s real) Jobs(ctx context.Context, run forge.RunID) (rows []authority.Job, err error) {
	err = s.View(ctx, func(v *store.View) error {
		jobs, err := v.Jobs(run)
		for _, j := range jobs {
			rows = append(rows, j.Authority)
		}
		return err
	})
	return rows, err
}

func (s real) Attempts(ctx context.Context, job forge.JobID) (rows []Attempt, err error) {
	err = s.View(ctx, func(v *store.View) error {
		attempts, err := v.Attempts(job)
		for _, a := range attempts {
			rows = append(rows, Attempt{a.Authority, a.Lease, a.Log})
		}
		return err
	})
	return rows, err
}
