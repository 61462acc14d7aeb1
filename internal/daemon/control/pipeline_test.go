package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// Case B90: what is skipped, what runs in spite of it, and how the run ends.
func TestAPipelineRunsByItsNeedsAndConditions(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  a: { steps: [x] }
  b: { needs: a, steps: [x] }
  clean: { needs: b, if: always(), steps: [x] }
  after: { needs: clean, steps: [x] }
  blame: { needs: b, if: failure(), steps: [x] }
  never: { if: git.branch == 'other', steps: [x] }
  free: { steps: [x], allow_failure: { exit: [7] } }
  next: { needs: free, steps: [x] }
`, pipeline.Facts{Branch: "main"})
	w.play(a, run, map[string]outcome{"a": fails, "free": fails})
	w.told(run, forge.RunFailed,
		"a Failed", "b Skipped: a, which it needs, failed", "clean Succeeded", "after Succeeded", "blame Succeeded",
		"never Skipped: its condition is not true: git.branch == 'other'", "free Failed", "next Succeeded")
}

// An allowed failure fails neither what needs it nor the run; the wrong exit code does.
func TestAnAllowedFailureDoesNotFailTheRun(t *testing.T) {
	w, a := newStage(t)
	const text = "version: 1\njobs:\n  a: { steps: [x], allow_failure: { exit: [7] } }\n  b: { needs: a, steps: ['echo $NEEDS_A_RESULT'] }\n"
	run := w.pipelined(text, pipeline.Facts{})
	ran := w.play(a, run, map[string]outcome{"a": fails})
	w.told(run, forge.RunSucceeded, "a Failed", "b Succeeded")
	if !slices.Contains(ran["b"].Env, forge.EnvVar{Name: "NEEDS_A_RESULT", Value: "success"}) {
		t.Errorf("%v", ran["b"].Env)
	}
	run = w.pipelined(text, pipeline.Facts{})
	w.play(a, run, map[string]outcome{"a": {result: forge.Result{Class: forge.ExitCode, ExitCode: 8}}})
	w.told(run, forge.RunFailed, "a Failed", "b Skipped: a, which it needs, failed")
}

// The first leg that fails ends the others, where nothing else is said.
func TestALegThatFailsEndsTheOthers(t *testing.T) {
	const text = "version: 1\njobs:\n  a: { matrix: { axes: { n: [1, 2, 3] }%s }, steps: ['echo $MATRIX_N'] }\n  b: { needs: a, steps: [x] }\n"
	w, a := newStage(t)
	run := w.pipelined(fmt.Sprintf(text, ", fail_fast: false"), pipeline.Facts{})
	w.play(a, run, map[string]outcome{"a/1": fails})
	w.told(run, forge.RunFailed, "a/1 Failed", "a/2 Succeeded", "a/3 Succeeded", "b Skipped: a, which it needs, failed")

	run = w.pipelined(fmt.Sprintf(text, ""), pipeline.Facts{})
	var running []forge.AttemptContext
	for range 3 {
		c := w.taken(a)
		running = append(running, c)
	}
	a.complete(running[0], fails.result)
	w.until("the others are to end", func() bool {
		open := 0
		for _, j := range w.legs(run.ID) {
			if !j.State.Ended() && j.Authority.CancelRequested {
				open++
			}
		}
		return open == 2
	})
	for _, c := range running[1:] {
		a.complete(c, forge.Result{Class: forge.Cancelled})
	}
	w.ended(run, forge.RunFailed)
	failed, stopped := 0, 0
	for _, j := range w.legs(run.ID) {
		switch j.State {
		case forge.JobFailed:
			failed++
		case forge.JobCancelled:
			stopped++
		}
	}
	if failed != 1 || stopped != 2 {
		t.Errorf("%v", w.states(run.ID))
	}
}

// Texts and files of one job reach those that need it, and only by what was accepted.
func TestWhatAJobLeavesReachesThoseThatNeedIt(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  version: { steps: [{ id: ver, run: x }], outputs: { number: "v${{ steps.ver.number }}" } }
  build:
    matrix: { axes: { os: [linux, mac] } }
    steps: ['make $MATRIX_OS']
    artifacts: { name: bin, paths: [bin] }
  release: { needs: [version, build], if: needs.version.outputs.number == 'v1.2', steps: [x], env: { TAG: "${{ needs.version.outputs.number }}" } }
`, pipeline.Facts{})
	leaves := func(name string, files map[string]string) outcome {
		return outcome{result: goes.result, leaves: map[string]map[string]string{name: files}}
	}
	ran := w.play(a, run, map[string]outcome{
		"version":     leaves(pipeline.StepOutputs, map[string]string{"0/output": "number=1.2\n"}),
		"build/linux": leaves("bin", map[string]string{"bin/app": "elf"}), "build/mac": leaves("bin", map[string]string{"bin/app": "macho"}),
	})
	w.told(run, forge.RunSucceeded, "version Succeeded", "build/linux Succeeded", "build/mac Succeeded", "release Succeeded")
	spec := ran["release"]
	for _, want := range []forge.EnvVar{{Name: "NEEDS_VERSION_NUMBER", Value: "v1.2"}, {Name: "TAG", Value: "v1.2"}, {Name: "NEEDS_BUILD_RESULT", Value: "success"}} {
		if !slices.Contains(spec.Env, want) {
			t.Errorf("%v is not in %v", want, spec.Env)
		}
	}
	if len(spec.Inputs) != 1 || spec.Inputs[0].Mount != pipeline.NeedsDir {
		t.Fatalf("inputs %+v", spec.Inputs)
	}
	files, err := cas.ReadTree(w.ctx, w.objects, spec.Inputs[0].Tree, 10, forge.KiB)
	w.must(err)
	got := map[string]string{}
	for path, content := range files {
		got[path] = string(content)
	}
	if diff := cmp.Diff(map[string]string{"build/linux/bin/bin/app": "elf", "build/mac/bin/bin/app": "macho"}, got); diff != "" {
		t.Error(diff)
	}
}

