package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// example uses most of what a file can say.
const example = `version: 1
name: ci of ${{ git.branch }}
on: { push: { branches: [main, "!wip/*"] }, pull_request: {}, schedule: [{ cron: "0 3 * * *" }], manual: }
env: { CGO_ENABLED: "0", COMMIT: "${{ git.sha }}" }
defaults: { timeout: 20m, runner: { os: linux, cpu: 2 } }
concurrency: { group: "ci-${{ git.ref }}", cancel_running: true }
jobs:
  lint: { steps: [make lint] }
  build-it:
    needs: lint
    matrix:
      axes: { go: [1.20, 1.25], os: [linux, darwin] }
      exclude: [{ go: 1.20, os: darwin }]
      include: [{ go: tip, os: linux }]
    runner: { labels: ["go-${{ matrix.go }}"], memory: 2GiB }
    env: { TARGET: "${{ matrix.os }}/${{ matrix.go }}" }
    cache: { key: "go-${{ matrix.go }}-${{ hashFiles('go.sum', '**/go.mod') }}", paths: [~/.cache/go-build, vendor], fallback: "go-${{ matrix.go }}-" }
    steps:
      - make
      - { name: "test ${{ matrix.go }}", run: make test, timeout: 10m, env: { V: "1" }, dir: ./sub/ }
      - { run: report, if: failure() }
      - { run: clean, if: always() }
      - { run: never, if: matrix.os == 'plan9' }
    artifacts: { name: bin, paths: [bin/**, "!bin/*.tmp"], required: true }
  version:
    steps: [{ id: ver, run: 'echo "number=1.2" >> $FORGEYARD_OUTPUT' }]
    outputs: { number: "v${{ steps.ver.number }}" }
  release:
    needs: [build-it, version, { job: lint, optional: true }]
    if: git.tag.startsWith('v') && needs.build-it.result == 'success' && success()
    network: host
    secrets: { TOKEN: release/token, KEY: { ref: release/key@2, file: key.pem } }
    retry: { max: 2, on: [timeout, { exit: [75, 69] }], infra: 0 }
    env: { NAME: "app-${{ needs.version.outputs.number }}" }
    steps: [make release]
`

