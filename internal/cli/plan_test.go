package cli_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

const planned = `version: 1
name: ci of ${{ git.branch }}
jobs:
  last: { needs: [release, test], if: always(), steps: [x] }
  release: { needs: test, if: "git.tag != ''", steps: [x] }
  announce: { needs: [release, test], steps: [x] }
  optional: { needs: [{ job: release, optional: true }], steps: [x] }
  test: { needs: build, name: "test ${{ matrix.os }}", matrix: { axes: { os: [a, b] } }, steps: [x] }
  build: { steps: [make], cache: { key: "${{ hashFiles('x') }}", paths: ~/c } }
  lint: { steps: [lint], name: look }
`

func TestPlanSaysWhatWouldRun(t *testing.T) {
	files(t, map[string]string{".forgeyard.yml": planned})
	r := newWorld(t).run("plan")
	r.want(t, 0, "", "no git repository here")
	var got []string
	for line := range strings.Lines(r.stdout) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"JOB TITLE STATE WHY OR DIGEST",
		"last - waits for test",
		"release - skipped its condition is not true: git.tag != ''",
		"announce - skipped release, which it needs, was skipped",
		"optional - starts b3:",
		"test (os=a) test a waits for build",
		"test (os=b) test b waits for build",
		"build - starts its digest hangs on files, by a cache key",
		"lint look starts b3:",
	}
	for i, line := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], line) {
			t.Fatalf("%s\nwant line %d: %s", r.stdout, i, line)
		}
	}
	newWorld(t).run("plan", "--tag", "v1", "--event", "tag").want(t, 0, "waits   for build", "")
	newWorld(t).run("plan", "liint").want(t, 64, "", `.forgeyard.yml: the pipeline has no job "liint"; did you mean "lint"?`)
	newWorld(t).run("plan", "--event", "pusch").want(t, 64, "", "use manual, push")
	if only := newWorld(t).run("plan", "build"); strings.Contains(only.stdout, "lint") {
		t.Errorf("more than was asked for:\n%s", only.stdout)
	}
}

func TestPlanAsksGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := files(t, map[string]string{".forgeyard.yml": planned, "sub/file": ""})
	for _, args := range [][]string{{"init", "-q", "-b", "trunk"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"}, {"tag", "v2"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	t.Chdir(dir + "/sub")
	r := newWorld(t).run("plan", "-o", "json", "release")
	r.want(t, 0, "", "")
	var run struct {
		File, Title, Branch, Tag string
		Dirty                    bool
		Jobs                     []struct{ Job, State string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &run); err != nil {
		t.Fatal(err, r.stdout)
	}
	if run.File != "../.forgeyard.yml" || run.Title != "ci of trunk" || run.Branch != "trunk" || run.Tag != "v2" || run.Dirty || len(run.Jobs) != 4 || run.Jobs[0].State != "waits" {
		t.Errorf("%s", r.stdout)
	}
	newWorld(t).run("plan", "--branch", "other", "-o", "json").want(t, 0, `"ci of other"`, "")
}

func TestPlanOfABadFileShowsItsProblems(t *testing.T) {
	files(t, map[string]string{".forgeyard.yml": "version: 1\njobs: {a: {stebs: [x]}}\n"})
	r := newWorld(t).run("plan")
	r.want(t, 64, "", `.forgeyard.yml:2:12: the key "stebs" is not known here; did you mean "steps"?`)
	r.want(t, 64, "", "2 problems to correct")
}

// Digests are of what jobs do: the same file gives the same, and another script another.
func TestDigestsOfPlansTellChangesApart(t *testing.T) {
	digest := func(script string) string {
		files(t, map[string]string{".forgeyard.yml": "version: 1\njobs: {a: {steps: [" + script + "]}}\n"})
		return newWorld(t).run("plan").stdout
	}
	if a, again, b := digest("make"), digest("make"), digest("make all"); a != again || a == b {
		t.Errorf("%s%s%s", a, again, b)
	}
}
