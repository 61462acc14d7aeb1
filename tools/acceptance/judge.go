package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A verdict on one row.
type verdict struct {
	row
	state string // held, missing, stale or wrong
	why   string
}

// The states of a row.
const (
	held    = "held"
	missing = "missing"
	stale   = "stale"
	wrong   = "wrong"
)

// judge compares the rows with what ran.
func judge(rows []row, reqs *requirements, c *collector, src *sources) []verdict {
	verdicts := make([]verdict, 0, len(rows))
	for _, r := range rows {
		v := verdict{row: r}
		switch {
		case r.problem != "":
			v.state, v.why = wrong, r.problem
		case reqs.known != nil && !reqs.known[r.id]:
			v.state, v.why = wrong, fmt.Sprintf("%s has no requirement %q", reqs.file, r.id)
		default:
			v.state, v.why = judgeTest(r, c, src)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// judgeTest says whether the test of a row held it.
func judgeTest(r row, c *collector, src *sources) (state, why string) {
	top, _, sub := strings.Cut(r.test, "/")
	switch c.watched[testKey{r.pkg, r.test}] {
	case passed:
		return held, ""
	case failed:
		return missing, "the test failed"
	case skipped:
		return missing, "the test skipped"
	}
	switch {
	case !src.has(r.pkg, top):
		return stale, "there is no such test"
	case !c.ran[r.pkg]:
		return missing, "its package did not run"
	case sub && c.watched[testKey{r.pkg, top}] == passed:
		return stale, top + " has no such subtest"
	default:
		return missing, "the test did not run"
	}
}

// sources knows the tests that the tree declares.
type sources struct {
	root  string
	tests map[string]map[string]bool // by package
}

func newSources(root string) *sources {
	return &sources{root: root, tests: make(map[string]map[string]bool)}
}

// has says whether a package declares a function. All files count, also those
// that this system does not build.
func (s *sources) has(pkg, function string) bool {
	if s.tests[pkg] == nil {
		s.tests[pkg] = declared(filepath.Join(s.root, filepath.FromSlash(pkg)))
	}
	return s.tests[pkg][function]
}

// declared lists the functions in the test files of a folder. A file that does
// not parse declares nothing: the run has said so.
func declared(dir string) map[string]bool {
	names := make(map[string]bool)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return names
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// report prints skips and rows, and says whether every row is held.
func report(out io.Writer, c *collector, verdicts []verdict, reqs *requirements) bool {
	if extra := c.stray - maxStray; extra > 0 {
		fmt.Fprintf(out, "(%d more lines that are no test output)\n", extra)
	}
	for _, s := range c.skips {
		reason := s.reason
		if reason == "" {
			reason = "no reason given"
		}
		fmt.Fprintf(out, "skipped %s %s: %s\n", s.pkg, s.test, reason)
	}
	if extra := c.skipped - len(c.skips); extra > 0 {
		fmt.Fprintf(out, "(%d more skipped)\n", extra)
	}
	if len(verdicts) == 0 {
		return true
	}
	for _, state := range []string{held, missing, stale, wrong} { // what needs a hand comes last
		for _, v := range verdicts {
			if v.state == state {
				fmt.Fprintln(out, v)
			}
		}
	}
	ids := heldIDs(verdicts)
	of := "the requirements are not beside the checkout, ids were not compared"
	if reqs.known != nil {
		of = fmt.Sprintf("of %d requirements", len(reqs.known))
	}
	fmt.Fprintf(out, "acceptance: %d held by %d rows, %d missing, %d stale, %d wrong (%s)\n",
		ids, count(verdicts, held), count(verdicts, missing), count(verdicts, stale), count(verdicts, wrong), of)
	return count(verdicts, held) == len(verdicts)
}

// String is the row's line in the report.
func (v verdict) String() string {
	if v.state == wrong {
		return fmt.Sprintf("%-7s line %d: %s", v.state, v.line, v.why)
	}
	text := fmt.Sprintf("%-7s %-8s %s %s (%s)", v.state, v.id, v.pkg, v.test, v.tier)
	if v.why != "" {
		text += ": " + v.why
	}
	return text
}

func count(verdicts []verdict, state string) int {
	n := 0
	for _, v := range verdicts {
		if v.state == state {
			n++
		}
	}
	return n
}

// heldIDs counts the requirements all of whose rows are held.
func heldIDs(verdicts []verdict) int {
	whole := make(map[string]bool)
	for _, v := range verdicts {
		before, seen := whole[v.id]
		whole[v.id] = v.state == held && (before || !seen)
	}
	n := 0
	for _, ok := range whole {
		if ok {
			n++
		}
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
