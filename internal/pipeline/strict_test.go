package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// told checks what is found in each text: one line for each problem, with a part of its place, sentence and hint.
func told(t *testing.T, cases map[string][]string) {
	t.Helper()
	for text, want := range cases {
		f, found := pipeline.Parse([]byte(text))
		if (f == nil) != (len(found.Wrong()) > 0) {
			t.Errorf("%s\na file and problems", text)
		}
		ok := len(found) == len(want)
		for i := 0; ok && i < len(want); i++ {
			place, part, _ := strings.Cut(want[i], " ")
			line := fmt.Sprintf("%d:%d %s; %s", found[i].At.Line, found[i].At.Column, found[i].What, found[i].Hint)
			ok = strings.HasPrefix(line, place+" ") && strings.Contains(line, part)
		}
		if !ok {
			t.Errorf("%s\ntold:\n%v\nwant:\n%s", clipped(text), found.Error(), strings.Join(want, "\n"))
		}
	}
}

func clipped(s string) string { return s[:min(len(s), 400)] }

// What follows from a mistake is not told as another one.
func TestAMistakeIsToldOnce(t *testing.T) {
	told(t, map[string][]string{
		"version: 1\njobs:\n  a:\n    matrix: {axes: {go: 1.2}}\n    steps: [{run: x, if: \"matrix.go == '1'\"}]\n":      {"4:25 must be a list here"},
		"version: 1\njobs:\n  a:\n    env: {A: [x]}\n    if: env.A == ''\n    steps: [x]\n":                              {"4:14 must be one value here"},
		"version: 1\njobs:\n  a:\n    steps: [{id: s, rum: x}]\n    outputs: {o: \"${{ steps.s.o }}\"}\n":                {`4:13 "run" is missing`, `4:21 did you mean "run"?`},
		"version: 1\njobs:\n  a: {outputs: [x], steps: [x]}\n  b: {needs: a, if: needs.a.outputs.x == '', steps: [x]}\n": {"3:16 names with values"},
	})
}

// What people write at first is answered with what they meant.
func TestHintsSayWhatWasMeant(t *testing.T) {
	const head = "version: 1\njobs:\n  a:\n"
	told(t, map[string][]string{
		head + "    if: !cancelled()\n    steps: [x]\n":                                                                           {"4:9 put the value into quotes"},
		head + "    artifacts: [{name: x, paths: [a, !b]}]\n    steps: [x]\n":                                                     {"4:38 put the value into quotes"},
		head + "    steps:\n      - echo \"a: b\"\n":                                                                              {"5:9 put the whole line into quotes"},
		head + "    steps:\n      - run: echo \"a: b\"\n":                                                                         {"5:21 behind a |"},
		head + "    if: matrix.go == ''\n    steps: [x]\n":                                                                        {"4:9 the job has no matrix"},
		head + "    if: needs.b.result == ''\n    steps: [x]\n":                                                                   {"4:9 the job needs nothing"},
		head + "    if: steps.b.x == ''\n    steps: [x]\n":                                                                        {"4:9 under outputs"},
		head + "    parallel: 2\n    outputs: {v: x}\n    steps: [x]\n  b: {needs: a, if: needs.a.outputs.v == '', steps: [x]}\n": {"7:21 several legs"},
		head + "    retry: {on: [timeout]}\n    steps: [x]\n":                                                                     {"3:3 no max"},
	})
}

// Places within a text are those of the file, and the text's own where they cannot be counted.
func TestPlacesAreRightInEveryKindOfText(t *testing.T) {
	const head = "version: 1\nx-a: &if git.branhc == 'x'\njobs:\n  a:\n    steps: [x]\n"
	told(t, map[string][]string{
		head + "    name: übung ${{ git.branhc }}\n":                     {"6:21 git.branch"},
		head + "    name: \"ü\t${{ git.branhc }}\"\n":                    {"6:11 one line", "6:18 git.branch"},
		head + "    name: 'it''s ${{ git.branhc }}'\n":                   {"6:11 git.branch"},
		head + "    name: |\n      a\n      ${{ git.branhc }}\n":         {"6:11 one line", "6:11 git.branch"},
		head + "    if: git.branch == 'x' &&\n      git.branhc == 'y'\n": {"6:9 git.branch"},
		head + "    if: *if\n":                                           {"6:9 git.branch"},
		head + "    env: {A: 'x${{ git.sha', B: \"${{ git.sah }}\"}\n":   {"6:16 never closed", `6:38 git.sha`},
	})
}

