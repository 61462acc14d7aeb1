package config

import (
	"fmt"
	"strings"

	"github.com/forgeyard/forgeyard/internal/spelling"
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
	best := spelling.Nearest(word, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
