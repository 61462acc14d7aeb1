package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// What docs/pipeline.md says of runs, played through planner, store and loop; the agents do what the stories say.

// next carries out the next placement with a result, and says of which job it was.
func (w *world) next(a *agent, r forge.Result) string {
	w.t.Helper()
	c := w.taken(a)
	var job store.Job
	w.view(func(v *store.View) (err error) { job, err = v.Job(c.Job); return err })
	a.complete(c, r)
	return nameOf(&job)
}

// attempts lists how the attempts of a job have ended.
func (w *world) attempts(run store.Run, key string) (all []string) {
	w.t.Helper()
	w.view(func(v *store.View) error {
		attempts, err := v.Attempts(w.jobs(run.ID)[forge.JobKey(key)].ID)
		for i := range attempts {
			all = append(all, fmt.Sprintf("%d: %s", attempts[i].Authority.Number, AttemptReason(&attempts[i])))
		}
		return err
	})
	return all
}

func TestAJobIsTriedAgainForTheReasonsThatItNamesAndEveryAttemptStays(t *testing.T) {
	const text = "version: 1\njobs:\n  a: { retry: { max: 2, on: [timeout, { exit: [75] }] }, steps: [x] }\n"
	exit := func(code uint8) forge.Result { return forge.Result{Class: forge.ExitCode, ExitCode: code} }
	for name, c := range map[string]struct {
		ends []forge.Result
		run  forge.RunState
		want int
	}{
		"it goes well the third time":       {[]forge.Result{exit(75), {Class: forge.TimedOut}, goes.result}, forge.RunSucceeded, 3},
		"it has had all its tries":          {[]forge.Result{exit(75), exit(75), exit(75)}, forge.RunFailed, 3},
		"another exit code ends it at once": {[]forge.Result{exit(1)}, forge.RunFailed, 1},
		"so does it later":                  {[]forge.Result{exit(75), exit(1)}, forge.RunFailed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := newStage(t)
			run := w.pipelined(text, pipeline.Facts{})
			for _, r := range c.ends {
				w.next(a, r)
			}
			w.ended(run, c.run)
			got := w.attempts(run, "a")
			if len(got) != c.want {
				t.Fatalf("attempts: %q", got)
			}
			if c.ends[0].ExitCode == 75 && !strings.Contains(got[0], "exit code 75") {
				t.Errorf("the first: %q", got[0])
			}
		})
	}
}

// Case B90: what is skipped does not reach beyond what always runs, and legs that are all skipped are a skipped job.
func TestWhatFollowsAJobThatAlwaysRunsDoesNotSeeWhatWasSkippedBeforeIt(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  a: { if: git.branch == 'other', steps: [x] }
  b: { needs: a, if: always(), steps: [x] }
  c: { needs: b, steps: [x] }
  legs: { matrix: { axes: { n: [1, 2] } }, if: matrix.n == '3', steps: [x] }
  some: { matrix: { axes: { n: [1, 2] } }, if: matrix.n == '2', steps: [x] }
  d: { needs: [{ job: legs, optional: true }, some], steps: [x] }
  e: { needs: legs, steps: [x] }
`, pipeline.Facts{Branch: "main"})
	w.play(a, run, nil)
	w.told(run, forge.RunSucceeded,
		"a Skipped: its condition is not true: git.branch == 'other'", "b Succeeded", "c Succeeded",
		"legs/1 Skipped: its condition is not true: matrix.n == '3'", "legs/2 Skipped: its condition is not true: matrix.n == '3'",
		"some/1 Skipped: its condition is not true: matrix.n == '2'", "some/2 Succeeded",
		"d Succeeded", "e Skipped: legs, which it needs, was skipped")
}

func TestAnOptionalNeedMayBeSkippedAndMayNotFail(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs:\n  a: { steps: [x] }\n  b: { needs: { job: a, optional: true }, steps: [x] }\n", pipeline.Facts{})
	w.play(a, run, map[string]outcome{"a": fails})
	w.told(run, forge.RunFailed, "a Failed", "b Skipped: a, which it needs, failed")
}

func TestWhatRunsAfterAFailureFindsTheArtifactsOfIt(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  test: { steps: [x], artifacts: { name: log, paths: [log], when: always } }
  report: { needs: test, if: failure(), steps: ['cat ../needs/test/log/log'] }
`, pipeline.Facts{})
	ran := w.play(a, run, map[string]outcome{"test": {result: fails.result, leaves: map[string]map[string]string{"log": {"log": "why"}}}})
	w.told(run, forge.RunFailed, "test Failed", "report Succeeded")
	inputs := ran["report"].Inputs
	if len(inputs) != 1 || inputs[0].Mode != forge.InputReadOnly {
		t.Fatalf("inputs %+v", inputs)
	}
	files, err := cas.ReadTree(w.ctx, w.objects, inputs[0].Tree, 10, forge.KiB)
	w.must(err)
	if string(files["test/log/log"]) != "why" {
		t.Errorf("%q", files)
	}
}

