package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/disk"
)

const (
	// farewell is how long a launcher whose agent has gone may take to end by itself.
	farewell = 2 * time.Second
	// lockPause is between two attempts to take its lock, and between two looks at a process that was killed.
	lockPause = 2 * time.Millisecond
)

// KillLeftovers ends what launchers of earlier agent processes on a state folder have left, and returns once nothing of it is
// alive. Open does so too. It is an error of the kind disk.ErrLocked if ctx ends before.
func KillLeftovers(ctx context.Context, state string) error {
	lock, err := takeLock(ctx, state)
	if err != nil {
		return err
	}
	return lock.Close()
}

// takeLock kills leftovers and returns the lock, which says that there are none.
func takeLock(ctx context.Context, state string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(state, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the launcher: %w", err)
	}
	if err := waitForLock(ctx, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("a launcher of sandboxes lives on %s: %w", state, err), lock.Close())
	}
	// The kernel kills what is in a sandbox after pid 1 has let go of its files, so the lock alone does not say that it is over.
	if err := endRecorded(ctx, state); err != nil {
		return nil, errors.Join(fmt.Errorf("end sandboxes that an earlier agent left: %w", err), lock.Close())
	}
	return lock, nil
}

// waitForLock takes the lock. It lets a launcher end by itself at first, and then ends it.
func waitForLock(ctx context.Context, lock *os.File) error {
	patience := time.NewTimer(farewell)
	defer patience.Stop()
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for {
		err := disk.Lock(lock)
		if !errors.Is(err, disk.ErrLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-patience.C:
			if r, ok := readRecord(lock.Name()); ok {
				r.kill() // whose end kills its sandboxes
			}
			patience.Reset(farewell)
		case <-tick.C:
		}
	}
}

// kill kills the process that r names, if it lives.
func (r Record) kill() {
	fd, err := r.hold()
	if err != nil {
		return
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // an error means that it has gone
	_ = unix.Close(fd)
}

// endRecorded kills every sandbox of which there is a record, also one whose launcher was killed while it wrote that, and waits
// for its end. A record that came here with a copy of a state folder names a sandbox of the other's agent, which may be alive
// and well.
func endRecorded(ctx context.Context, state string) error {
	entries, err := os.ReadDir(state)
	if err != nil {
		return err
	}
	place, err := placeOf(state)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(strings.TrimSuffix(entry.Name(), unfinished), RecordSuffix) {
			continue
		}
		path := filepath.Join(state, entry.Name())
		if r, ok := readRecord(path); ok && r.Place == place {
			if err := r.end(ctx); err != nil {
				return err
			}
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// end kills the process that r names and waits until it has gone. For pid 1 of a namespace that is after all others in it.
func (r Record) end(ctx context.Context) error {
	fd, err := r.hold()
	if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // an error means that it has gone
	for !pidfdEnded(fd, lockPause) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// pidfdEnded waits at most patience for the end of a process, and reports whether it came.
func pidfdEnded(fd int, patience time.Duration) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds())) //nolint:gosec // descriptors are small
	return n > 0
}
