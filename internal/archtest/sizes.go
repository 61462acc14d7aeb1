package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// The bounds on code that is not a test.
const (
	maxFileLines     = 500 // longer only with a longFile line that says why
	maxFunctionLines = 70  // longer is allowed, but rarely:
	maxLongPercent   = 4   // of all functions
)

// longFile is the comment that lets a file be long; its reason follows.
const longFile = "archtest:long"

// Sizes are the lengths of the module's code in lines, without tests and
// without generated files.
type Sizes struct {
	Files     Spread
	Functions Spread
	Long      []Function // those over the bound, longest first
}

// A Spread describes a set of lengths.
type Spread struct {
	Count, Median, P90, P99, Max int
}

// String renders the spread on one line.
func (s Spread) String() string {
	return fmt.Sprintf("%d: median %d, p90 %d, p99 %d, max %d lines", s.Count, s.Median, s.P90, s.P99, s.Max)
}

// A Function is one function declaration with its length.
type Function struct {
	Name  string
	File  string
	Line  int
	Lines int
}

// LongPercent is the share of functions over the bound.
func (s Sizes) LongPercent() float64 {
	if s.Functions.Count == 0 {
		return 0
	}
	return 100 * float64(len(s.Long)) / float64(s.Functions.Count)
}

// Sizes measures the module.
func (m *Module) Sizes() Sizes {
	var files, functions []int
	var s Sizes
	m.eachCounted(func(file *File) {
		files = append(files, file.Lines)
		for _, decl := range file.Syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			f := m.function(file, fn)
			functions = append(functions, f.Lines)
			if f.Lines > maxFunctionLines {
				s.Long = append(s.Long, f)
			}
		}
	})
	s.Files, s.Functions = spread(files), spread(functions)
	slices.SortStableFunc(s.Long, func(a, b Function) int { return b.Lines - a.Lines })
	return s
}

// eachCounted calls f for every file that counts.
func (m *Module) eachCounted(f func(*File)) {
	for _, p := range m.Packages {
		for _, file := range p.Files {
			if !file.Test && !ast.IsGenerated(file.Syntax) {
				f(file)
			}
		}
	}
}

func (m *Module) function(file *File, fn *ast.FuncDecl) Function {
	first, last := m.line(fn.Pos()), m.line(fn.End())
	return Function{Name: fn.Name.Name, File: file.Path, Line: first, Lines: last - first + 1}
}

func spread(lengths []int) Spread {
	if len(lengths) == 0 {
		return Spread{}
	}
	slices.Sort(lengths)
	at := func(percent int) int { return lengths[(len(lengths)-1)*percent/100] }
	return Spread{Count: len(lengths), Median: at(50), P90: at(90), P99: at(99), Max: at(100)}
}

// checkSizes finds files that are too long and, when there are too many of
// them, functions that are.
func checkSizes(m *Module) []Violation {
	var violations []Violation
	m.eachCounted(func(file *File) {
		if v, bad := m.checkFileSize(file); bad {
			violations = append(violations, v)
		}
	})
	s := m.Sizes()
	if s.LongPercent() <= maxLongPercent {
		return violations
	}
	for _, f := range s.Long {
		violations = append(violations, Violation{
			Rule: RuleSize, File: f.File, Line: f.Line,
			What: fmt.Sprintf("%s has %d lines, and %.1f %% of all functions have more than %d", f.Name, f.Lines, s.LongPercent(), maxFunctionLines),
			Fix:  fmt.Sprintf("split until at most %d %% are that long: one function keeps the branches, helpers stay straight", maxLongPercent),
		})
	}
	return violations
}

// checkFileSize judges one file together with the reason it gives.
func (m *Module) checkFileSize(file *File) (Violation, bool) {
	v := Violation{Rule: RuleSize, File: file.Path, Line: 1}
	line, reason, claimed := m.longReason(file)
	switch {
	case file.Lines > maxFileLines && !claimed:
		v.What = fmt.Sprintf("the file has %d lines, more than %d", file.Lines, maxFileLines)
		v.Fix = "split it by idea, or say why not in a line // " + longFile + " <reason>"
	case claimed && reason == "":
		v.Line = line
		v.What = "the " + longFile + " line gives no reason"
		v.Fix = "write the reason behind it"
	case claimed && file.Lines <= maxFileLines:
		v.Line = line
		v.What = fmt.Sprintf("the file has %d lines and needs no %s line", file.Lines, longFile)
		v.Fix = "delete the line"
	default:
		return v, false
	}
	return v, true
}

// longReason finds the file's longFile line.
func (m *Module) longReason(file *File) (line int, reason string, found bool) {
	for _, group := range file.Syntax.Comments {
		for _, comment := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			if rest, ok := strings.CutPrefix(text, longFile); ok {
				return m.line(comment.Pos()), strings.TrimSpace(rest), true
			}
		}
	}
	return 0, "", false
}