// Case B94: a value that was never written fails whoever reads it, with the reason, and nothing runs without it.
func TestAnOutputThatIsMissingFailsWhoeverReadsIt(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  version: { steps: [{ id: ver, run: x }], outputs: { number: "${{ steps.ver.number }}" } }
  release: { needs: version, steps: [x], env: { TAG: "${{ needs.version.outputs.number }}" } }
`, pipeline.Facts{})
	w.play(a, run, map[string]outcome{"version": {result: goes.result, leaves: map[string]map[string]string{pipeline.StepOutputs: {"0/output": "other=1\n"}}}})
	states := w.states(run.ID)
	if w.runState(run.ID) != forge.RunFailed || states[0] != "version Succeeded" || !strings.HasPrefix(states[1], "release Failed: it cannot be planned: TAG: the expression has no value") {
		t.Errorf("%v: %v", w.runState(run.ID), states)
	}
}

// Case B89: a newer run of a group waits for the older one, or ends it.
func TestRunsOfAGroupGoOneAfterTheOther(t *testing.T) {
	w, a := newStage(t)
	text := func(replace bool) string {
		return fmt.Sprintf("version: 1\nconcurrency: { group: \"ci-${{ git.ref }}\", cancel_running: %v }\njobs: { a: { steps: [x] } }\n", replace)
	}
	first := w.pipelined(text(false), pipeline.Facts{Ref: "main"})
	c := w.taken(a)
	second := w.pipelined(text(false), pipeline.Facts{Ref: "main"})
	other := w.pipelined(text(false), pipeline.Facts{Ref: "other"})
	w.play(a, other, nil)
	if got := w.states(second.ID); got[0] != "a Waiting" {
		t.Errorf("the second is %v beside the first", got)
	}
	a.complete(c, goes.result)
	w.play(a, second, nil)
	w.told(first, forge.RunSucceeded, "a Succeeded")
	w.told(second, forge.RunSucceeded, "a Succeeded")

	third := w.pipelined(text(false), pipeline.Facts{Ref: "main"})
	c = w.offered(a)
	a.accept(c)
	fourth := w.pipelined(text(true), pipeline.Facts{Ref: "main"})
	w.until("the third is to be cancelled", func() bool { return w.jobs(third.ID)["a"].Authority.CancelRequested })
	a.complete(c, forge.Result{Class: forge.Cancelled})
	w.play(a, fourth, nil)
	w.told(third, forge.RunCancelled, "a Cancelled")
	w.told(fourth, forge.RunSucceeded, "a Succeeded")
}

// What is wrong with a file is told before anything is stored.
func TestABadPipelineIsRefusedWhole(t *testing.T) {
	w := newWorld(t)
	submit := func(text string, wanted ...string) error {
		_, _, err := w.Submit(w.ctx, Submission{
			Project: forge.DefaultProject, Trust: forge.TrustTrusted, Pipeline: &Pipeline{File: "p.yml", Text: []byte(text), Wanted: wanted},
		})
		return err
	}
	var file *PipelineError
	if err := submit("version: 1\njobs: {a: {steps: [x], needs: b}, c: {stepz: [x]}}\n"); !errors.As(err, &file) || len(file.Found) < 2 {
		t.Errorf("%v", err)
	}
	var unknown *pipeline.UnknownJobError
	if err := submit("version: 1\njobs: {a: {steps: [x]}}\n", "b"); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	var found forge.Problems
	if err := submit("version: 1\njobs: {a: {steps: [x], secrets: {T: x/y}}}\n"); !errors.As(err, &found) || found[0].Path != "p.yml:2:37" {
		t.Errorf("%v", err)
	}
	w.view(func(v *store.View) error {
		runs, _, err := v.Runs(store.RunFilter{})
		if len(runs) > 0 {
			t.Errorf("%d runs were stored", len(runs))
		}
		return err
	})
}

// An artifact that is lost fails those that need it, with its name, and nobody else; the run ends.
func TestAnArtifactThatIsLostFailsThoseThatNeedIt(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  build: { steps: [{ id: s, run: x }], artifacts: { name: bin, paths: [bin] } }
  gone: { needs: build, steps: [x] }
  free: { steps: [x] }
  weak: { steps: [x], allow_failure: { exit: [7] }, artifacts: { name: log, paths: [log], when: always } }
`, pipeline.Facts{})
	w.play(a, run, map[string]outcome{"build": {result: goes.result, lost: "bin"}, "weak": {result: fails.result, lost: "log"}})
	states := w.states(run.ID)
	if w.runState(run.ID) != forge.RunFailed || states[0] != "build Succeeded" || states[2] != "free Succeeded" ||
		!strings.HasPrefix(states[1], "gone Failed: it cannot be planned: what build has kept as bin: ") {
		t.Errorf("%v: %v", w.runState(run.ID), states)
	}
}

