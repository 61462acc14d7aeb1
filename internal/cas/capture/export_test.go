package capture

// What opens, for tests that come between a look and an opening.
var (
	OpenFile   = openFile
	OpenFolder = openFolder
	ErrChanged = errChanged
)

// Follow says also whether a walk enters each folder of a path.
func (p *Patterns) Follow(path string) (takes, reached bool) { return p.follow(path) }