// Of a job that is tried again, what the last attempt has left counts, and nothing of those before.
func TestOutputsAreThoseOfTheAttemptThatCounts(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  a: { retry: 1, steps: [{ id: s, run: x }], outputs: { v: "${{ steps.s.v }}" } }
  b: { needs: a, steps: [x], env: { V: "${{ needs.a.outputs.v }}" } }
`, pipeline.Facts{})
	for _, o := range []outcome{
		{result: fails.result, leaves: map[string]map[string]string{pipeline.StepOutputs: {"0/output": "v=first\n"}}},
		{result: goes.result, leaves: map[string]map[string]string{pipeline.StepOutputs: {"0/output": "v=second\n"}}},
	} {
		w.carryOut(a, <-w.places, map[string]outcome{"a": o}, map[string]*forge.JobSpec{})
	}
	ran := w.play(a, run, nil)
	if b := ran["b"]; b == nil || !slices.Contains(b.Env, forge.EnvVar{Name: "V", Value: "second"}) {
		t.Errorf("%v", w.states(run.ID))
	}
}

// Cases B70, B94: what a step has written for outputs and cannot be read, such as a delimiter of another system, fails whoever needs
// them with the line that is wrong; nothing runs with half of it, but what always runs does.
func TestOutputsThatCannotBeReadFailWhoeverNeedsThem(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  a: { steps: [{ id: s, run: x }], outputs: { v: "${{ steps.s.v }}" } }
  b: { needs: a, steps: ['echo $NEEDS_A_V'] }
  c: { needs: a, if: git.branch == 'other', steps: [x] }
  clean: { needs: a, if: always(), steps: [x] }
`, pipeline.Facts{})
	ran := w.play(a, run, map[string]outcome{"a": {result: goes.result, leaves: map[string]map[string]string{
		pipeline.StepOutputs: {"0/output": "v=1\nNAME<<EOF\nPATH=/evil\nEOF\n"},
	}}})
	states := w.states(run.ID)
	if w.runState(run.ID) != forge.RunFailed || !strings.HasPrefix(states[1], "b Failed: it cannot be planned: the outputs of a, which it needs, cannot be read: ") ||
		!strings.HasPrefix(states[2], "c Skipped") || states[3] != "clean Succeeded" {
		t.Errorf("%q", states)
	}
	for _, e := range ran["clean"].Env {
		if e.Name == "NEEDS_A_V" || e.Name == "PATH" {
			t.Errorf("it got %v", e)
		}
	}
}

