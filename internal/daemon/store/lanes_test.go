package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// laned makes a run with one job that is ready, in a lane of its own or of the run.
func (y *yard) laned(project forge.ProjectName, run, job string, replace bool) (forge.RunID, forge.JobID) {
	y.t.Helper()
	n := store.NewRun{
		ID: ident.New[forge.RunID](), Project: project, Trust: forge.TrustTrusted, Lane: run, Replace: replace && run != "",
		Jobs: []store.NewJob{{ID: ident.New[forge.JobID](), Key: "a", Title: "the title"}},
	}
	y.later(func(tx *store.Tx) error {
		if _, _, err := tx.CreateRun(n); err != nil {
			return err
		}
		return tx.Settle(n.ID, func(store.Run, []store.Job) store.Settlement {
			return store.Settlement{Plan: []store.Planned{{
				Plan:  authority.Plan{Job: n.Jobs[0].ID, Spec: forge.JobSpecID(digest.Of([]byte("spec")))},
				Bytes: []byte("spec"), Terms: &store.Terms{}, Lane: job, Replace: replace && job != "",
			}}}
		})
	})
	return n.ID, n.Jobs[0].ID
}

// ready lists the jobs that may be offered.
func (y *yard) ready() (all []forge.JobID) {
	y.t.Helper()
	y.see(func(v *store.View) error {
		jobs, err := v.Ready(100)
		for _, j := range jobs {
			all = append(all, j.ID)
		}
		return err
	})
	return all
}

// Case B89: the jobs of a lane go one after the other and in order, and those of another project or lane beside them.
func TestJobsOfALaneAreOfferedOneAfterTheOther(t *testing.T) {
	y := newYard(t)
	_, first := y.laned("p", "", "deploy", false)
	_, second := y.laned("p", "", "deploy", false)
	_, other := y.laned("p", "", "docs", false)
	_, foreign := y.laned("q", "", "deploy", false)
	_, free := y.laned("p", "", "", false)
	if diff := cmp.Diff([]forge.JobID{first, other, foreign, free}, y.ready()); diff != "" {
		t.Error(diff)
	}
	y.rule(&authority.CancelJob{Job: first})
	if diff := cmp.Diff([]forge.JobID{second, other, foreign, free}, y.ready()); diff != "" {
		t.Error(diff)
	}
	if j := y.job(second); j.Lane != "deploy" || j.Title != "the title" {
		t.Errorf("lane %q, title %q", j.Lane, j.Title)
	}
}

// Case B89: who replaces ends the older ones of its own lane and nobody else.
func TestAJobThatReplacesEndsTheOlderOnesOfItsLane(t *testing.T) {
	y := newYard(t)
	_, first := y.laned("p", "", "deploy", false)
	_, other := y.laned("p", "", "docs", false)
	_, foreign := y.laned("q", "", "deploy", false)
	_, second := y.laned("p", "", "deploy", true)
	if s := y.job(first).State; s != forge.JobCancelled {
		t.Errorf("the older one is %v", s)
	}
	if diff := cmp.Diff([]forge.JobID{other, foreign, second}, y.ready()); diff != "" {
		t.Error(diff)
	}
}

// Case B89: a run knows which older one of its lane it waits for, and is looked at again when that one ends.
func TestARunOfALaneWaitsForTheOlderOnes(t *testing.T) {
	y := newYard(t)
	first, _ := y.laned("p", "ci", "", false)
	second, _ := y.laned("p", "ci", "", false)
	foreign, _ := y.laned("q", "ci", "", false)
	ahead := func(run forge.RunID) (got forge.RunID, err error) {
		y.see(func(v *store.View) error {
			r, e := v.Run(run)
			if e != nil {
				return e
			}
			got, err = v.Ahead(&r)
			return nil
		})
		return got, err
	}
	if got, err := ahead(second); err != nil || got != first {
		t.Errorf("ahead of the second: %v, %v", got, err)
	}
	for _, run := range []forge.RunID{first, foreign} {
		if got, err := ahead(run); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("ahead of %v: %v, %v", run, got, err)
		}
	}
	y.later(func(tx *store.Tx) error {
		return tx.Settle(second, func(r store.Run, _ []store.Job) store.Settlement {
			if r.Behind != first {
				t.Errorf("it is settled as behind %v", r.Behind)
			}
			return store.Settlement{}
		})
	})
	y.later(func(tx *store.Tx) error {
		return tx.Settle(first, func(store.Run, []store.Job) store.Settlement {
			return store.Settlement{Run: []lifecycle.Event{lifecycle.RunStart, lifecycle.RunSucceed}}
		})
	})
	if _, err := ahead(second); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the first has ended: %v", err)
	}
	y.see(func(v *store.View) error {
		open, err := v.Unsettled(10)
		if len(open) != 1 || open[0] != second {
			t.Errorf("unsettled are %v, want the second", open)
		}
		return err
	})
	third, _ := y.laned("p", "ci", "", true)
	y.see(func(v *store.View) error {
		r, err := v.Run(second)
		if !r.CancelRequested || r.CancelActor != "run "+third.String()+" of the same group" {
			t.Errorf("the second is %+v", r)
		}
		return err
	})
}

// A run can be asked what it was planned from; a job that cannot be planned has failed by its author's fault.
func TestARunKeepsWhatItWasPlannedFrom(t *testing.T) {
	y := newYard(t)
	plain, _ := y.laned("p", "", "", false)
	n := store.NewRun{
		ID: ident.New[forge.RunID](), Project: "p", Trust: forge.TrustTrusted, Origin: &store.Origin{Pipeline: []byte("text"), Facts: []byte("facts")},
		Jobs: []store.NewJob{{ID: ident.New[forge.JobID](), Key: "a"}},
	}
	y.later(func(tx *store.Tx) error {
		_, _, err := tx.CreateRun(n)
		return err
	})
	y.later(func(tx *store.Tx) error {
		return tx.Settle(n.ID, func(store.Run, []store.Job) store.Settlement {
			return store.Settlement{Fail: []store.Skip{{Job: n.Jobs[0].ID, Reason: "no value"}}}
		})
	})
	y.see(func(v *store.View) error {
		o, err := v.Origin(n.ID)
		if string(o.Pipeline) != "text" || string(o.Facts) != "facts" {
			t.Errorf("%s, %s", o.Pipeline, o.Facts)
		}
		if _, err := v.Origin(plain); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a run of specs: %v", err)
		}
		return err
	})
	if j := y.job(n.Jobs[0].ID); j.State != forge.JobFailed || j.Reason != "no value" || j.Authority.Outcome.Fault() != forge.FaultUser {
		t.Errorf("%+v", j)
	}
}
