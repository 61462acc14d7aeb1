package view

import "errors"

// Host is what New asks of the machine.
type Host interface {
	Look(path string) Entry       // of the path itself, no link followed at its end
	Glob(pattern string) []string // sorted
	Read(path string) []byte      // nil where there is none
}

// Kind is what a path names.
type Kind uint8

// The kinds.
const (
	Absent   Kind = 0
	IsFolder Kind = 1
	IsFile   Kind = 2
	IsLink   Kind = 3
)

// Entry is what a host has at a path.
type Entry struct {
	Kind   Kind
	Target string // of a link
	Open   bool   // every id can reach it and list or read it
}

// New plans the view of a host.
func New(host Host, o Options) (Plan, error) { return Plan{}, errors.New("not yet") }