// Names that become one variable, or that forge would refuse in every run, are told with the file.
func TestWhatNoRunCouldPassIsToldWithTheFile(t *testing.T) {
	const head = "version: 1\njobs:\n  a:\n    steps: [x]\n"
	axes, read := "", ""
	for i := range forge.MaxAxes {
		axes += fmt.Sprintf("a%d: [x], ", i)
		read += fmt.Sprintf("MATRIX_A%d ", i)
	}
	env := ""
	for i := range forge.MaxEnv {
		env += fmt.Sprintf("      A%d: x\n", i)
	}
	script := strings.Repeat("x", forge.MaxScript)
	told(t, map[string][]string{
		head + "    outputs: {result: x}\n  b: {needs: a, steps: [x]}\n":                                                                       {"6:14 NEEDS_A_RESULT"},
		head + "    outputs: {x-y: x, x_Y: y}\n  b: {needs: a, steps: [x]}\n":                                                                  {"6:14 NEEDS_A_X_Y"},
		head + "    if: matrix.go == matrix.GO\n    matrix: {axes: {go: [x], GO: [y]}}\n":                                                      {"6:30 MATRIX_GO"},
		head + "    matrix: {include: [{\"a b\": x}]}\n":                                                                                       {"5:25 cannot be a name"},
		head + "    env: {X: \"" + read + "\"}\n    parallel: 2\n    matrix: {axes: {" + axes + "}}\n":                                         {"3:3 more than 16"},
		head + "    env: {A: $MATRIX_X}\n    artifacts: {name: o, paths: o}\n    matrix: {axes: {x: [a/b, a_b]}}\n":                            {"3:3 the same folder"},
		head + "    env: {A: $MATRIX_X}\n    artifacts: {name: o, paths: o}\n    matrix: {axes: {x: [a, " + strings.Repeat("b", 256) + "]}}\n": {"3:3 more than 255"},
		head + "    runner: gpu big\n":                                     {"3:3 gpu big"},
		head + "    runner: {os: \"Linux!\"}\n":                            {"3:3 Linux!"},
		head + "    env: {T: x}\n    secrets: {T: a/b}\n":                  {"3:3 also a plain variable"},
		head + "    cache: [{key: k, paths: ~/a}, {key: k, paths: ~/b}]\n": {"3:3 caches"},
		head + "    env:\n" + env:                                          {"3:3 env"},
		"version: 1\njobs:\n  a:\n    steps:\n" + "      - &x \"" + script + "\"\n" + strings.Repeat("      - *x\n", 4): {"3:3 bytes together"},
	})
	for _, good := range []string{
		head + "    runner: {labels: [\"${{ git.tag != '' ? 'big' : 'small' }}\", \"x-${{ git.branch }}\"], toolchains: [\"go@${{ git.tag }}\"]}\n",
		head + "    cache: [{key: \"${{ git.branch }}\", paths: ~/a}, {key: \"${{ git.sha }}\", paths: ~/b}]\n",
		"version: 1\nenv: {X: a}\ndefaults: {env: {X: b}}\njobs:\n  a:\n    env: {X: c}\n    if: env.X == 'c'\n    steps: [x]\n",
		"version: 1\njobs:\n  a.b-c:\n    outputs: {v.w-x: 1}\n    steps: [x]\n  d: {needs: a.b-c, if: needs.a.b-c.outputs.v.w-x == '1' && needs.a.b-c.result != '', steps: [x]}\n",
		"version: 1\njobs:\n  a:\n    matrix: {axes: {x-y: [\"1\"], x: [\"2\"], y: [\"3\"]}}\n    if: matrix.x-y == '1' && matrix.x == '2' && matrix.y == '3'\n    steps: [x]\n",
	} {
		told(t, map[string][]string{good: nil})
	}
}

// A job whose need failed is skipped, also where its variables are made of what the need would have given.
func TestAFailedNeedGivesEmptyOutputs(t *testing.T) {
	const text = "version: 1\njobs:\n  a: {outputs: {v: x}, steps: [x]}\n  b: {needs: a, env: {V: \"is ${{ needs.a.outputs.v }}\"}, steps: [x]}\n" +
		"  c: {needs: a, if: always(), env: {V: \"is ${{ needs.a.outputs.v }}\"}, steps: [x]}\n"
	p := expand(t, text, pipeline.Facts{})
	failed := given(pipeline.Ended{Job: "a", Outcome: pipeline.Failed})
	if d, err := p.Job(p.Nodes[1], failed); err != nil || d.Skip != "a, which it needs, failed" {
		t.Errorf("%+v %v", d, err)
	}
	d, err := p.Job(p.Nodes[2], failed)
	if err != nil || d.Spec == nil || !strings.Contains(fmt.Sprint(d.Spec.Env), "{V is }") {
		t.Errorf("%+v %v", d, err)
	}
}
