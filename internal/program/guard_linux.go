package program

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// guarded is whether this process keeps its memory to itself.
var guarded struct {
	mu   sync.Mutex
	on   bool
	bare int // calls of Unguarded under way
}

// Guard keeps the memory of this process to itself, from now on: it leaves no core dump, and no process of the same user
// may trace it or read its memory, its environment and its open files, as a job that nothing confines would (S30). What is
// root may still do all of that. Programs that it starts are not guarded, but begin with the limit of core dumps at zero,
// which they may raise. It may be called again.
func Guard() error {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_CORE, &limit)
	if err == nil {
		limit.Cur = 0
		err = unix.Setrlimit(unix.RLIMIT_CORE, &limit)
	}
	if err != nil {
		err = fmt.Errorf("forbid core dumps: %w", err)
	}
	guarded.mu.Lock()
	defer guarded.mu.Unlock()
	guarded.on = true
	if guarded.bare > 0 {
		return err // Unguarded does the rest
	}
	return errors.Join(err, dumpable(0))
}

// Unguarded runs start without the guard, if there is one. A user who is not root needs that to start a program in a user
// namespace of its own: the kernel gives what belongs to a guarded process to root, and with it the file into which the ids
// of the new namespace are written.
func Unguarded(start func() error) error {
	if err := pause(1); err != nil {
		return err
	}
	err := start()
	return errors.Join(err, pause(-1))
}

// pause counts those who need the guard away.
func pause(by int) error {
	guarded.mu.Lock()
	defer guarded.mu.Unlock()
	guarded.bare += by
	switch {
	case !guarded.on || by > 0 && guarded.bare > 1 || by < 0 && guarded.bare > 0:
		return nil
	case by > 0:
		return dumpable(1)
	}
	return dumpable(0)
}

func dumpable(value uintptr) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, value, 0, 0, 0); err != nil {
		return fmt.Errorf("guard the memory of this process: %w", err)
	}
	return nil
}