// What was written reaches the next job, also where something else was not.
func TestAnOutputThatWasNotWrittenTakesNoOtherWithIt(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  a: { steps: [{ id: s, run: x }], outputs: { no: "${{ steps.s.no }}", v: "${{ steps.s.v }}" } }
  b: { needs: a, steps: ['echo $NEEDS_A_V'] }
`, pipeline.Facts{})
	ran := w.play(a, run, map[string]outcome{"a": {result: goes.result, leaves: map[string]map[string]string{pipeline.StepOutputs: {"0/output": "v=1\n"}}}})
	w.told(run, forge.RunSucceeded, "a Succeeded", "b Succeeded")
	if !slices.Contains(ran["b"].Env, forge.EnvVar{Name: "NEEDS_A_V", Value: "1"}) {
		t.Errorf("%v", ran["b"].Env)
	}
}

// Case B89: five runs of a group wait in their order; one that replaces ends the older ones of its own group and no other.
func TestRunsOfAGroupKeepTheirOrderAndReplaceOnlyTheirOwn(t *testing.T) {
	w, a := newStage(t)
	const text = "version: 1\nconcurrency: { group: \"g-${{ git.branch }}\" }\njobs: { a: { steps: [x] } }\n"
	var runs []store.Run
	for range 5 {
		runs = append(runs, w.pipelined(text, pipeline.Facts{Branch: "main"}))
	}
	for i, run := range runs {
		c := w.taken(a)
		for k, r := range runs {
			if got := w.jobs(r.ID)["a"].State; k > i && got != forge.JobWaiting || k == i && c.Job != w.jobs(r.ID)["a"].ID {
				t.Fatalf("while run %d should have its turn, run %d is %v", i, k, got)
			}
		}
		a.complete(c, goes.result)
		w.ended(run, forge.RunSucceeded)
	}

	other := w.pipelined(text, pipeline.Facts{Branch: "other"})
	held := w.offered(a)
	a.accept(held)
	old := []store.Run{w.pipelined(text, pipeline.Facts{Branch: "main"})}
	first := w.offered(a)
	a.accept(first)
	old = append(old, w.pipelined(text, pipeline.Facts{Branch: "main"}))
	newest := w.pipelined(strings.Replace(text, "\" }", "\", cancel_running: true }", 1), pipeline.Facts{Branch: "main"})
	w.until("the older one that runs is asked to end", func() bool { return w.jobs(old[0].ID)["a"].Authority.CancelRequested })
	a.complete(first, forge.Result{Class: forge.Cancelled})
	for _, run := range old {
		w.ended(run, forge.RunCancelled)
	}
	w.play(a, newest, nil)
	w.told(newest, forge.RunSucceeded, "a Succeeded")
	if got := w.jobs(other.ID)["a"]; got.State.Ended() || got.Authority.CancelRequested {
		t.Errorf("a run of another group is %v", got.State)
	}
	a.complete(held, goes.result)
	w.ended(other, forge.RunSucceeded)
}

// Jobs of one run that share a group go one after the other, whatever their order in the file and whatever they need of each other.
func TestJobsOfOneRunInOneGroupDoNotWaitForEachOtherForEver(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
concurrency: g
jobs:
  last: { needs: [first, legs], concurrency: g, steps: [x] }
  legs: { parallel: 3, concurrency: g, steps: ['echo $PARALLEL_INDEX'] }
  first: { concurrency: g, steps: [x] }
`, pipeline.Facts{})
	w.play(a, run, nil)
	w.told(run, forge.RunSucceeded, "last Succeeded", "legs/1 Succeeded", "legs/2 Succeeded", "legs/3 Succeeded", "first Succeeded")
}

// A group that replaces is about other runs: what a run has of it itself it keeps.
func TestAJobThatReplacesEndsNothingOfItsOwnRun(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined(`version: 1
jobs:
  legs: { parallel: 3, concurrency: { group: g, cancel_running: true }, steps: ['echo $PARALLEL_INDEX'] }
  more: { concurrency: { group: g, cancel_running: true }, steps: [x] }
`, pipeline.Facts{})
	w.play(a, run, nil)
	w.told(run, forge.RunSucceeded, "legs/1 Succeeded", "legs/2 Succeeded", "legs/3 Succeeded", "more Succeeded")
}

