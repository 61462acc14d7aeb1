package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxProblems bounds how many problems are told of one file.
const MaxProblems = 64

// maxSnippet bounds the bytes of a line that is shown under a problem.
const maxSnippet = 160

// Code tells kinds of problems apart, for tools. A code never changes its meaning.
type Code string

// The codes.
const (
	CodeSyntax     Code = "FY1001" // not YAML, not UTF-8, or parts of YAML that have no meaning here
	CodeUnknownKey Code = "FY1002"
	CodeDuplicate  Code = "FY1003" // a key or a name that is there twice
	CodeType       Code = "FY1004" // a list where a text belongs, and the like
	CodeValue      Code = "FY1005" // a text that is no duration, and the like
	CodeMissing    Code = "FY1006" // a key that has to be there
	CodeLater      Code = "FY1007" // what a later version will do
	CodeReference  Code = "FY1008" // a job, step or axis that is nowhere
	CodeCircle     Code = "FY1009" // jobs that wait for each other
	CodeLimit      Code = "FY1010"
	CodeExpression Code = "FY1011"
	CodeAnchor     Code = "FY1012" // anchors, aliases and merges that lead nowhere or too far
	CodeAdvice     Code = "FY1100" // no error: something to think about
)

// Pos is a place in a file: line and column, both from 1, the column in characters. Zero is the file as a whole.
type Pos struct{ Line, Column int }

// Problem is one thing that is wrong with a pipeline file.
type Problem struct {
	Code Code
	At   Pos
	What string // one sentence without its full stop
	Hint string // what to do about it; may be empty
}

// Advice reports whether the problem keeps nothing from running.
func (p Problem) Advice() bool { return p.Code == CodeAdvice }

// Problems are all that is wrong with a file, in the order of their places.
type Problems []Problem

// Error writes one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.line("pipeline")
	}
	return strings.Join(lines, "\n")
}

// Wrong returns those that are more than advice.
func (ps Problems) Wrong() Problems {
	return slices.DeleteFunc(slices.Clone(ps), Problem.Advice)
}

// line writes the problem on one line.
func (p Problem) line(file string) string {
	at := file
	if p.At.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", file, p.At.Line, p.At.Column)
	}
	text := at + ": " + p.What
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return text + " [" + string(p.Code) + "]"
}

// Show writes the problem with the line that it is about and a mark under its place.
func (p Problem) Show(file string, text []byte) string {
	line, ok := lineOf(text, p.At.Line)
	if !ok {
		return p.line(file) + "\n"
	}
	number := fmt.Sprint(p.At.Line)
	before := []rune(line)
	before = before[:min(max(p.At.Column-1, 0), len(before))]
	for i, r := range before {
		if r != '\t' {
			before[i] = ' ' // a tab stays one, so that the mark stands right at any width
		}
	}
	gutter := strings.Repeat(" ", len(number))
	return fmt.Sprintf("%s\n %s | %s\n %s | %s^\n", p.line(file), number, line, gutter, string(before))
}

// lineOf returns one line, counted from 1, as far as it is worth showing.
func lineOf(text []byte, number int) (string, bool) {
	if number < 1 || !utf8.Valid(text) {
		return "", false
	}
	lines := strings.SplitAfterN(string(text), "\n", number+1)
	if len(lines) < number {
		return "", false
	}
	line := strings.TrimRight(lines[number-1], "\r\n")
	if len(line) > maxSnippet {
		line = strings.ToValidUTF8(line[:maxSnippet], "") + "…"
	}
	return line, true
}

// sorted puts problems in the order of their places, and bounds them.
func sorted(found []Problem) Problems {
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	found = slices.Compact(found)
	if more := len(found) - MaxProblems; more > 0 {
		found = append(found[:MaxProblems], Problem{Code: CodeLimit, What: fmt.Sprintf("there are %d more problems; correct these first", more)})
	}
	return found
}

// clip keeps a message short, whatever the input was.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
