package capture

import "strings"

// What opens, for tests that come between a look and an opening.
var (
	OpenFile   = openFile
	OpenFolder = openFolder
	ErrChanged = errChanged
)

// Takes follows a path of a file through the patterns, as a walk does. It also says whether a walk enters each folder of it.
func (p *Patterns) Takes(path string) (takes, reached bool) {
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