// The newer run replaces the older one, also where the older one's job becomes ready later.
func TestAJobOfAnOlderRunDoesNotReplaceOneOfANewerRun(t *testing.T) {
	w, a := newStage(t)
	const deploy = "deploy: { %sconcurrency: { group: g, cancel_running: true }, steps: [x] }"
	older := w.pipelined("version: 1\njobs:\n  build: { steps: [x] }\n  "+fmt.Sprintf(deploy, "needs: build, ")+"\n", pipeline.Facts{})
	build := w.offered(a)
	a.accept(build)
	newer := w.pipelined("version: 1\njobs:\n  "+fmt.Sprintf(deploy, "")+"\n", pipeline.Facts{})
	c := w.taken(a)
	a.complete(build, goes.result)
	w.until("the older one's is ready", func() bool { return w.jobs(older.ID)["deploy"].State == forge.JobReady })
	if got := w.jobs(newer.ID)["deploy"]; got.Authority.CancelRequested {
		t.Error("the newer one was asked to end")
	}
	a.complete(c, goes.result)
	w.play(a, older, nil)
	w.told(newer, forge.RunSucceeded, "deploy Succeeded")
	w.told(older, forge.RunSucceeded, "build Succeeded", "deploy Succeeded")
}

// A leg that fails and is allowed to ends no other.
func TestAnAllowedFailureOfALegEndsNoOther(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs:\n  a: { matrix: { axes: { n: [1, 2] } }, allow_failure: true, steps: ['echo $MATRIX_N'] }\n  b: { needs: a, steps: [x] }\n", pipeline.Facts{})
	w.play(a, run, map[string]outcome{"a/1": fails})
	w.told(run, forge.RunSucceeded, "a/1 Failed", "a/2 Succeeded", "b Succeeded")
}

// Legs are planned in the order that the file gives, each time the same: axes with the first slowest, what is excluded left out, what
// is included behind.
func TestTheLegsOfARunStandInTheOrderOfTheFile(t *testing.T) {
	w := newWorld(t)
	const text = `version: 1
jobs:
  a:
    matrix:
      axes: { os: [mac, linux], go: ["1.9", "1.10"] }
      exclude: [{ os: mac, go: "1.10" }]
      include: [{ go: "2", os: plan9 }]
    steps: ['echo $MATRIX_OS $MATRIX_GO']
`
	for range 3 {
		run := w.pipelined(text, pipeline.Facts{})
		want := []string{"a/mac/1.9 Waiting", "a/linux/1.9 Waiting", "a/linux/1.10 Waiting", "a/plan9/2 Waiting"}
		if diff := cmp.Diff(want, w.states(run.ID)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTimesOfJobsAndStepsReachWhatRuns(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\ndefaults: { timeout: 20m }\njobs:\n  a: { timeout: 90s, steps: [{ run: x, timeout: 5s }, y] }\n  b: { steps: [x] }\n", pipeline.Facts{})
	ran := w.play(a, run, nil)
	got := fmt.Sprint(ran["a"].Timeouts.Run, ran["a"].Steps[0].Timeout, ran["a"].Steps[1].Timeout, ran["b"].Timeouts.Run)
	if got != "1m30s 5s 0s 20m0s" {
		t.Error(got)
	}
}

// Whoever asks about a job whose runner is gone hears that, and until when it is waited for.
func TestAJobWhoseRunnerIsGoneSaysSo(t *testing.T) {
	w, a := newStage(t)
	run := w.pipelined("version: 1\njobs: { a: { steps: [x] } }\n", pipeline.Facts{})
	c := w.taken(a)
	why, err := w.Explain(w.ctx, c.Job)
	w.must(err)
	if len(why.WaitingFor) > 0 || strings.Contains(why.Summary, "not connected") {
		t.Errorf("while it is there: %+v", why)
	}
	w.Disconnected(a.id)
	why, err = w.Explain(w.ctx, c.Job)
	w.must(err)
	if !slices.Equal(why.WaitingFor, []string{"runner one"}) || !strings.Contains(why.Summary, "it is not connected, and if it does not come back the attempt is lost at most 2m") {
		t.Errorf("once it is gone: %q, %q", why.WaitingFor, why.Summary)
	}
	a.connect()
	a.complete(c, goes.result)
	w.ended(run, forge.RunSucceeded)
}
