package archtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/archtest"
)

// A want is a violation that a bad example promises, written on its line as
//
//	want rule "part of the message"
type want struct {
	rule archtest.Rule
	file string
	line int
	what string
}

var wantComment = regexp.MustCompile(`want ([a-z]+) ("(?:[^"\\]|\\.)*")`)

// wants collects the promises of a module.
func wants(t *testing.T, dir string) []want {
	t.Helper()
	var found []want
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		number := 0
		for line := range strings.Lines(string(data)) {
			number++
			for _, match := range wantComment.FindAllStringSubmatch(line, -1) {
				what, err := strconv.Unquote(match[2])
				if err != nil {
					return fmt.Errorf("%s:%d: %w", rel, number, err)
				}
				found = append(found, want{archtest.Rule(match[1]), filepath.ToSlash(rel), number, what})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEveryRuleFindsItsBadExamples runs the rules over a module that breaks
// each of them, one subtest a rule. What is promised must be found, and what
// is found must have been promised.
func TestEveryRuleFindsItsBadExamples(t *testing.T) {
	const dir = "testdata/bad"
	violations, err := archtest.Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	promised := wants(t, dir)
	for _, rule := range archtest.Rules() {
		if rule == archtest.RuleSize {
			continue // its examples are long, and made in sizes_test.go
		}
		t.Run(string(rule), func(t *testing.T) {
			examples := 0
			for _, w := range promised {
				if w.rule != rule {
					continue
				}
				examples++
				at := slices.IndexFunc(violations, w.met)
				if at < 0 {
					t.Errorf("%s:%d: nothing found, want %s %q", w.file, w.line, w.rule, w.what)
					continue
				}
				violations = slices.Delete(violations, at, at+1)
			}
			if examples == 0 {
				t.Error("the rule has no bad example: a rule that cannot fail is no rule")
			}
		})
	}
	for _, v := range violations {
		t.Errorf("not promised: %v", v)
	}
}

func (w want) met(v archtest.Violation) bool {
	return v.Rule == w.rule && v.File == w.file && v.Line == w.line && strings.Contains(v.What, w.what)
}

func TestNearMissesBreakNoRule(t *testing.T) {
	violations, err := archtest.Check("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

func TestViolationsSayWhereWhatAndWhatToDo(t *testing.T) {
	violations, err := archtest.Check("testdata/bad")
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile(`^[^:]+\.(go|md):[1-9]\d*: [a-z]+: .+; .+$`)
	for _, v := range violations {
		if text := v.String(); !place.MatchString(text) || v.What == "" || v.Fix == "" {
			t.Errorf("message %q does not read file:line: rule: what; what to do", text)
		}
	}
	if !slices.IsSortedFunc(violations, func(a, b archtest.Violation) int { return strings.Compare(a.File, b.File) }) {
		t.Error("violations are not sorted by file")
	}
}

// tree writes a module into a temporary folder and returns its root.
func tree(t *testing.T, files map[string]string) string {
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
	goMod    = "module example.com/small\n\ngo 1.26\n"
	smallDoc = "// Package small is small.\npackage small\n"
	smallRow = "| Package | Kind | What it is | Ours | Others |\n|---|---|---|---|---|\n| `small` | — | is small | — | |\n"
)

func TestATreeWithoutTableIsAViolation(t *testing.T) {
	for name, doc := range map[string]string{
		"no file":     "",
		"no table":    "# Architecture\n\nWords only.\n",
		"empty table": "| Package | Kind | What it is | Ours | Others |\n|---|---|---|---|---|\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"go.mod": goMod, "small/small.go": smallDoc}
			if doc != "" {
				files["docs/architecture.md"] = doc
			}
			violations, err := archtest.Check(tree(t, files))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(violations, func(v archtest.Violation) bool { return v.Rule == archtest.RuleTable }) {
				t.Errorf("got %v, want a %s violation", violations, archtest.RuleTable)
			}
		})
	}
}

func TestATreeThatCannotBeExaminedIsAnError(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no go.mod":      {"small/small.go": smallDoc},
		"no module line": {"go.mod": "go 1.26\n", "small/small.go": smallDoc},
		"no Go files":    {"go.mod": goMod},
		"bad syntax":     {"go.mod": goMod, "small/small.go": "package small\n\nfunc {\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if violations, err := archtest.Check(tree(t, files)); err == nil {
				t.Errorf("got %v and no error", violations)
			}
		})
	}
}
