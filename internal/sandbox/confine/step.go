//go:build linux

package confine

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsStep runs f on a thread whose accesses to files are those of a step, so that pid 1 can make files for steps without
// rights over theirs. f starts no process and no goroutine that accesses files. If the thread cannot be brought back, it
// ends with its goroutine.
func AsStep(uid, gid int, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- asStep(uid, gid, f) }()
	return <-done
}

func asStep(uid, gid int, f func() error) error {
	runtime.LockOSThread() // given back only once it is itself again
	ownUID, ownGID := unix.Geteuid(), unix.Getegid()
	if err := accessAs(uid, gid); err != nil {
		return err
	}
	result := f()
	if err := accessAs(ownUID, ownGID); err != nil {
		return errors.Join(result, err)
	}
	runtime.UnlockOSThread()
	return result
}

// accessAs sets this thread's ids for files. The calls report nothing but the id before, so the result is asked for.
func accessAs(uid, gid int) error {
	if err := set("group", gid, unix.SetfsgidRetGid); err != nil {
		return err
	}
	return set("user", uid, unix.SetfsuidRetUid)
}

func set(what string, id int, call func(int) (int, error)) error {
	if _, err := call(id); err != nil {
		return fmt.Errorf("confine: access files as %s %d: %w", what, id, err)
	}
	now, err := call(-1) // not an id, and so a question
	if err != nil || now != id {
		return fmt.Errorf("confine: access files as %s %d: the kernel refused", what, id)
	}
	return nil
}