// A run whose file cannot be planned any more, as after an upgrade, ends and says why.
func TestARunThatCannotBePlannedAnyMoreEnds(t *testing.T) {
	w := newWorld(t)
	n := store.NewRun{
		ID: ident.New[forge.RunID](), Project: forge.DefaultProject, Trust: forge.TrustTrusted,
		Origin: &store.Origin{Pipeline: []byte("version: 0\n"), Facts: []byte("{}")},
		Jobs:   []store.NewJob{{ID: ident.New[forge.JobID](), Key: "a"}, {ID: ident.New[forge.JobID](), Key: "b", Needs: []forge.JobNeed{{Job: "a"}}}},
	}
	w.must(w.store.Update(w.ctx, store.ClassState, func(tx *store.Tx) error {
		_, _, err := tx.CreateRun(n)
		return err
	}))
	w.run()
	w.ended(store.Run{Run: forge.Run{ID: n.ID}}, forge.RunFailed)
	if states := w.states(n.ID); !strings.Contains(states[0], "a Failed: it cannot be planned: the pipeline of run") {
		t.Error(states)
	}
}

// Whoever asks why a job waits hears of its group.
func TestAJobThatWaitsForItsGroupSaysSo(t *testing.T) {
	w, a := newStage(t)
	why := func(run store.Run) string {
		t.Helper()
		e, err := w.Explain(w.ctx, w.legs(run.ID)[0].ID)
		w.must(err)
		return e.Summary
	}
	const job = "version: 1\njobs: { a: { concurrency: deploy, steps: [x] } }\n"
	first := w.pipelined(job, pipeline.Facts{})
	c := w.taken(a)
	second := w.pipelined(job, pipeline.Facts{})
	w.until("the second is ready", func() bool { return w.legs(second.ID)[0].State == forge.JobReady })
	if got, want := why(second), fmt.Sprintf("it waits for a of run %v, which is before it in the group deploy (Active)", first.ID); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.complete(c, goes.result)
	w.play(a, second, nil)

	const whole = "version: 1\nconcurrency: ci\njobs: { a: { steps: [x] } }\n"
	first = w.pipelined(whole, pipeline.Facts{})
	c = w.offered(a)
	a.accept(c)
	second = w.pipelined(whole, pipeline.Facts{})
	if got, want := why(second), fmt.Sprintf("it waits for run %v, which is older in the group ci", first.ID); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.complete(c, goes.result)
	w.play(a, second, nil)
}

