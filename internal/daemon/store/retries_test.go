package store_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// What has not ended, or belongs to another project, counts nowhere else.
func TestARunTakesOverOnlyWhatHasEndedInItsProject(t *testing.T) {
	y := newYard(t)
	job := ident.New[forge.JobID]()
	old := store.NewRun{ID: ident.New[forge.RunID](), Project: "p", Trust: forge.TrustTrusted, Jobs: []store.NewJob{{ID: job, Key: "a"}}}
	again := func(project forge.ProjectName) error {
		return y.Update(t.Context(), store.ClassState, func(tx *store.Tx) error {
			_, _, err := tx.CreateRun(store.NewRun{
				ID: ident.New[forge.RunID](), Project: project, Trust: forge.TrustTrusted, RetryOf: old.ID, Taken: []forge.JobID{job},
				Jobs: []store.NewJob{{ID: ident.New[forge.JobID](), Key: "b"}},
			})
			return err
		})
	}
	y.later(func(tx *store.Tx) error { _, _, err := tx.CreateRun(old); return err })
	if err := again("p"); err == nil {
		t.Error("a job was taken over that has not ended")
	}
	y.later(func(tx *store.Tx) error {
		return tx.Settle(old.ID, func(store.Run, []store.Job) store.Settlement {
			return store.Settlement{Skip: []store.Skip{{Job: job, Reason: "x"}}}
		})
	})
	if err := again("q"); err == nil {
		t.Error("a job of another project was taken over")
	}
	if err := again("p"); err != nil {
		t.Fatal(err)
	}
	y.see(func(v *store.View) error {
		runs, _, err := v.Runs(store.RunFilter{})
		if err != nil {
			return err
		}
		if len(runs) != 2 || runs[0].RetryOf != old.ID || !runs[1].RetryOf.IsZero() {
			t.Errorf("%+v", runs)
		}
		taken, err := v.Taken(runs[0].ID)
		if len(taken) != 1 || taken[0].ID != job || taken[0].Run != old.ID || taken[0].State != forge.JobSkipped {
			t.Errorf("%+v", taken)
		}
		return err
	})
}
