package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// parse reads a file that has to be good.
func parse(t *testing.T, text string) *pipeline.File {
	t.Helper()
	f, found := pipeline.Parse([]byte(text))
	if f == nil {
		t.Fatalf("%v", found)
	}
	return f
}

// steps is a job's body where only the head matters.
const steps = "    steps: [make]\n"

// wrong maps a file's text to what is told of it: place, code and a part of the sentence or the hint.
var wrong = []struct {
	name, text string
	want       []string
}{
	{"empty", "", []string{"0:0 FY1006 no pipeline in it"}},
	{"comments alone", "# soon\n", []string{"0:0 FY1006 forgeyard init"}},
	{"not UTF-8", "version: 1\nname: \xff\n", []string{"2:7 FY1001 not UTF-8"}},
	{"tabs", "version: 1\njobs:\n\ta: 1\n", []string{"3:1 FY1001 no tabs"}},
	{"not closed", "version: [1\n", []string{"2:1 FY1001 not YAML"}},
	{"a list", "- a\n", []string{"1:1 FY1004 not a list"}},
	{"two documents", "version: 1\njobs: {a: {steps: [b]}}\n---\nversion: 1\n", []string{"4:1 FY1001 more than one document"}},
	{"no jobs", "version: 1\n", []string{`1:1 FY1006 "jobs" is missing`}},
	{"no version", "jobs: {a: {steps: [b]}}\n", []string{`1:1 FY1006 "version" is missing`}},
	{"another version", "version: 2\njobs: {a: {steps: [b]}}\n", []string{`1:10 FY1005 known are 1`}},
	{"a job without steps", "version: 1\njobs: {a: {name: x}}\n", []string{`2:11 FY1006 "steps" is missing`}},
	{
		"typing errors", "version: 1\njobs:\n  a:\n    ruins-on: x\n    tiemout: 5m\n    steps:\n      - { rum: make }\n",
		[]string{`4:5 FY1002 "ruins-on" is not known`, `5:5 FY1002 did you mean "timeout"?`, `7:9 FY1006 "run" is missing`, `7:11 FY1002 did you mean "run"?`},
	},
	{"a key twice", "version: 1\njobs:\n  a:\n" + steps + "    steps: [b]\n", []string{"5:5 FY1003 first on line 4"}},
	{"a job twice", "version: 1\njobs:\n  a:\n" + steps + "  a:\n" + steps, []string{"5:3 FY1003 first on line 3"}},
	{"minutes without a unit", "version: 1\njobs:\n  a:\n    timeout: \"5\"\n" + steps, []string{"4:14 FY1005 write 5m if minutes are meant"}},
	{"too long a time", "version: 1\njobs:\n  a:\n    timeout: 200h\n" + steps, []string{"4:14 FY1005 not within 1s and 168h"}},
	{"yes is not true", "version: 1\njobs:\n  a:\n    allow_failure: yes\n" + steps, []string{"4:20 FY1005 write true or false"}},
	{"nothing where a text belongs", "version: 1\njobs:\n  a:\n    name:\n" + steps, []string{"4:10 FY1004 no value here"}},
	{"an unknown need", "version: 1\njobs:\n  build:\n" + steps + "  test:\n    needs: biuld\n" + steps, []string{`6:12 FY1008 did you mean "build"?`}},
	{"itself", "version: 1\njobs:\n  a:\n    needs: a\n" + steps, []string{"4:12 FY1009 needs itself"}},
	{
		"a circle", "version: 1\njobs:\n  a:\n    needs: c\n" + steps + "  b:\n    needs: a\n" + steps + "  c:\n    needs: [b]\n" + steps,
		[]string{"7:12 FY1009 a → c → b → a"},
	},
	{"twice needed", "version: 1\njobs:\n  a:\n" + steps + "  b:\n    needs: [a, a]\n" + steps, []string{"6:16 FY1003 needed twice"}},
	{"an empty matrix", "version: 1\njobs:\n  a:\n    matrix: {axes: {go: [1.20]}, exclude: [{go: 1.20}]}\n    steps: [echo $MATRIX_GO]\n", []string{"4:13 FY1005 no legs"}},
	{"no values", "version: 1\njobs:\n  a:\n    matrix: {axes: {go: []}}\n    steps: [echo $MATRIX_GO]\n", []string{`4:21 FY1005 no values`}},
	{"an exclude that excludes nothing", "version: 1\njobs:\n  a:\n    matrix: {axes: {go: [1.20, 1.2]}, exclude: [{go: \"1.200\"}]}\n    steps: [echo $MATRIX_GO]\n", []string{"4:54 FY1008 no value \"1.200\""}},
	{"a part of a leg", "version: 1\njobs:\n  a:\n    matrix: {axes: {go: [a], os: [b]}, include: [{go: c}]}\n    steps: [echo $MATRIX_GO $MATRIX_OS]\n", []string{"4:50 FY1006 the axes are go, os"}},
	{
		"too many legs", "version: 1\njobs:\n  a:\n    matrix: {axes: {x: [" + numbers(17) + "], y: [" + numbers(16) + "]}}\n    steps: [echo $MATRIX_X $MATRIX_Y]\n",
		[]string{"4:13 FY1010 more than 256 legs"},
	},
	{"an unknown name", "version: 1\njobs:\n  a:\n    if: git.brnach == 'main'\n" + steps, []string{`4:9 FY1011 did you mean "git.branch"?`}},
	{"an axis that is not there", "version: 1\njobs:\n  a:\n    if: matrix.go == 'x'\n" + steps, []string{`4:9 FY1011 "matrix.go" is not known`}},
	{"a job that is not needed", "version: 1\njobs:\n  a:\n" + steps + "  b:\n    if: needs.a.result == 'success'\n" + steps, []string{`6:9 FY1011 "needs.a.result" is not known`}},
	{"no condition", "version: 1\njobs:\n  a:\n    if: git.branch\n" + steps, []string{"4:9 FY1011 git.branch != ''"}},
	{"a template as a condition", "version: 1\njobs:\n  a:\n    if: ${{ git.branch == 'main' }}\n" + steps, []string{"4:9 FY1011 takes no ${{"}},
	{"not an expression", "version: 1\njobs:\n  a:\n    if: \"git.branch = 'x'\"\n" + steps, []string{"4:21 FY1011 does not compile"}},
	{"an expression in a script", "version: 1\njobs:\n  a:\n    steps:\n      - run: echo ${{ git.branch }}\n", []string{"5:19 FY1011 let the value come in a variable"}},
	{"an open template", "version: 1\nenv: {A: \"${{ git.sha\"}\njobs:\n  a:\n" + steps, []string{"2:11 FY1011 close it"}},
	{"needs in the file's env", "version: 1\nenv: {A: \"${{ matrix.go }}\"}\njobs:\n  a:\n" + steps, []string{`2:15 FY1011 "matrix.go" is not known`}},
	{"a variable of ours", "version: 1\nenv: {FORGEYARD_JOB: x, 1A: y}\njobs:\n  a:\n" + steps, []string{"2:7 FY1005 given by the agent", "2:25 FY1005 no digit"}},
	{
		"what comes later", "version: 1\ninputs: {}\njobs:\n  a:\n    image: debian\n    network: egress\n    services: {}\n" + steps,
		[]string{`2:1 FY1007 "inputs" cannot be used yet`, `5:5 FY1007 "image"`, `6:14 FY1007 "egress"`, `7:5 FY1007 "services"`},
	},
	{"paths that lead out", "version: 1\njobs:\n  a:\n    artifacts: {name: x, paths: [../a]}\n    cache: {key: k, paths: [/tmp, ~/..]}\n    steps: [{run: a, dir: ../..}]\n", []string{
		"4:34 FY1005 no pattern", "5:29 FY1005 no folder", "5:35 FY1005 no folder", "6:27 FY1005 no folder",
	}},
	{"an artifact of our name", "version: 1\njobs:\n  a:\n    artifacts: [{name: forgeyard.outputs, paths: a}, {name: b, paths: a}, {name: b, paths: c}]\n" + steps, []string{"4:24 FY1005 are ours", "4:82 FY1003 two artifacts"}},
	{"two steps of one id", "version: 1\njobs:\n  a:\n    steps: [{id: x, run: a}, {id: x, run: b}]\n", []string{`4:35 FY1003 two steps "x"`}},
	{"an output of no step", "version: 1\njobs:\n  a:\n    outputs: {v: \"${{ steps.ver.v }}\"}\n" + steps, []string{`4:23 FY1011 "steps.ver.v" is not known`}},
	{"names that differ by a dash", "version: 1\njobs:\n  a-b:\n" + steps + "  a_b:\n" + steps + "  c:\n    needs: [a-b, a_b]\n" + steps, []string{"8:18 FY1003 a dash counts as an underscore"}},
	{"an alias of nothing", "version: 1\njobs:\n  a: *b\n", []string{"3:6 FY1001 not YAML"}},
	{"an alias round about", "version: 1\njobs: &j\n  a:\n    steps: [b]\n    needs: [{job: *j}]\n", []string{"5:19 FY1004 not keys"}},
	{"a merge of a text", "version: 1\nx-a: &a text\njobs:\n  a:\n    <<: *a\n" + steps, []string{"5:9 FY1012 only keys can be merged"}},
	{"a tag", "version: 1\njobs:\n  a:\n    name: !!binary aGk=\n" + steps, []string{"4:11 FY1012 no meaning"}},
	{"a bad trigger", "version: 1\non: { pusch: {} , schedule: [{cron: daily}] }\njobs:\n  a:\n" + steps, []string{`2:7 FY1002 did you mean "push"?`, `2:37 FY1005 no time`}},
	{"a secret without a name", "version: 1\njobs:\n  a:\n    secrets: {TOKEN: \"a b\"}\n" + steps, []string{"4:22 FY1005 no name of a secret"}},
	{"bad shell", "version: 1\njobs:\n  a:\n    steps: [{run: a, shell: fish}]\n", []string{"4:29 FY1005 known are bash, sh, python"}},
	{"negative retries", "version: 1\njobs:\n  a:\n    retry: -1\n" + steps, []string{"4:12 FY1005 from 0 to 10"}},
	{"zero as an exit code", "version: 1\njobs:\n  a:\n    allow_failure: {exit: [0]}\n" + steps, []string{"4:28 FY1005 from 1 to 255"}},
}

func numbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return strings.Join(all, ", ")
}

// Cases B92, B93: whatever is wrong with a file is told with its place, all of it at once, and with what to do.
func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	for _, c := range wrong {
		t.Run(c.name, func(t *testing.T) {
			f, found := pipeline.Parse([]byte(c.text))
			if f != nil {
				t.Fatal("it is taken as good")
			}
			var got []string
			for _, p := range found {
				got = append(got, fmt.Sprintf("%d:%d %s %s; %s", p.At.Line, p.At.Column, p.Code, p.What, p.Hint))
			}
			ok := len(got) == len(c.want)
			for i := 0; ok && i < len(got); i++ {
				head, part, _ := strings.Cut(c.want[i], " FY")
				code, part, _ := strings.Cut(part, " ")
				ok = strings.HasPrefix(got[i], head+" FY"+code+" ") && strings.Contains(got[i], part)
			}
			if !ok {
				t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Case B93: a scalar is the text that was written, whatever YAML would make of it.
func TestScalarsKeepTheirText(t *testing.T) {
	f := parse(t, "\xef\xbb\xbfversion: 1\r\non: push\r\nenv: {A: 1.20, B: 012, C: no, D: 0x10, E: 1e3, F: ~no, G: \"\", H: on, I: 2026-11-30}\r\njobs:\r\n  a:\r\n    matrix: {axes: {go: [1.20, \"1.2\", 3.10]}}\r\n    steps: [echo $MATRIX_GO]\r\n")
	var got []string
	for _, v := range f.Env {
		got = append(got, v.Name+"="+v.Value.Value)
	}
	for _, v := range f.Jobs[0].Matrix.Axes[0].Values {
		got = append(got, v.Value)
	}
	want := []string{"A=1.20", "B=012", "C=no", "D=0x10", "E=1e3", "F=~no", "G=", "H=on", "I=2026-11-30", "1.20", "1.2", "3.10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Case B92: anchors, aliases and merges mean what YAML says; a key of one's own goes before a merged one.
func TestAnchorsAndMergesAreFollowed(t *testing.T) {
	f := parse(t, `version: 1
x-one: &one { timeout: 1m, env: { A: one } }
x-two: &two { timeout: 2m, name: two }
x-steps: &build
  - make
jobs:
  single: { <<: *one, steps: *build }
  several: { <<: [*two, *one], steps: *build }
  own: { timeout: 3m, <<: *one, steps: [ { <<: { run: a }, name: b } ] }
`)
	var got []string
	for _, j := range f.Jobs {
		got = append(got, fmt.Sprintf("%s %v %q %d %s", j.Key, j.Timeout, j.Name.Value, len(j.Env), j.Steps[0].Run.Value))
	}
	want := []string{`single 1m0s "" 1 make`, `several 2m0s "two" 1 make`, `own 3m0s "" 1 a`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Case B93: a hostile file costs what it weighs.
func TestBombsAreBounded(t *testing.T) {
	aliases := "version: 1\nx-a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		aliases += fmt.Sprintf("x-%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", 'a'+i), 10), ", "))
	}
	aliases += "jobs:\n  a:\n    steps: *j\n"
	merged := "version: 1\nx-a: &a {A: b}\n"
	for i := range 9 {
		merged += fmt.Sprintf("x-%c: &%c {<<: [%s]}\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", 'a'+i), 10), ", "))
	}
	merged += "env: *j\njobs:\n  a:\n" + steps
	many := "version: 1\njobs:\n"
	for i := range pipeline.MaxJobs + 1 {
		many += fmt.Sprintf("  j%d: {steps: [a]}\n", i)
	}
	for name, text := range map[string]string{
		"aliases": aliases, "merges": merged, "jobs": many,
		"lists":   "version: 1\njobs: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
		"keys":    "version: 1\njobs: " + strings.Repeat("{a: ", 2000) + "1" + strings.Repeat("}", 2000) + "\n",
		"bytes":   "version: 1\njobs: {a: {steps: [\"" + strings.Repeat("x", pipeline.MaxFileBytes) + "\"]}}\n",
		"script":  "version: 1\njobs: {a: {steps: [\"" + strings.Repeat("x", forge.MaxScript+1) + "\"]}}\n",
		"an if":   "version: 1\njobs: {a: {if: \"" + strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500) + "\", steps: [a]}}\n",
		"a sum":   "version: 1\njobs: {a: {if: \"" + strings.Repeat("1 + ", 2000) + "1 == 1\", steps: [a]}}\n",
		"unknown": "version: 1\n" + strings.Repeat("y", 70_000) + ": 1\njobs: {a: {steps: [a]}}\n",
	} {
		f, found := pipeline.Parse([]byte(text))
		if f != nil || len(found) == 0 || len(found) > pipeline.MaxProblems+1 || len(found.Error()) > 32<<10 {
			t.Errorf("%s: %d problems: %.200s", name, len(found), found.Error())
		}
	}
}

// A problem is shown with the line that it is about.
func TestAProblemIsShownUnderItsLine(t *testing.T) {
	text := []byte("version: 1\njobs:\n  a:\n    needs: b\n" + steps)
	_, found := pipeline.Parse(text)
	want := ".forgeyard.yml:4:12: there is no job \"b\" [FY1008]\n 4 |     needs: b\n   |            ^\n"
	if got := found[0].Show(".forgeyard.yml", text); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// What is only advice keeps nothing from running.
func TestAnAxisThatNothingReadsIsAdvice(t *testing.T) {
	f, found := pipeline.Parse([]byte("version: 1\njobs:\n  a:\n    matrix: {axes: {go: [a], os: [b]}}\n    steps: [echo $MATRIX_GO]\n"))
	if f == nil || len(found) != 1 || !found[0].Advice() || !strings.Contains(found[0].What, `"os"`) {
		t.Errorf("%v", found)
	}
	if slices.ContainsFunc(found.Wrong(), pipeline.Problem.Advice) {
		t.Error("advice is an error")
	}
}

// FuzzParse: no text makes the parser panic or tell too much, and what is good can be planned.
func FuzzParse(f *testing.F) {
	for _, c := range wrong {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, found := pipeline.Parse(text)
		if len(found) > pipeline.MaxProblems+1 {
			t.Fatalf("%d problems", len(found))
		}
		for _, p := range found {
			_ = p.Show("f", text)
		}
		if file == nil {
			return
		}
		plan, err := file.Expand(pipeline.Facts{Event: "manual"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range plan.Nodes {
			g := &pipeline.Given{Project: "p", Trust: forge.TrustTrusted}
			for _, need := range n.Needs() {
				g.Needs = append(g.Needs, pipeline.Ended{Job: need.Job, Outcome: pipeline.Succeeded})
			}
			_, _ = plan.Job(n, g)
		}
	})
}
