package control

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// retried tries a run again.
func (w *world) retried(r Retry) store.Run {
	w.t.Helper()
	r.Trust = forge.TrustTrusted
	run, made, err := w.Retry(w.ctx, r)
	w.must(err)
	if !made {
		w.t.Fatal("the run was there already")
	}
	return run
}

const retriable = `version: 1
jobs:
  version: { steps: [{ id: ver, run: x }], outputs: { number: "${{ steps.ver.number }}" } }
  build:
    needs: version
    matrix: { axes: { os: [linux, mac] }, fail_fast: false }
    steps: [make]
    artifacts: { name: bin, paths: [bin] }
  lint: { steps: [x], allow_failure: true }
  test: { needs: build, steps: [x] }
  release: { needs: [version, test, lint], steps: [x], env: { TAG: "${{ needs.version.outputs.number }}" } }
  clean: { needs: test, if: always(), steps: [x] }
  never: { needs: version, if: git.branch == 'other', steps: [x] }
`

func leaving(name string, files map[string]string) outcome {
	return outcome{result: goes.result, leaves: map[string]map[string]string{name: files}}
}

var retriableStory = map[string]outcome{
	"version":     leaving(pipeline.StepOutputs, map[string]string{"0/output": "number=1.2\n"}),
	"build/linux": leaving("bin", map[string]string{"bin/app": "elf"}),
	"build/mac":   fails, "lint": fails,
}

// What failed runs again with all that needs it, and is given what the others have left. The old run stays as it was.
func TestARetryRunsWhatFailedAndTakesOverTheRest(t *testing.T) {
	w, a := newStage(t)
	old := w.pipelined(retriable, pipeline.Facts{Branch: "main"})
	w.play(a, old, retriableStory)
	before := w.states(old.ID)
	w.told(old, forge.RunFailed, "version Succeeded", "build/linux Succeeded", "build/mac Failed", "lint Failed",
		"test Skipped: build, which it needs, failed", "release Skipped: test, which it needs, was skipped", "clean Succeeded",
		"never Skipped: its condition is not true: git.branch == 'other'")

	again := w.retried(Retry{Run: old.ID})
	ran := w.play(a, again, map[string]outcome{"build/mac": leaving("bin", map[string]string{"bin/app": "macho"})})
	w.told(again, forge.RunSucceeded, "build/mac Succeeded", "test Succeeded", "release Succeeded", "clean Succeeded")
	if again.RetryOf != old.ID {
		t.Errorf("it says that it is a retry of %v", again.RetryOf)
	}
	if diff := cmp.Diff(before, w.states(old.ID)); diff != "" {
		t.Errorf("the old run was changed: %s", diff)
	}
	for _, want := range []forge.EnvVar{{Name: "NEEDS_VERSION_NUMBER", Value: "1.2"}, {Name: "TAG", Value: "1.2"}, {Name: "NEEDS_LINT_RESULT", Value: "success"}} {
		if !slices.Contains(ran["release"].Env, want) {
			t.Errorf("%v is not in %v", want, ran["release"].Env)
		}
	}
	files, err := cas.ReadTree(w.ctx, w.objects, ran["test"].Inputs[0].Tree, 10, forge.KiB)
	w.must(err)
	if string(files["build/linux/bin/bin/app"]) != "elf" || string(files["build/mac/bin/bin/app"]) != "macho" {
		t.Errorf("the test was given %q", files)
	}
}

func TestARetryOfARetryKnowsWhatTheFirstRunHad(t *testing.T) {
	w, a := newStage(t)
	old := w.pipelined(retriable, pipeline.Facts{})
	w.play(a, old, retriableStory)
	second := w.retried(Retry{Run: old.ID})
	w.play(a, second, map[string]outcome{"build/mac": leaving("bin", map[string]string{"bin/app": "macho"}), "test": fails})
	w.told(second, forge.RunFailed, "build/mac Succeeded", "test Failed", "release Skipped: test, which it needs, failed", "clean Succeeded")
	third := w.retried(Retry{Run: second.ID})
	ran := w.play(a, third, nil)
	w.told(third, forge.RunSucceeded, "test Succeeded", "release Succeeded", "clean Succeeded")
	files, err := cas.ReadTree(w.ctx, w.objects, ran["test"].Inputs[0].Tree, 10, forge.KiB)
	w.must(err)
	if len(files) != 2 {
		t.Errorf("the test was given %q", files)
	}
	// A job that was taken over twice is named: it runs, and all that needs it.
	fourth := w.retried(Retry{Run: third.ID, Jobs: []string{"version"}})
	w.play(a, fourth, retriableStory)
	w.told(fourth, forge.RunFailed, "version Succeeded", "build/linux Succeeded", "build/mac Failed", "test Skipped: build, which it needs, failed",
		"release Skipped: test, which it needs, was skipped", "clean Succeeded", "never Skipped: its condition is not true: git.branch == 'other'")
	all := w.retried(Retry{Run: third.ID, All: true})
	if n := len(w.legs(all.ID)); n != 8 {
		t.Errorf("of all jobs %d run again", n)
	}
	w.play(a, all, nil)
}

