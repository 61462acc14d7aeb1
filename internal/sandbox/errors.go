package sandbox

import (
	"errors"
	"fmt"
)

// ErrNoSlot says that as many sandboxes run as the configuration allows.
var ErrNoSlot = errors.New("as many sandboxes run as there are slots")

// ErrEnded says that the launcher has ended.
var ErrEnded = errors.New("the launcher of sandboxes has ended")

// ErrNoLayers says that this machine cannot put layers over the folders of an order.
var ErrNoLayers = errors.New("folders cannot be put in layers here")

// SetupError says that a sandbox was not made.
type SetupError struct {
	Level Level // the wall that was insisted on and is not there, or ""
	Err   error
}

func (e *SetupError) Error() string { return "make a sandbox: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// Revision counts the languages that agents, launchers and keepers have spoken: every change of one of their messages adds
// one. A launcher says it before anything else, and an agent has nothing to do with one that says another or none: a program
// that was left over from another release.
const Revision = 6

// StrangerError says that the program of the launcher does not speak as this one does.
type StrangerError struct {
	Program string // "" is this one itself
	Speaks  uint64 // 0 is a launcher that does not say
}

func (e *StrangerError) Error() string {
	program := e.Program
	if program == "" {
		program = "this program, which was replaced since it began,"
	}
	return fmt.Sprintf("%s is of another release than this agent (it speaks revision %d, and not %d): install both from the same one, and start the agent again",
		program, e.Speaks, Revision)
}
