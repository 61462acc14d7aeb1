package treecache_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/treecache"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Case B87: the disk fills while a tree is made.
func TestADiskThatFillsInTheMiddleLeavesNothingAndIsSaid(t *testing.T) {
	castest.OnSmallDisk(t, 8<<20, func(t *testing.T, dir string) {
		m := newMemory()
		what := files{}
		for i := range 40 {
			what[fmt.Sprintf("d%d/file", i)] = fmt.Sprintf("%d %s", i, bytes.Repeat([]byte{'x'}, 100<<10))
		}
		ref := m.tree(t, what)
		hog := filepath.Join(dir, "hog")
		var once sync.Once
		m.onOpen = func(got digest.Ref) {
			if got.Bytes > 100<<10 {
				once.Do(func() {
					if err := os.WriteFile(hog, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("the disk is not filled: %v", err)
					}
				})
			}
		}
		cache := filepath.Join(dir, "cache")
		c := open(t, cache, treecache.Options{})
		var room *treecache.RoomError
		if _, err := c.Acquire(t.Context(), ref, m); !errors.As(err, &room) || !errors.Is(err, cas.ErrFull) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the error is %v", err)
		}
		if left := trees(t, cache); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
		must(t, os.Remove(hog))
		acquire(t, c, ref, m).Release()
	})
}

// What does not fit beside what the disk has is given up first, and nothing is begun that cannot be finished.
func TestTreesThatNobodyHoldsMakeRoomOnTheDisk(t *testing.T) {
	castest.OnSmallDisk(t, 4<<20, func(t *testing.T, dir string) {
		m := newMemory()
		large := func(c string) files {
			return files{"a": c, "b": c + string(bytes.Repeat([]byte{'x'}, 2<<20))}
		}
		first, second := m.tree(t, large("1")), m.tree(t, large("2"))
		c := open(t, filepath.Join(dir, "cache"), treecache.Options{MinFree: 1 << 20})
		held := acquire(t, c, first, m)
		var room *treecache.RoomError
		if _, err := c.Acquire(t.Context(), second, m); !errors.As(err, &room) || room.Err != nil {
			t.Errorf("beside one that is held: %v", err)
		}
		held.Release()
		acquire(t, c, second, m).Release()
		if left := trees(t, filepath.Join(dir, "cache")); len(left) != 1 {
			t.Errorf("there: %q", left)
		}
	})
}