// A job that is named runs with what it needs and has not got.
func TestANamedJobIsRetriedWithWhatItNeeds(t *testing.T) {
	w, a := newStage(t)
	old := w.pipelined(retriable, pipeline.Facts{})
	w.play(a, old, retriableStory)
	again := w.retried(Retry{Run: old.ID, Jobs: []string{"release"}})
	w.play(a, again, retriableStory)
	w.told(again, forge.RunFailed, "build/mac Failed", "test Skipped: build, which it needs, failed", "release Skipped: test, which it needs, was skipped", "clean Succeeded")
	lint := w.retried(Retry{Run: old.ID, Jobs: []string{"lint", "lint"}}) // said twice it is one job
	w.play(a, lint, nil)
	if got := w.states(lint.ID); !slices.Contains(got, "lint Succeeded") || slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "version") }) {
		t.Errorf("%q", got)
	}
}

// A run of a job that was named ends by its own jobs. What else has failed is taken over as it is, and tried again by the next one.
func TestARetryOfANamedJobLeavesOtherFailuresToTheNext(t *testing.T) {
	w, a := newStage(t)
	old := w.pipelined("version: 1\njobs:\n  a: { steps: [x] }\n  b: { steps: [x] }\n  c: { needs: b, steps: [x] }\n", pipeline.Facts{})
	w.play(a, old, map[string]outcome{"a": fails, "b": fails})
	named := w.retried(Retry{Run: old.ID, Jobs: []string{"a"}})
	w.play(a, named, nil)
	w.told(named, forge.RunSucceeded, "a Succeeded")
	next := w.retried(Retry{Run: named.ID})
	w.play(a, next, nil)
	w.told(next, forge.RunSucceeded, "b Succeeded", "c Succeeded")
}

func TestWhatCannotBeRetriedSaysWhy(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs:\n  a: { steps: [x] }\n  b: { needs: a, steps: [x] }\n", pipeline.Facts{})
	refused := func(r Retry, want string) {
		t.Helper()
		r.Trust = forge.TrustTrusted
		if _, _, err := w.Retry(w.ctx, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	refused(Retry{Run: run.ID}, "has not ended")
	w.play(a, run, nil)
	refused(Retry{Run: run.ID}, "no job of run "+run.ID.String()+" has failed")
	refused(Retry{Run: run.ID, Jobs: []string{"aa"}}, `has no job "aa"`)
	if _, _, err := w.Retry(w.ctx, Retry{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that is nowhere: %v", err)
	}
	// The same key gives the same run, and no other.
	r := Retry{Run: run.ID, Jobs: []string{"b"}, Key: "k", Trust: forge.TrustTrusted}
	first, made, err := w.Retry(w.ctx, r)
	w.must(err)
	second, again, err := w.Retry(w.ctx, r)
	w.must(err)
	if first.ID != second.ID || !made || again {
		t.Errorf("%v %v, then %v %v", first.ID, made, second.ID, again)
	}
	r.Jobs = []string{"a"}
	if _, _, err := w.Retry(w.ctx, r); !errors.Is(err, ErrKeyReused) {
		t.Errorf("another retry with the key: %v", err)
	}
	w.play(a, first, nil)
}

// A cancelled run goes on where it was stopped, and a run of jobs that came with their specs is tried again like any other.
func TestARunOfSpecsIsRetriedFromWhereItStopped(t *testing.T) {
	w, a := newStage(t)
	run := w.submit("build=Waiting test[build]=Waiting lint=Waiting")
	w.play(a, run, map[string]outcome{"test": fails})
	w.told(run, forge.RunFailed, "build Succeeded", "test Failed", "lint Succeeded")
	again := w.retried(Retry{Run: run.ID})
	w.play(a, again, nil)
	w.told(again, forge.RunSucceeded, "test Succeeded")

	c := w.submit("build=Waiting test[build]=Waiting")
	held := w.offered(a)
	a.accept(held)
	if _, err := w.CancelRun(w.ctx, c.ID, "ada"); err != nil {
		t.Fatal(err)
	}
	a.complete(held, forge.Result{Class: forge.Cancelled})
	w.ended(c, forge.RunCancelled)
	again = w.retried(Retry{Run: c.ID})
	w.play(a, again, nil)
	w.told(again, forge.RunSucceeded, "build Succeeded", "test Succeeded")
}

// A stranger's run stays one, whoever tries it again.
func TestARetryHasNoMoreTrustThanItsRun(t *testing.T) {
	w, _ := newStage(t)
	s := submission(t, "a=Waiting")
	s.Trust = forge.TrustUntrusted
	run, _, err := w.Submit(w.ctx, s)
	w.must(err)
	if _, err := w.CancelRun(w.ctx, run.ID, "ada"); err != nil {
		t.Fatal(err)
	}
	if again := w.retried(Retry{Run: run.ID}); again.Trust != forge.TrustUntrusted {
		t.Errorf("it is %v", again.Trust)
	}
}