// A submission that is made again is the same run, and another one with its key is none.
func TestAPipelineIsSubmittedOnceForAKey(t *testing.T) {
	w := newWorld(t)
	trust := forge.TrustTrusted
	submit := func(text string, facts pipeline.Facts) (store.Run, error) {
		run, _, err := w.Submit(w.ctx, Submission{
			Project: forge.DefaultProject, Trust: trust, Key: "once", Pipeline: &Pipeline{File: "p.yml", Text: []byte(text), Facts: facts},
		})
		return run, err
	}
	const text = "version: 1\njobs: {a: {steps: [x]}}\n"
	first, err := submit(text, pipeline.Facts{SHA: "1"})
	w.must(err)
	if again, err := submit(text, pipeline.Facts{SHA: "1"}); err != nil || again.ID != first.ID {
		t.Errorf("the same: %v, %v", again.ID, err)
	}
	for text, facts := range map[string]pipeline.Facts{text: {SHA: "2"}, text + "# other\n": {SHA: "1"}} {
		if _, err := submit(text, facts); !errors.Is(err, ErrKeyReused) {
			t.Errorf("another one: %v", err)
		}
	}
	trust = forge.TrustUntrusted
	if _, err := submit(text, pipeline.Facts{SHA: "1"}); !errors.Is(err, ErrKeyReused) {
		t.Errorf("the same of a stranger: %v", err)
	}
}

// A daemon that was killed plans on from what is stored.
func TestARestartPlansOn(t *testing.T) {
	w := newWorld(t)
	a := w.agent("one", 64)
	run := w.pipelined("version: 1\njobs: {a: {steps: [x]}, b: {needs: a, steps: [x]}}\n", pipeline.Facts{})
	again := &world{t: t, ctx: w.ctx, store: w.store, places: w.places, objects: w.objects}
	again.Control = New(Config{
		Store: w.store, Place: func(p Placement) { w.places <- p }, CA: w.ca, Policy: policy, Trees: allTrees{},
		Objects: func(forge.ProjectName) cas.Store { return w.objects },
	})
	again.Connected(a.id, a.fence.Session)
	again.run()
	again.play(a, run, nil)
	again.told(run, forge.RunSucceeded, "a Succeeded", "b Succeeded")
}

const cached = `version: 1
jobs:
  a:
    cache: { key: "go-${{ git.branch }}", paths: [~/.cache/go, ~/go], fallback: go- }
    steps: [x]
`

// Threat S17: what a job leaves for a later one is found by its key, or by the beginning of one, within a class of trust;
// what a key stands for never changes, and a failure leaves nothing.
func TestCachesAreFoundByTheirKeysWithinAClassOfTrust(t *testing.T) {
	w, a := newStage(t)
	leave := func(content string) outcome {
		return outcome{result: goes.result, leaves: map[string]map[string]string{"forgeyard.cache.0.0": {"f": content}}}
	}
	play := func(branch string, trust forge.TrustClass, o outcome) *forge.JobSpec {
		t.Helper()
		run, _, err := w.Submit(w.ctx, Submission{
			Project: forge.DefaultProject, Trust: trust, Pipeline: &Pipeline{File: "p.yml", Text: []byte(cached), Facts: pipeline.Facts{Branch: branch}},
		})
		w.must(err)
		return w.play(a, run, map[string]outcome{"a": o})["a"]
	}
	if s := play("main", forge.TrustTrusted, outcome{result: fails.result, leaves: leave("broken").leaves}); len(s.Inputs) != 0 || len(s.Outputs) != 2 {
		t.Errorf("the first: %v, %+v", inputsOf(s), s.Outputs)
	}
	if s := play("main", forge.TrustTrusted, leave("12345")); len(s.Inputs) != 0 {
		t.Errorf("a failure has left %v", inputsOf(s))
	}
	want := []string{"home/.cache/go cow 5"}
	if s := play("main", forge.TrustTrusted, leave("changed")); !slices.Equal(inputsOf(s), want) || len(s.Outputs) != 0 {
		t.Errorf("the same key: %v, %+v", inputsOf(s), s.Outputs)
	}
	if s := play("other", forge.TrustTrusted, leave("1234567")); !slices.Equal(inputsOf(s), want) || len(s.Outputs) != 2 {
		t.Errorf("a key that begins so: %v, %+v", inputsOf(s), s.Outputs)
	}
	if s := play("third", forge.TrustTrusted, goes); !slices.Equal(inputsOf(s), []string{"home/.cache/go cow 7"}) {
		t.Errorf("not the newest: %v", inputsOf(s))
	}
}
