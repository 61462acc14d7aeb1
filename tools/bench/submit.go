//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// submitters is how many clients submit at the same time.
const submitters = 16

// submitsEach is how many runs each of them submits in one measurement.
const submitsEach = 125

// submitFigure is how many small runs are durably submitted in a second, against transactions of the store that write as
// many rows of the same size and decide nothing.
var submitFigure = figure{
	name: "store.submit", unit: "runs/s", limitIs: "durable transactions of the store with the same rows, 16 clients",
	begin: func(ctx context.Context, _ options) (pair, error) {
		folder, err := os.MkdirTemp("", "fybench")
		if err != nil {
			return pair{}, err
		}
		s, err := store.Open(ctx, filepath.Join(folder, "data"), store.Options{})
		if err != nil {
			return pair{}, err
		}
		ca, err := trust.NewCA(trust.NewCluster(), time.Now())
		if err != nil {
			return pair{}, err
		}
		c := control.New(control.Config{
			Store: s, CA: ca, Policy: forge.DefaultLeasePolicy(), Place: func(control.Placement) {},
		})
		spec := smallSpec()
		encoded, err := jobspec.Encode(spec)
		if err != nil {
			return pair{}, err
		}
		return pair{
			ours: func(ctx context.Context) (float64, error) {
				return perSecond(ctx, func(ctx context.Context) error {
					_, _, err := c.Submit(ctx, control.Submission{
						Project: forge.DefaultProject, Trust: forge.TrustTrusted, Actor: "bench",
						Jobs: []control.SubmittedJob{{Key: "job", Spec: spec}},
					})
					return err
				})
			},
			limit: func(ctx context.Context) (float64, error) {
				return perSecond(ctx, func(ctx context.Context) error { return insertRun(ctx, s, spec, encoded) })
			},
			end: func() {
				_ = s.Close()
				_ = os.RemoveAll(folder)
			},
		}, nil
	},
}

// smallSpec is a job of one step.
func smallSpec() forge.JobSpec {
	spec := forge.DefaultJobSpec()
	spec.Project, spec.Job = forge.DefaultProject, "job"
	spec.Steps = []forge.Step{{Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	return spec
}

// insertRun writes the rows of a run whose job is ready, without anything that decides about them.
func insertRun(ctx context.Context, s *store.Store, spec forge.JobSpec, encoded []byte) error {
	return s.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		_, _, err := tx.CreateRun(store.NewRun{
			ID: ident.New[forge.RunID](), Project: spec.Project, Trust: forge.TrustTrusted, Actor: "bench",
			Jobs: []store.NewJob{{ID: ident.New[forge.JobID](), Key: spec.Job, Draft: jobspec.ID(encoded), Bytes: encoded}},
		})
		return err
	})
}

// perSecond lets all clients do something many times at once, and returns how often it was done in a second.
func perSecond(ctx context.Context, do func(context.Context) error) (float64, error) {
	var wait sync.WaitGroup
	problems := make(chan error, submitters)
	begun := time.Now()
	for range submitters {
		wait.Go(func() {
			for range submitsEach {
				if err := do(ctx); err != nil {
					problems <- err
					return
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(begun)
	select {
	case err := <-problems:
		return 0, fmt.Errorf("submit: %w", err)
	default:
		return submitters * submitsEach / took.Seconds(), nil
	}
}
