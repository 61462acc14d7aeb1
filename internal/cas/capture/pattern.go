package capture

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of the patterns of one output, once {this,that} is written out.
const (
	maxAlternatives = 1024
	maxSegments     = 16 << 10 // names in all of them
)

// ErrPattern is returned for a pattern that cannot be matched against anything. The error says which, and why.
var ErrPattern = errors.New("bad pattern")

// Patterns say what an output takes. They are not changed once compiled, and may be used by several goroutines.
type Patterns struct {
	rules []rule
	start []position // at the base itself
	base  verdict    // about the base itself
}

// rule is one pattern as it was written.
type rule struct {
	text  string
	takes bool // else it takes away
}

// way is a pattern without alternatives: a name for each level, and anyDepth for any number of them.
type way struct {
	rule   int
	names  []string
	folder bool // matches folders only
}

const anyDepth = "**"

// position is a pattern of which a beginning has matched the path of a folder.
type position struct {
	way *way
	at  int // the next name
}

// verdict is the pattern that decides about something, none if it is negative.
type verdict int

const undecided verdict = -1

// Compile reads the patterns of an output. It is what finds, before a job runs, those that forge.JobSpec.Validate cannot
// know to be wrong. A pattern may also be written as an absolute path below forge.WorkRoot, if that is below the base.
func Compile(out forge.Output) (*Patterns, error) {
	p := &Patterns{base: undecided}
	alternatives, segments := 0, 0
	for i, text := range out.Patterns {
		ways, err := compile(i, text, out.Base)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w %q: %w", out.Name, ErrPattern, text, err)
		}
		p.rules = append(p.rules, rule{text: text, takes: !strings.HasPrefix(text, "!")})
		for _, w := range ways {
			alternatives, segments = alternatives+1, segments+len(w.names)
			p.start = add(p.start, position{way: w})
		}
		if alternatives > maxAlternatives || segments > maxSegments {
			return nil, fmt.Errorf("output %s: %w: more than %d alternatives or %d names in them", out.Name, ErrPattern, maxAlternatives, maxSegments)
		}
	}
	for _, at := range p.start {
		if at.done() {
			p.base = max(p.base, verdict(at.way.rule))
		}
	}
	return p, nil
}

// compile reads one pattern.
func compile(rule int, text, base string) ([]*way, error) {
	text = strings.TrimPrefix(text, "!")
	if rest, absolute := strings.CutPrefix(text, forge.WorkRoot+"/"); absolute {
		within, ok := strings.CutPrefix(rest, base+"/")
		if !ok {
			return nil, fmt.Errorf("it does not lie below %s/%s, the output's base", forge.WorkRoot, base)
		}
		text = within
	}
	trimmed := strings.TrimSuffix(text, "/")
	if len(text) > forge.MaxPath {
		return nil, fmt.Errorf("it has more than %d bytes", forge.MaxPath)
	}
	if strings.Contains(trimmed, `\`) {
		return nil, errors.New("nothing can be escaped with a backslash")
	}
	if !doublestar.ValidatePattern(trimmed) {
		return nil, errors.New("a bracket is not closed, or nothing is in it")
	}
	all, err := alternatives(trimmed)
	if err != nil {
		return nil, err
	}
	var ways []*way
	for _, one := range all {
		w := &way{rule: rule, folder: len(trimmed) < len(text)}
		for name := range strings.SplitSeq(one, "/") {
			if err := checkName(name); err != nil {
				return nil, err
			}
			if name == anyDepth && len(w.names) > 0 && w.names[len(w.names)-1] == anyDepth {
				continue // twice in a row is once
			}
			w.names = append(w.names, name)
		}
		ways = append(ways, w)
	}
	return ways, nil
}

func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return errors.New("it does not stay below the output's base: nothing, . and .. are no names")
	case !doublestar.ValidatePattern(name):
		return errors.New("a bracket spans a slash")
	}
	return nil
}

// alternatives writes {this,that} out, outermost and leftmost first. The pattern is valid as a whole.
func alternatives(pattern string) ([]string, error) {
	todo, done := []string{pattern}, []string(nil)
	for len(todo) > 0 {
		if len(todo)+len(done) > maxAlternatives {
			return nil, fmt.Errorf("it has more than %d alternatives", maxAlternatives)
		}
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		before, choices, after, found := braces(p)
		if !found {
			done = append(done, p)
			continue
		}
		for _, choice := range choices {
			todo = append(todo, before+choice+after)
		}
	}
	return done, nil
}

// braces takes the first {…} of a pattern apart. What stands in a class like [{,}] is no brace.
func braces(p string) (before string, choices []string, after string, found bool) {
	depth, open, from := 0, 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '[':
			i += max(0, strings.IndexByte(p[i:], ']'))
		case '{':
			if depth++; depth == 1 {
				open, from = i, i+1
			}
		case ',':
			if depth == 1 {
				choices, from = append(choices, p[from:i]), i+1
			}
		case '}':
			if depth--; depth == 0 {
				return p[:open], append(choices, p[from:i]), p[i+1:], true
			}
		}
	}
	return p, nil, "", false
}

// done reports whether nothing more needs to follow.
func (at position) done() bool {
	return at.at == len(at.way.names) || at.at == len(at.way.names)-1 && at.way.names[at.at] == anyDepth
}

// Takes reports whether a file at a path below the base is taken, as capturing would.
func (p *Patterns) Takes(path string) bool {
	takes, _ := p.follow(path)
	return takes
}

// follow follows a path of a file through the patterns, as a walk does. It also says whether a walk enters each folder of it.
func (p *Patterns) follow(path string) (takes, reached bool) {
	w := &walk{patterns: p, found: make([]bool, len(p.rules))}
	for i := range w.found {
		w.found[i] = true // so that nothing is followed for the sake of warnings alone
	}
	v, from, reached := p.base, p.start, true
	names := strings.Split(path, "/")
	for i, name := range names {
		folder := i < len(names)-1
		decides, into := enter(from, name, folder, func(rule int) bool { return w.matters(v, rule) }, func(int) {})
		v, from = max(v, decides), into
		reached = reached && (!folder || w.takes(v) || w.mayTake(v, into))
	}
	return w.takes(v), reached
}

// add adds a position to those of a folder, each once.
func add(all []position, at position) []position {
	if slices.Contains(all, at) {
		return all
	}
	return append(all, at)
}

// enter follows patterns from a folder into what has a name there. It returns the last pattern that matches that very
// thing, and, of a folder, where the patterns are then. matched hears of all patterns that do. Of what follow
// says no to nothing is asked.
func enter(from []position, name string, folder bool, follow func(rule int) bool, matched func(rule int)) (verdict, []position) {
	decides, into := undecided, []position(nil)
	for _, at := range from {
		if !follow(at.way.rule) {
			continue
		}
		for next := range at.next(name) {
			if next.done() && (folder || !next.way.folder) {
				matched(next.way.rule)
				decides = max(decides, verdict(next.way.rule))
			}
			if folder && next.at < len(next.way.names) {
				into = add(into, next)
			}
		}
	}
	return decides, into
}

// next yields where a pattern can be once a name has matched.
func (at position) next(name string) func(yield func(position) bool) {
	return func(yield func(position) bool) {
		if at.at == len(at.way.names) {
			return
		}
		want := at.way.names[at.at]
		if want == anyDepth {
			if !yield(at) {
				return
			}
			if at.at++; at.at == len(at.way.names) {
				return
			}
			want = at.way.names[at.at]
		}
		if doublestar.MatchUnvalidated(want, name) {
			at.at++
			yield(at)
		}
	}
}
