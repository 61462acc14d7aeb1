package store_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
)

// replaceLog puts a device in the place of the write-ahead log, under the file descriptor that the engine writes to:
// /dev/full says to every write that the disk is full, and /dev/null, open for reading only, that the descriptor is bad.
func replaceLog(dir, device string) error {
	wal, err := filepath.EvalSymlinks(filepath.Join(dir, "state.db-wal"))
	if err != nil {
		return err
	}
	flags := unix.O_RDONLY
	if device == storyFull {
		flags = unix.O_RDWR
	}
	fresh, err := unix.Open(device, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && target == wal {
			if err := unix.Dup3(fresh, fd, unix.O_CLOEXEC); err != nil {
				return err
			}
		}
	}
	return nil
}

// A disk that fills up or goes away under load acknowledges nothing that is not there.
func TestADiskThatFailsUnderLoadAcknowledgesNothingFalse(t *testing.T) {
	for story, says := range map[string]string{storyFull: "the disk is full", storyGone: "the fate of the commit is not known"} {
		t.Run(filepath.Base(story), func(t *testing.T) {
			dir := t.TempDir()
			c := start(t, dir, story)
			c.read(t, 1<<30) // until it is done
			c.kill(t)
			if told := strings.Join(c.ended, "\n"); len(c.ended) != workers || !strings.Contains(told, says) {
				t.Errorf("%d callers were told that it failed, want %d and %q:\n%s", len(c.ended), workers, says, told)
			}
			s, err := store.Open(t.Context(), dir, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, c.acks, 1<<30)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			intact(t, dir)
		})
	}
}
