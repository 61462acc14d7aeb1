package control

import (
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// Case B08: a cancel ends every job at once, also those that run always.
func TestACancelledPipelineEndsAlsoWhatRunsAlways(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs:\n  a: { parallel: 20, steps: [x] }\n  b: { needs: a, if: always(), steps: [x] }\n", pipeline.Facts{})
	var open []forge.AttemptContext
	for range 20 {
		c := w.taken(a)
		open = append(open, c)
	}
	if _, err := w.CancelRun(w.ctx, run.ID, "ada"); err != nil {
		t.Fatal(err)
	}
	for _, c := range open {
		a.complete(c, forge.Result{Class: forge.Cancelled})
	}
	w.ended(run, forge.RunCancelled)
	if last := w.states(run.ID)[20]; last != "b Cancelled" {
		t.Error(last)
	}
}

// A failure that is allowed does not fail a run that is cancelled later.
func TestACancelledRunWithAnAllowedFailureIsCancelled(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs:\n  a: { allow_failure: true, steps: [x] }\n  b: { needs: a, steps: [x] }\n", pipeline.Facts{})
	c := w.taken(a)
	a.complete(c, fails.result)
	c = w.offered(a)
	a.accept(c)
	if _, err := w.CancelRun(w.ctx, run.ID, "ada"); err != nil {
		t.Fatal(err)
	}
	a.complete(c, forge.Result{Class: forge.Cancelled})
	w.ended(run, forge.RunCancelled)
}

// The same where nobody holds a job of it any more.
func TestACancelledRunThatNobodyHoldsIsCancelled(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs:\n  a: { allow_failure: true, steps: [x] }\n  b: { needs: a, steps: [x] }\n", pipeline.Facts{})
	c := w.taken(a)
	a.complete(c, fails.result)
	w.until("b is ready", func() bool { return w.jobs(run.ID)["b"].State == forge.JobReady })
	if _, err := w.CancelRun(w.ctx, run.ID, "ada"); err != nil {
		t.Fatal(err)
	}
	w.ended(run, forge.RunCancelled)
}

// What is changed of one job plans nothing of the others: that is for who may read what they need.
func TestTheCancelOfAJobPlansNoOther(t *testing.T) {
	w := newWorld(t)
	a := w.agent("one", 64)
	run := w.pipelined("version: 1\njobs: { a: { steps: [x] }, b: { steps: [x] }, c: { needs: a, if: always(), steps: [x] } }\n", pipeline.Facts{})
	if _, err := w.CancelJob(w.ctx, w.jobs(run.ID)["a"].ID, "ada"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.states(run.ID), ", "); got != "a Cancelled, b Waiting, c Waiting" {
		t.Error(got)
	}
	a.connect()
	w.run()
	w.play(a, run, nil)
	w.told(run, forge.RunCancelled, "a Cancelled", "b Succeeded", "c Succeeded")
}
