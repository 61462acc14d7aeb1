package display

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAFailureIsToldAgainWithItsLastLines(t *testing.T) {
	var tail Tail
	for i := range 25 {
		tail.Add(fmt.Sprint("line ", i+1))
	}
	f := Failure{Title: "test (1.26)", Step: "unit", Why: "it ended with exit code 3", All: "forgeyard logs 01JB4Z"}
	f.Lines, f.Cut = tail.Lines()
	want := "\n✗ test (1.26), step unit: it ended with exit code 3\n│ …\n"
	for i := 6; i <= 25; i++ {
		want += fmt.Sprintf("│ line %d\n", i)
	}
	want += "all of it: forgeyard logs 01JB4Z\n"
	if diff := cmp.Diff(want, strings.Join((Style{}).Failure(f), "\n")+"\n"); diff != "" {
		t.Error(diff)
	}
}

func TestATailKeepsLittleOfLongLines(t *testing.T) {
	var tail Tail
	tail.Add("\x1b[31m" + strings.Repeat("é", 10_000))
	lines, cut := tail.Lines()
	if cut || len(lines) != 1 || len(lines[0]) > tailBytes+10 || !strings.HasSuffix(lines[0], "\x1b[0m") {
		t.Errorf("%d bytes, cut %t", len(lines[0]), cut)
	}
	clean(t, nil, lines[0])
}

func TestRemarksAreToldAgainOnceEach(t *testing.T) {
	var n Notes
	hm := Note{Level: Warning, File: "a.go", Line: 3, Text: "hm"}
	for _, job := range []string{"a", "b", "b", "c", "d", "e"} {
		n.Add(job, hm)
	}
	n.Add("a", Note{Level: Notice, Text: "seen where it stands"})
	n.Add("b", Note{Level: Error, Text: "boom"})
	want := "\nRemarks:\nerror: boom [b]\nwarning: a.go:3: hm [a, b, c and 2 more]\n"
	if diff := cmp.Diff(want, strings.Join((Style{}).Notes(&n, true), "\n")+"\n"); diff != "" {
		t.Error(diff)
	}
	if got := (Style{}).Notes(&n, false); got[2] != "error: boom" {
		t.Errorf("%q", got)
	}
	if got := (Style{}).Notes(&Notes{}, true); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

func TestOfManyRemarksErrorsAreKept(t *testing.T) {
	var n Notes
	for i := range 100 {
		n.Add("a", Note{Level: Warning, Text: fmt.Sprint("warning ", i)})
	}
	for i := range 40 {
		n.Add("a", Note{Level: Error, Text: fmt.Sprint("error ", i)})
	}
	lines := (Style{}).Notes(&n, false)
	if len(lines) != 2+maxNotes+1 || lines[2] != "error: error 0" || lines[1+maxNotes] != "error: error 29" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	if want := "110 more remarks stand in the logs"; lines[len(lines)-1] != want {
		t.Errorf("%q, want %q", lines[len(lines)-1], want)
	}
}

func TestStepsHaveHeadings(t *testing.T) {
	s := Style{}
	if got := s.StepBegins("a | ", 2, 3, "unit"); got != "a | ── 2/3 unit" {
		t.Error(got)
	}
	if got := s.StepBegins("", 1, 1, "unit"); got != "── unit" {
		t.Error(got)
	}
	if _, ok := s.StepEnds("", "unit", "", time.Millisecond); ok {
		t.Error("something is said of a step that was quick and good")
	}
	if got, _ := s.StepEnds("a | ", "unit", "exit code 3", time.Millisecond); got != "a | ✗ unit: exit code 3 (0.0s)" {
		t.Error(got)
	}
	if got, _ := s.StepEnds("", "unit", "", time.Minute); got != "✓ unit (1m00s)" {
		t.Error(got)
	}
}
