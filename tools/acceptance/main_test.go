package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestArgumentsAndFilesThatCannotBeUsed(t *testing.T) {
	dir := write(t, map[string]string{"long.tsv": rowHeader + "\n" + strings.Repeat("x", maxLine+1) + "\n"})
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"unknown flag", []string{"-nope"}, "flag provided but not defined: -nope"},
		{"two files", []string{"a.json", "b.json"}, "one file at most"},
		{"no command", []string{"-exec"}, "-exec needs a command"},
		{"no rows", []string{"-tsv", filepath.Join(dir, "none.tsv")}, "read rows: open "},
		{"a row without end", []string{"-tsv", filepath.Join(dir, "long.tsv")}, "token too long"},
		{"requirements that are a folder", []string{"-tsv", "", "-spec", dir}, "read requirements: "},
		{"no test output", []string{"-tsv", "", filepath.Join(dir, "none.json")}, "open test output: open "},
		{"no such command", []string{"-tsv", "", "-exec", filepath.Join(dir, "none")}, "run "},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(test.args, strings.NewReader(""), &stdout, &stderr); status != exitUsage {
				t.Errorf("exit status %d", status)
			}
			if !strings.Contains(stderr.String(), test.want) {
				t.Errorf("want %q in %q", test.want, stderr.String())
			}
			if stdout.Len() > 0 {
				t.Errorf("printed %q", stdout.String())
			}
		})
	}
}

// TestCommandsCountWithTheirExitStatus runs the go command itself, which is
// sure to be there.
func TestCommandsCountWithTheirExitStatus(t *testing.T) {
	dir := write(t, map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
	})
	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"passes", []string{"go", "-C", dir, "test", "-json", "."}, exitHeld, "1 passed, 0 failed, 0 skipped\n"},
		{"ends without output", []string{"go", "-C", dir, "test", "-json", "-no-such-flag"}, exitFailed, "0 passed, 1 failed, 0 skipped\n"},
		{"tests what is not there", []string{"go", "-C", dir, "test", "-json", "./none"}, exitFailed, "0 passed, 1 failed, 0 skipped\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := run(append([]string{"-tsv", "", "-module", "m", "-exec"}, test.args...), nil, &stdout, &stderr)
			if status != test.status || !strings.HasSuffix(stdout.String(), test.want) {
				t.Errorf("exit status %d, want %d and %q at the end of\n%s%s", status, test.status, test.want, stdout.String(), stderr.String())
			}
		})
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-h"}, nil, &stdout, &stderr); status != exitHeld || !strings.Contains(stderr.String(), "-tsv") {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
}
