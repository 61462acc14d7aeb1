package pipeline_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

const twoSteps = "version: 1\njobs: {a: {matrix: {axes: {os: [linux, \"a/b\", \"..\"]}}, steps: [{id: one, run: echo $MATRIX_OS}, x, {id: two, run: y}]}}"

// Cases B70, B94: a value is exact, whatever it looks like, and what cannot be one is a named error.
func TestOutputsOfStepsAreExact(t *testing.T) {
	n := expand(t, twoSteps, pipeline.Facts{}).Nodes[0]
	got, err := n.StepValues(map[string][]byte{
		"0/output":       []byte("a=1\nb=x=y \n\na=2\r\nEOF=delimiter\nc=::set-output name=z::v\n"),
		"0/outputs/text": []byte("line 1\nNAME=x\n"),
		"1/output":       []byte("lost=yes\n"), // of a step without an id
		"2/output":       []byte("last=no line feed"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{
		"one": {"a": "2\r", "b": "x=y ", "EOF": "delimiter", "c": "::set-output name=z::v", "text": "line 1\nNAME=x\n"},
		"two": {"last": "no line feed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, file := range map[string]string{"no =": "text\n", "no name": "=x\n", "a bad name": "a b=x\n", "zero": "a=\x00\n", "no UTF-8": "a=\xff\n"} {
		var wrong *pipeline.OutputError
		if _, err := n.StepValues(map[string][]byte{"2/output": []byte(file)}); !errors.As(err, &wrong) || wrong.Step != 3 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A leg's artifacts stand in a folder of their own, which no value can leave.
func TestArtifactsOfLegsStandApart(t *testing.T) {
	p := expand(t, twoSteps, pipeline.Facts{})
	var got []string
	for _, n := range p.Nodes {
		got = append(got, pipeline.KeptAt(n, "bin"))
	}
	got = append(got, pipeline.KeptAt(expand(t, "version: 1\njobs: {b: {steps: [x]}}", pipeline.Facts{}).Nodes[0], "bin"))
	if diff := cmp.Diff([]string{"a/linux/bin", "a/a_b/bin", "a/_../bin", "b/bin"}, got); diff != "" {
		t.Error(diff)
	}
}

// What a job may fail with is its author's word, and never our fault.
func TestAllowedFailuresAreThoseOfTheAuthor(t *testing.T) {
	any := expand(t, "version: 1\njobs: {a: {allow_failure: true, steps: [x]}}", pipeline.Facts{}).Nodes[0].Job
	some := expand(t, "version: 1\njobs: {a: {allow_failure: {exit: [42, 7]}, steps: [x]}}", pipeline.Facts{}).Nodes[0].Job
	for _, c := range []struct {
		class     forge.Class
		exit      uint8
		any, some bool
	}{{forge.ExitCode, 42, true, true}, {forge.ExitCode, 1, true, false}, {forge.TimedOut, 0, true, false}, {forge.Lost, 0, false, false}, {forge.Cancelled, 0, false, false}} {
		if any.Allows(c.class, c.exit) != c.any || some.Allows(c.class, c.exit) != c.some {
			t.Errorf("%v %d", c.class, c.exit)
		}
	}
}