func expand(t *testing.T, text string, facts pipeline.Facts, wanted ...string) *pipeline.Plan {
	t.Helper()
	plan, err := parse(t, text).Expand(facts, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// names lists the nodes of a plan.
func names(p *pipeline.Plan) []string {
	var all []string
	for _, n := range p.Nodes {
		text := string(n.Job.Key)
		if len(n.Leg) > 0 {
			text += " (" + n.Leg.String() + ")"
		}
		all = append(all, text)
	}
	return all
}

// Legs come in the order of the axes, without what is excluded, and with what is included at the end.
func TestAPlanListsJobsAndLegsInTheOrderOfTheFile(t *testing.T) {
	want := []string{
		"lint", "build-it (go=1.20, os=linux)", "build-it (go=1.25, os=linux)", "build-it (go=1.25, os=darwin)",
		"build-it (go=tip, os=linux)", "version", "release",
	}
	p := expand(t, example, pipeline.Facts{})
	if diff := cmp.Diff(want, names(p)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"lint", "version"}, names(expand(t, example, pipeline.Facts{}, "version", "lint"))); diff != "" {
		t.Error(diff)
	}
	if got := len(expand(t, example, pipeline.Facts{}, "release").Nodes); got != len(want) {
		t.Errorf("%d jobs for release, want what it needs too: %d", got, len(want))
	}
	_, err := parse(t, example).Expand(pipeline.Facts{}, []string{"relaese"})
	if err == nil || !strings.Contains(err.Error(), `did you mean "release"?`) {
		t.Errorf("%v", err)
	}
	copies := expand(t, "version: 1\njobs: {a: {parallel: 2, matrix: {axes: {x: [p, q]}}, steps: [echo $MATRIX_X]}}", pipeline.Facts{})
	if diff := cmp.Diff([]string{"a (x=p, parallel=1)", "a (x=p, parallel=2)", "a (x=q, parallel=1)", "a (x=q, parallel=2)"}, names(copies)); diff != "" {
		t.Error(diff)
	}
	if got := p.Title(); got != "ci of " {
		t.Errorf("title %q", got)
	}
	included := expand(t, "version: 1\njobs: {a: {matrix: {include: [{x: 1, y: 2}, {y: 4, x: 3}]}, steps: [echo $MATRIX_X $MATRIX_Y]}}", pipeline.Facts{})
	if diff := cmp.Diff([]string{"a (x=1, y=2)", "a (x=3, y=4)"}, names(included)); diff != "" {
		t.Error(diff)
	}
}

func given(ended ...pipeline.Ended) *pipeline.Given {
	return &pipeline.Given{Project: "p", Trust: forge.TrustTrusted, Needs: ended}
}

func tree(name string) *forge.TreeRef {
	return &forge.TreeRef{Root: digest.RefOf([]byte(name)), Files: 1, Bytes: 2, Depth: 1}
}

// A job's specification holds what its file says, filled in, and nothing of it in a script.
func TestASpecificationIsWhatTheFileSays(t *testing.T) {
	p := expand(t, example, pipeline.Facts{SHA: "abc", Ref: "refs/heads/main", Branch: "main", Tag: "v1", Event: "manual"})
	g := given(pipeline.Ended{Job: "lint", Outcome: pipeline.Succeeded})
	g.Source, g.WithGit, g.Kept = tree("source"), tree("git"), tree("kept")
	g.Hashes = map[string]string{"go.sum\n**/go.mod": "h4sh"}
	d, err := p.Job(p.Nodes[2], g)
	if err != nil || d.Skip != "" {
		t.Fatal(d.Skip, err)
	}
	s := d.Spec
	if _, err := jobspec.Encode(*s); err != nil {
		t.Error(err)
	}
	got := []string{fmt.Sprint(s.Env), fmt.Sprintf("%v %s %v %v", s.Constraints.Labels, s.Constraints.OS, s.Resources.CPU, s.Resources.Memory), fmt.Sprint(s.Caches), s.Timeouts.Run.String()}
	for _, step := range s.Steps {
		got = append(got, fmt.Sprintf("%q %q %s %v %v %v", step.Name, step.Script, step.Dir, step.Env, step.Timeout, step.When))
	}
	for _, in := range s.Inputs {
		got = append(got, fmt.Sprint(in.Mount, " ", in.Mode, " ", in.Tree.Root == tree("git").Root))
	}
	for _, o := range s.Outputs {
		got = append(got, fmt.Sprint(o.Name, " ", o.Base, " ", o.Patterns, o.Required, " ", o.When))
	}
	want := []string{
		"[{CI true} {GIT_SHA abc} {GIT_REF refs/heads/main} {GIT_BRANCH main} {GIT_TAG v1} {GIT_EVENT manual} {MATRIX_GO 1.25} {MATRIX_OS linux}" +
			" {NEEDS_LINT_RESULT success} {CGO_ENABLED 0} {COMMIT abc} {TARGET linux/1.25}]",
		"[go-1.25] linux 2 2 GiB", "[{go-1.25-h4sh [home/.cache/go-build source/vendor] [go-1.25-] false}]", "20m0s",
		`"" "make" source [] 0s success`, `"test 1.25" "make test" source/sub [{V 1}] 10m0s success`, `"" "report" source [] 0s failure`,
		`"" "clean" source [] 0s always`, `"" "never" source [] 0s never`,
		"source cow true", "needs ro false", "bin source [bin/** !bin/*.tmp] true success",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Values of earlier jobs come as variables, and names with dashes can be named in expressions.
func TestOutputsOfNeededJobsReachALaterOne(t *testing.T) {
	p := expand(t, example, pipeline.Facts{Tag: "v1", Event: "manual"})
	version := p.Nodes[5]
	outputs, err := p.Outputs(version, given(), map[string]map[string]string{"ver": {"number": "1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Outputs(version, given(), nil); err == nil {
		t.Error("an output that no step has written is taken as empty")
	}
	d, err := p.Job(p.Nodes[6], given(
		pipeline.Ended{Job: "build-it", Outcome: pipeline.Succeeded},
		pipeline.Ended{Job: "version", Outcome: pipeline.Succeeded, Outputs: outputs},
		pipeline.Ended{Job: "lint", Outcome: pipeline.Skipped}))
	if err != nil || d.Skip != "" {
		t.Fatal(d.Skip, err)
	}
	env := fmt.Sprint(d.Spec.Env)
	for _, want := range []string{"{NEEDS_BUILD_IT_RESULT success}", "{NEEDS_VERSION_NUMBER v1.2}", "{NAME app-v1.2}", "{NEEDS_LINT_RESULT skipped}"} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not in %s", want, env)
		}
	}
	if s := d.Spec; s.Network != forge.NetworkHost || fmt.Sprint(s.Retry) != "{2 [exit timeout] [69 75] 0}" && s.Retry.Max != 2 || len(s.Secrets) != 2 || s.Secrets[1].File != "key.pem" {
		t.Errorf("%+v", s)
	}
}

// outcomes are the needs of a job, as they ended.
func outcomes(all ...pipeline.Outcome) *pipeline.Given {
	g := given()
	for i, o := range all {
		g.Needs = append(g.Needs, pipeline.Ended{Job: forge.JobKey('a' + rune(i)), Outcome: o})
	}
	return g
}

// Case B90: whether a job runs follows from its needs and its condition, in words.
func TestAJobRunsOrIsSkippedByItsNeedsAndItsCondition(t *testing.T) {
	const ok, bad, stop, skip = pipeline.Succeeded, pipeline.Failed, pipeline.Cancelled, pipeline.Skipped
	for _, c := range []struct {
		condition string
		needs     []pipeline.Outcome
		above     bool
		skip      string // part of the reason; empty: it runs
	}{
		{"", []pipeline.Outcome{ok, ok}, false, ""},
		{"", []pipeline.Outcome{ok, bad}, false, "b, which it needs, failed"},
		{"", []pipeline.Outcome{stop, ok}, false, "was cancelled"},
		{"", []pipeline.Outcome{ok, skip}, false, "was skipped"},
		{"true", []pipeline.Outcome{bad, ok}, false, "failed"}, // success() is meant where no status is named
		{"git.branch == 'main'", []pipeline.Outcome{ok, ok}, false, ""},
		{"git.branch != 'main'", []pipeline.Outcome{ok, ok}, false, "its condition is not true: git.branch != 'main'"},
		{"always()", []pipeline.Outcome{bad, stop}, false, ""},
		{"always()", []pipeline.Outcome{skip, skip}, false, ""},
		{"failure()", []pipeline.Outcome{ok, bad}, false, ""},
		{"failure()", []pipeline.Outcome{ok, ok}, false, "not true"},
		{"failure()", []pipeline.Outcome{skip, ok}, true, ""}, // further up
		{"cancelled()", []pipeline.Outcome{ok, stop}, false, ""},
		{"!cancelled()", []pipeline.Outcome{ok, bad}, false, ""},
		{"success() || needs.b.result == 'failure'", []pipeline.Outcome{ok, bad}, false, ""},
	} {
		head := "version: 1\njobs:\n  a: {steps: [x]}\n  b: {steps: [x]}\n  c:\n    needs: [a, b]\n    steps: [x]\n"
		if c.condition != "" {
			head += "    if: \"" + c.condition + "\"\n"
		}
		p := expand(t, head, pipeline.Facts{Branch: "main"})
		g := outcomes(c.needs...)
		g.Needs[0].Above = c.above
		d, err := p.Job(p.Nodes[2], g)
		if err != nil || (c.skip == "") != (d.Skip == "") || !strings.Contains(d.Skip, c.skip) {
			t.Errorf("if: %s after %v: skip %q, %v; want %q", c.condition, c.needs, d.Skip, err, c.skip)
		}
	}
	optional := expand(t, "version: 1\njobs: {a: {steps: [x]}, b: {needs: [{job: a, optional: true}], steps: [x]}}", pipeline.Facts{})
	for outcome, runs := range map[pipeline.Outcome]bool{ok: true, skip: true, bad: false, stop: false} {
		if d, err := optional.Job(optional.Nodes[1], outcomes(outcome)); err != nil || (d.Skip == "") != runs {
			t.Errorf("an optional need that ended with %v: %q, %v", outcome, d.Skip, err)
		}
	}
}

// Groups keep runs and jobs apart, by what git says.
func TestGroupsAreFilledIn(t *testing.T) {
	p := expand(t, example, pipeline.Facts{Ref: "refs/heads/main"})
	if group, replace, err := p.Group(); group != "ci-refs/heads/main" || !replace || err != nil {
		t.Error(group, replace, err)
	}
	p = expand(t, "version: 1\njobs: {a: {concurrency: \"x-${{ matrix.os }}\", matrix: {axes: {os: [l]}}, steps: [x]}}", pipeline.Facts{})
	if group, replace, err := p.GroupOf(p.Nodes[0]); group != "x-l" || replace || err != nil {
		t.Error(group, replace, err)
	}
}

// Patterns of hashFiles are known before anything runs.
func TestPatternsOfHashFilesAreListed(t *testing.T) {
	if diff := cmp.Diff([][]string{{"go.sum", "**/go.mod"}}, parse(t, example).Hashes()); diff != "" {
		t.Error(diff)
	}
	_, found := pipeline.Parse([]byte("version: 1\njobs: {a: {cache: {key: \"${{ hashFiles(git.sha) }}\", paths: [~/a]}, steps: [x]}}"))
	if len(found) != 1 || !strings.Contains(found[0].What, "hashFiles takes patterns") {
		t.Errorf("%v", found)
	}
}
