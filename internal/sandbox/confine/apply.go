//go:build linux

package confine

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrNotInside says that walls were to be built around a process that is not pid 1 of a sandbox.
var ErrNotInside = errors.New("confine: refused outside of pid 1 of a sandbox")

var prepared atomic.Bool

// Prepare builds what does not depend on an order, so that a sandbox can wait ready: all but the loss of pid 1's own
// capabilities, which it needs to attach the attempt's folder, and the walls that forbid that. Apply prepares what is not.
func Prepare(w Walls) error {
	if os.Getpid() != 1 {
		return ErrNotInside
	}
	if err := prepare(w); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	prepared.Store(true)
	return nil
}

func prepare(w Walls) error {
	if !w.Switches.off(DefenceLimits) {
		if err := limit(w.Processes); err != nil {
			return err
		}
	}
	if !w.Switches.off(DefenceUndumpable) {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return fmt.Errorf("keep this process's memory to itself: %w", err)
		}
	}
	if !w.Switches.off(DefenceCapabilities) {
		return bound()
	}
	return nil
}

// Apply confines this process and all that it will start, for good. Without an error every wall stands that the kernel has
// and that is not switched off; with one the process must end.
func Apply(w Walls) error {
	if os.Getpid() != 1 {
		return ErrNotInside
	}
	if !prepared.Load() {
		if err := Prepare(w); err != nil {
			return err
		}
	}
	for _, wall := range []struct {
		defence string
		build   func(Walls) error
	}{
		{DefenceCapabilities, drop},
		{DefenceNoNewPrivs, noNewPrivs},
		{DefenceLandlock, landlocked},
		{DefenceSeccomp, filtered},
	} {
		if w.Switches.off(wall.defence) {
			continue
		}
		if err := wall.build(w); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
	}
	return nil
}

func noNewPrivs(Walls) error {
	return prctl("set no_new_privs", unix.PR_SET_NO_NEW_PRIVS, 1, 0)
}

func filtered(Walls) error { return load(product()) }
