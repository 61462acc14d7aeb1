//go:build linux

package confine

import "errors"

// Apply confines this process and all that it will start. Without an error every wall stands that the kernel has and that is
// not switched off; with one the process must end.
func Apply(w Walls) error { return errors.New("not yet") }

// AsStep runs f on a thread whose file accesses are those of a step, so that pid 1 can make files for steps without rights
// over theirs. f must not start processes or goroutines that outlive it.
func AsStep(uid, gid int, f func() error) error { return errors.New("not yet") }

// Feature is something of the kernel that a wall needs.
type Feature struct {
	Name  string // the sandbox level where there is one of that name: "seccomp", "landlock", "user-namespace", …
	Have  bool
	Grade int    // Landlock's ABI; else 0
	Why   string // why it is missing, as a sentence
	Mend  string // a command that mends it; "" where none does
}

// Probe asks this kernel which walls it can build. It changes nothing.
func Probe() []Feature { return nil }
