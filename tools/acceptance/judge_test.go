package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a folder with the given files and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	testSource = "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\nfunc (s) TestMethod() {}\n"
	testSpec   = "id\tsource\tmust hold\n07-A01\t07§1\tone\n07-A02\t07§1\ttwo\n07-A03\t07§1\tthree\n"
)

// accept runs the command over rows and a stream.
func accept(t *testing.T, rows, stream string) (status int, out string) {
	t.Helper()
	dir := write(t, map[string]string{
		"rows.tsv":             rows,
		"spec.tsv":             testSpec,
		"internal/p/p_test.go": testSource,
		"internal/q/q_test.go": testSource,
	})
	var stdout bytes.Buffer
	status = run([]string{"-root", dir, "-tsv", filepath.Join(dir, "rows.tsv"), "-spec", filepath.Join(dir, "spec.tsv")},
		strings.NewReader(stream), &stdout, io.Discard)
	return status, stdout.String()
}

func TestRowsAreHeldMissingStaleOrWrong(t *testing.T) {
	all := events("start", "run TestA", "run TestA/x", "pass TestA/x", "pass TestA", "run TestB", "pass TestB", "pass")
	for _, test := range []struct {
		name   string
		row    string
		stream string
		want   string
	}{
		{"held", "07-A01\tinternal/p\tTestA\tpure\tdelete the check", all, "held    07-A01   internal/p TestA (pure)\n"},
		{"held by a subtest", "07-A01\tinternal/p\tTestA/x\treal\tmutant:no-check", all, "held    07-A01   internal/p TestA/x (real)\n"},
		{
			"failed", "07-A01\tinternal/p\tTestA\tpure\tx",
			events("start", "run TestA", "fail TestA", "fail"), "missing 07-A01   internal/p TestA (pure): the test failed\n",
		},
		{
			"skipped", "07-A01\tinternal/p\tTestA\tpure\tx",
			events("start", "run TestA", "skip TestA", "pass"), "missing 07-A01   internal/p TestA (pure): the test skipped\n",
		},
		{
			"did not finish", "07-A01\tinternal/p\tTestA\tpure\tx",
			events("start", "run TestA", "fail"), "missing 07-A01   internal/p TestA (pure): the test failed\n",
		},
		{
			"left out", "07-A01\tinternal/p\tTestA\tpure\tx",
			events("start", "run TestB", "pass TestB", "pass"), "missing 07-A01   internal/p TestA (pure): the test did not run\n",
		},
		{"package left out", "07-A01\tinternal/q\tTestA\tpure\tx", all, "missing 07-A01   internal/q TestA (pure): its package did not run\n"},
		{"no such test", "07-A01\tinternal/p\tTestGone\tpure\tx", all, "stale   07-A01   internal/p TestGone (pure): there is no such test\n"},
		{"a method is no test", "07-A01\tinternal/p\tTestMethod\tpure\tx", all, "stale   07-A01   internal/p TestMethod (pure): there is no such test\n"},
		{"no such package", "07-A01\tinternal/gone\tTestA\tpure\tx", all, "stale   07-A01   internal/gone TestA (pure): there is no such test\n"},
		{"no such subtest", "07-A01\tinternal/p\tTestA/gone\tpure\tx", all, "stale   07-A01   internal/p TestA/gone (pure): TestA has no such subtest\n"},
		{"no such id", "07-Z99\tinternal/p\tTestA\tpure\tx", all, "has no requirement \"07-Z99\"\n"},
		{"no such tier", "07-A01\tinternal/p\tTestA\tfast\tx", all, "wrong   line 3: tier \"fast\" is neither pure nor real\n"},
		{"nothing broke it", "07-A01\tinternal/p\tTestA\tpure\t", all, "wrong   line 3: broken_by is empty"},
		{"no name of a mutant", "07-A01\tinternal/p\tTestA\tpure\tmutant:", all, "wrong   line 3: broken_by is empty"},
		{"too few columns", "07-A01\tinternal/p\tTestA\tpure", all, "wrong   line 3: 4 columns, not 5"},
		{"no test", "07-A01\tinternal/p\t\tpure\tx", all, "wrong   line 3: id, package and test may not be empty\n"},
		{
			"twice", "07-A01\tinternal/p\tTestA\tpure\tx\n07-A01\tinternal/p\tTestA\tpure\ty", all,
			"wrong   line 4: the row stands at line 3 already\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out := accept(t, "# The rows.\n"+rowHeader+"\n"+test.row+"\n", test.stream)
			if !strings.Contains(out, test.want) {
				t.Errorf("want %q in\n%s", test.want, out)
			}
			if isHeld := strings.HasPrefix(test.want, held); (status == exitHeld) != isHeld {
				t.Errorf("exit status %d", status)
			}
			if lines := strings.Split(strings.TrimSpace(out), "\n"); !strings.HasSuffix(lines[len(lines)-1], " skipped") {
				t.Errorf("the last line is %q", lines[len(lines)-1])
			}
		})
	}
}

func TestARequirementIsHeldWhenAllOfItsRowsAre(t *testing.T) {
	stream := events("start", "run TestA", "pass TestA", "run TestB", "fail TestB", "fail")
	_, out := accept(t, rowHeader+"\n"+
		"07-A01\tinternal/p\tTestA\tpure\tx\n"+
		"07-A02\tinternal/p\tTestA\tpure\tx\n"+
		"07-A02\tinternal/p\tTestB\tpure\tx\n", stream)
	if want := "acceptance: 1 held by 2 rows, 1 missing, 0 stale, 0 wrong (of 3 requirements)\n"; !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
}

func TestRowsWithoutHeaderAreWrong(t *testing.T) {
	status, out := accept(t, "07-A01\tinternal/p\tTestA\tpure\tx\n", events("start", "run TestA", "pass TestA", "pass"))
	if status != exitFailed || !strings.Contains(out, "the first line must be the header") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

func TestIDsAreNotComparedWhereTheRequirementsAreNot(t *testing.T) {
	dir := write(t, map[string]string{"rows.tsv": rowHeader + "\nXX-1\tinternal/p\tTestA\tpure\tx\n"})
	var out bytes.Buffer
	status := run([]string{"-root", dir, "-tsv", filepath.Join(dir, "rows.tsv"), "-spec", filepath.Join(dir, "none.tsv")},
		strings.NewReader(events("start", "run TestA", "pass TestA", "pass")), &out, io.Discard)
	if status != exitHeld || !strings.Contains(out.String(), "ids were not compared") {
		t.Errorf("exit status %d:\n%s", status, out.String())
	}
}
