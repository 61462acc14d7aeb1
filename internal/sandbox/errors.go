package sandbox

import "errors"

// ErrNoSlot says that as many sandboxes run as the configuration allows.
var ErrNoSlot = errors.New("as many sandboxes run as there are slots")

// ErrEnded says that the launcher has ended.
var ErrEnded = errors.New("the launcher of sandboxes has ended")

// SetupError says that a sandbox was not made.
type SetupError struct {
	Level Level // the wall that was insisted on and is not there, or ""
	Err   error
}

func (e *SetupError) Error() string { return "make a sandbox: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }
