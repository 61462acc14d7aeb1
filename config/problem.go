package config

import (
	"fmt"
	"strings"
)

// MaxProblems bounds how many problems are told at once.
const MaxProblems = 50

// A Problem is one thing that is wrong with settings.
type Problem struct {
	Source string // "agent.yaml:3:11", "FORGEYARD_AGENT_LOG_LEVEL", "--set"
	Key    string // "log.level"; may be empty
	Text   string
}

// String writes the problem on one line.
func (p Problem) String() string {
	if p.Key == "" {
		return p.Source + ": " + p.Text
	}
	return p.Source + ": " + p.Key + ": " + p.Text
}

// Problems are all that is wrong with settings, in the order of the sources.
type Problems []Problem

// Error writes one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, 0, len(ps))
	for _, p := range ps {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func (d *decoder) wrong(source, key, format string, args ...any) {
	switch n := len(d.found); {
	case n < MaxProblems:
		d.found = append(d.found, Problem{Source: source, Key: key, Text: fmt.Sprintf(format, args...)})
	case n == MaxProblems:
		d.found = append(d.found, Problem{Source: source, Text: "and more; correct these first"})
	}
}

// inSection returns a hint at the settings that a word names without their sections, or nothing if there are none.
func inSection(word string, keys []string) string {
	var named []string
	for _, k := range keys {
		if strings.HasSuffix(k, "."+word) {
			named = append(named, k)
		}
	}
	if len(named) == 0 || word == "" {
		return ""
	}
	return "; did you mean " + strings.Join(named, " or ") + "?"
}

// didYouMean returns a hint at the candidate that is nearest to a word, or nothing if none is near.
func didYouMean(word string, candidates []string) string {
	const near, longest = 2, 64
	if len(word) > longest {
		return ""
	}
	best, least := "", near+1
	for _, c := range candidates {
		if n := distance(word, c); n < least {
			best, least = c, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the letters to insert, delete, replace or swap that make b of a. Both are short.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
