package control

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// pipelined submits a pipeline.
func (w *world) pipelined(text string, facts pipeline.Facts, wanted ...string) store.Run {
	w.t.Helper()
	run, _, err := w.Submit(w.ctx, Submission{
		Project: forge.DefaultProject, Trust: forge.TrustTrusted, Actor: "tester",
		Pipeline: &Pipeline{File: "p.yml", Text: []byte(text), Facts: facts, Wanted: wanted},
	})
	w.must(err)
	return run
}

// plant puts a tree into the store of objects.
func (w *world) plant(files map[string]string) forge.TreeRef {
	w.t.Helper()
	var b tree.Builder
	for path, content := range files {
		ref := digest.RefOf([]byte(content))
		w.must(w.objects.Put(w.ctx, ref, strings.NewReader(content)))
		w.must(b.Add(path, tree.Entry{Kind: tree.File, Ref: ref}))
	}
	root, _, err := b.Build(func(ref digest.Ref, encoded []byte) error { return w.objects.Put(w.ctx, ref, bytes.NewReader(encoded)) })
	w.must(err)
	return root
}

// outcome is how the one attempt of a job ends in a story, and what it leaves, by the names of outputs.
type outcome struct {
	result forge.Result
	leaves map[string]map[string]string
	lost   string // an output whose object is nowhere
}

var (
	goes  = outcome{result: forge.Result{Class: forge.Succeeded}}
	fails = outcome{result: forge.Result{Class: forge.ExitCode, ExitCode: 7}}
)

// name is a job as stories call it.
func nameOf(j *store.Job) string {
	text := string(j.Key)
	for _, v := range j.Leg {
		text += "/" + v.Value
	}
	return text
}

// play carries out what is placed until the run has ended: by the story, else well. It returns the specs of what ran.
func (w *world) play(a *agent, run store.Run, story map[string]outcome) map[string]*forge.JobSpec {
	w.t.Helper()
	ran := map[string]*forge.JobSpec{}
	changes := w.store.Subscribe()
	defer changes.Close()
	limit := time.After(20 * time.Second)
	for !w.runState(run.ID).Ended() {
		select {
		case p := <-w.places:
			w.carryOut(a, p, story, ran)
		case <-changes.C():
		case <-limit:
			w.t.Fatalf("the run does not end: %v", w.states(run.ID))
		}
	}
	return ran
}

func (w *world) carryOut(a *agent, p Placement, story map[string]outcome, ran map[string]*forge.JobSpec) {
	w.t.Helper()
	var job store.Job
	var spec forge.JobSpec
	w.view(func(v *store.View) (err error) {
		if job, err = v.Job(p.Job); err != nil {
			return err
		}
		bytes, err := v.Spec(job.Spec)
		if err != nil {
			return err
		}
		spec, err = jobspec.Open(job.Spec, bytes)
		return err
	})
	c := w.offer(a, p)
	a.accept(c)
	name := nameOf(&job)
	ran[name] = &spec
	o, ok := story[name]
	if !ok {
		o = goes
	}
	var outputs []forge.OutputRef
	for i, declared := range spec.Outputs {
		if files := o.leaves[declared.Name]; files != nil {
			outputs = append(outputs, forge.OutputRef{Output: uint16(i), Ref: w.plant(files).Root, Tree: true})
		}
		if declared.Name == o.lost {
			outputs = append(outputs, forge.OutputRef{Output: uint16(i), Ref: digest.RefOf([]byte("never stored")), Tree: true})
		}
	}
	a.complete(c, o.result, outputs...)
}

// states lists how the jobs of a run stand, and why those were skipped or could not be planned.
func (w *world) states(run forge.RunID) (all []string) {
	w.t.Helper()
	w.view(func(v *store.View) error {
		jobs, err := v.Jobs(run)
		for i := range jobs {
			text := fmt.Sprintf("%s %v", nameOf(&jobs[i]), jobs[i].State)
			if jobs[i].Reason != "" {
				text += ": " + jobs[i].Reason
			}
			all = append(all, text)
		}
		return err
	})
	return all
}

func (w *world) told(run store.Run, want forge.RunState, jobs ...string) {
	w.t.Helper()
	if got := w.runState(run.ID); got != want {
		w.t.Errorf("the run is %v, want %v", got, want)
	}
	if diff := cmp.Diff(jobs, w.states(run.ID)); diff != "" {
		w.t.Error(diff)
	}
}

func newStage(t *testing.T) (*world, *agent) {
	w := newWorld(t)
	a := w.agent("one", 64)
	a.connect()
	w.run()
	return w, a
}

func (w *world) legs(run forge.RunID) (jobs []store.Job) {
	w.t.Helper()
	w.view(func(v *store.View) (err error) { jobs, err = v.Jobs(run); return err })
	return jobs
}

// inputs lists what a job starts from.
func inputsOf(s *forge.JobSpec) (all []string) {
	for _, in := range s.Inputs {
		all = append(all, fmt.Sprintf("%s %v %d", in.Mount, in.Mode, in.Tree.Bytes))
	}
	return all
}
