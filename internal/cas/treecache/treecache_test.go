package treecache_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/cas/treecache"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/folder"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// want is mixed as a folder with these modes.
func want(file, program, dir string) map[string]string {
	return map[string]string{
		".": dir + ` ""`, "bin": dir + ` ""`, "src": dir + ` ""`, "hollow": dir + ` ""`,
		"src/a": dir + ` ""`, "src/a/b": dir + ` ""`, "src/a/d": dir + ` ""`, "src/a/d/e": dir + ` ""`, "src/a/d/e/f": dir + ` ""`,
		"README": file + ` "read me"`, "empty": file + ` ""`, "src/a/b/c.go": file + ` "package b"`, "odd \n\t'name": file + ` "odd"`,
		"src/a/d/e/f/h": file + ` "same"`, "src/a/d/e/f/g": program + ` "same"`, "bin/tool": program + ` "#!/bin/sh\n"`,
		"bin/alias": `Lrwxrwxrwx "tool"`, "src/a/link": `Lrwxrwxrwx "../../README"`, "src/nowhere": `Lrwxrwxrwx "no/such/file"`,
	}
}

// Case B78: the bit for executable is kept.
func TestATreeIsMadeAsItsObjectsSay(t *testing.T) {
	m := newMemory()
	c := open(t, t.TempDir(), treecache.Options{})
	got := acquire(t, c, m.tree(t, mixed), m)
	defer got.Release()
	if diff := cmp.Diff(want("-rw-r--r--", "-rwxr-xr-x", "drwxr-xr-x"), seen(t, got.Path())); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	must(t, filepath.WalkDir(got.Path(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !info.ModTime().Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s is of %v", path, info.ModTime())
		}
		return err
	}))
}

func TestATreeMayBeDeeperThanAPathCanSay(t *testing.T) {
	m := newMemory()
	at := strings.Repeat(strings.Repeat("d", 100)+"/", 200) + "bottom"
	c := open(t, t.TempDir(), treecache.Options{})
	got := acquire(t, c, m.tree(t, files{at: "deep", "top": "x"}), m)
	got.Release()
	copied := t.TempDir()
	must(t, folder.Copy(t.Context(), got.Path(), copied, folder.Plain))
	root, err := os.OpenRoot(copied)
	must(t, err)
	defer func() { must(t, root.RemoveAll(strings.Repeat("d", 100))); must(t, root.Close()) }()
	data, err := root.ReadFile(at)
	if err != nil || string(data) != "deep" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestATreeIsMadeOnceAndHadAgain(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	ref := m.tree(t, mixed)
	c, err := treecache.Open(dir, treecache.Options{})
	must(t, err)
	first := acquire(t, c, ref, m)
	second := acquire(t, c, ref, nil) // not asked for anything
	if first.Path() != second.Path() {
		t.Errorf("%s and %s", first.Path(), second.Path())
	}
	first.Release()
	second.Release()
	must(t, c.Close())
	acquire(t, open(t, dir, treecache.Options{}), ref, nil).Release() // nor after a restart
}

// Case B88: those who come at once share one maker.
func TestTwentyJobsAtOnceMakeATreeOnce(t *testing.T) {
	m := newMemory()
	ref := m.tree(t, mixed)
	c := open(t, t.TempDir(), treecache.Options{})
	var all sync.WaitGroup
	paths := make([]string, 20)
	for i := range paths {
		all.Go(func() {
			got, err := c.Acquire(t.Context(), ref, m)
			if err != nil {
				t.Error(err)
				return
			}
			paths[i] = got.Path()
			if data, err := os.ReadFile(filepath.Join(got.Path(), "README")); err != nil || string(data) != "read me" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	all.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("%q and %q", p, paths[0])
		}
	}
	if n := m.times(digest.RefOf([]byte("read me"))); n != 1 {
		t.Errorf("a file was fetched %d times", n)
	}
}

// Case B85: one wrong bit anywhere, and no job sees anything of it.
func TestADamagedObjectIsNamedAndNothingIsVisible(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	ref := m.tree(t, mixed)
	c := open(t, dir, treecache.Options{})
	for _, bad := range []digest.Ref{digest.RefOf([]byte("package b")), ref.Root} {
		m.flip(bad)
		var corrupt *cas.CorruptError
		if _, err := c.Acquire(t.Context(), ref, m); !errors.As(err, &corrupt) || corrupt.Ref != bad {
			t.Errorf("the error is %v", err)
		}
		if left := trees(t, dir); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
		m.flip(bad)
	}
	acquire(t, c, ref, m).Release()
}

func TestAnObjectThatIsMissingLeavesNothing(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	ref := m.tree(t, mixed)
	delete(m.objects, digest.RefOf([]byte("odd")))
	c := open(t, dir, treecache.Options{})
	if _, err := c.Acquire(t.Context(), ref, m); !errors.Is(err, cas.ErrNotFound) || !strings.Contains(err.Error(), `odd \n`) {
		t.Errorf("the error is %v", err)
	}
	if left := trees(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestATreeThatLiesAboutItsTotalsLeavesNothing(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	ref := m.tree(t, mixed)
	ref.Files--
	c := open(t, dir, treecache.Options{})
	var lie *cas.TreeError
	if _, err := c.Acquire(t.Context(), ref, m); !errors.As(err, &lie) {
		t.Errorf("the error is %v", err)
	}
	if left := trees(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// Case B06: who is cancelled in the middle leaves nothing, and those who waited go on with a source of their own.
func TestWhenTheMakerIsCancelledTheNextOneMakesIt(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	ref := m.tree(t, mixed)
	c := open(t, dir, treecache.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stuck, gone := make(chan struct{}), errors.New("the job was cancelled")
	var once sync.Once
	m.onOpen = func(got digest.Ref) {
		if got == digest.RefOf([]byte("package b")) {
			once.Do(func() { close(stuck); <-ctx.Done() })
		}
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, ref, m)
		first <- err
	}()
	<-stuck
	other := newMemory()
	other.tree(t, mixed)
	go func() {
		_, err := c.Acquire(t.Context(), ref, other)
		second <- err
	}()
	cancel(gone)
	if err := <-first; !errors.Is(err, gone) {
		t.Errorf("the first has %v", err)
	}
	must(t, <-second)
	if left := trees(t, dir); len(left) != 1 {
		t.Errorf("there: %q", left)
	}
}

func TestNamesThatThePlatformCannotHoldAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, x := range []struct {
		hazard tree.Hazards
		files  files
		path   string
	}{
		{tree.CaseConflict, files{"a/b/Makefile": "1", "a/b/makefile": "2", "a/c": "3"}, "a/b/makefile"},
		{tree.NFCConflict, files{"x": "0", "y/caf\u00e9": "1", "y/cafe\u0301": "2"}, "y/caf\u00e9"},
		{tree.WindowsIllegal, files{"a": "1", "docs/aux.txt": "2", "z": "3"}, "docs/aux.txt"},
	} {
		m, dir := newMemory(), t.TempDir()
		ref := m.tree(t, x.files)
		c := open(t, dir, treecache.Options{})
		treecache.SetHazards(c, x.hazard)
		var refused *treecache.IncompatibleError
		_, err := c.Acquire(t.Context(), ref, m)
		if !errors.As(err, &refused) || refused.Path != x.path || refused.Hazards != x.hazard {
			t.Errorf("%v: %v", x.hazard, err)
		}
		if left := trees(t, dir); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
		treecache.SetHazards(c, 0)
		if tree.CaseConflict == x.hazard || tree.NFCConflict == x.hazard {
			continue // and may be one of this machine's
		}
		acquire(t, c, ref, m).Release()
	}
}

// numbered makes trees of about 100 KiB.
func numbered(t *testing.T, m *memory, n int) []forge.TreeRef {
	t.Helper()
	var refs []forge.TreeRef
	for i := range n {
		refs = append(refs, m.tree(t, files{"file": fmt.Sprintf("%d %s", i, strings.Repeat("x", 100<<10))}))
	}
	return refs
}

func TestWhatWasUsedLongestAgoGoesFirstAndWhatIsHeldNever(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	refs := numbered(t, m, 4)
	c := open(t, dir, treecache.Options{MaxBytes: 330 << 10}) // three of them
	held := acquire(t, c, refs[0], m)
	acquire(t, c, refs[1], m).Release()
	acquire(t, c, refs[2], m).Release()
	acquire(t, c, refs[1], nil).Release()
	acquire(t, c, refs[3], m).Release() // in the place of 2
	for _, i := range []int{0, 1, 3} {
		acquire(t, c, refs[i], newMemory()).Release()
	}
	usage, err := c.Usage()
	must(t, err)
	if usage.Trees != 3 || usage.Held != 1 || c.Held() != 1 || len(trees(t, dir)) != 3 {
		t.Errorf("%+v, %q", usage, trees(t, dir))
	}
	if _, err := os.Stat(filepath.Join(held.Path(), "file")); err != nil {
		t.Error(err)
	}
	held.Release()
	held.Release() // counts once
}

func TestWithoutRoomNothingIsWrittenAndTheErrorSaysWhy(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	refs := numbered(t, m, 2)
	c := open(t, dir, treecache.Options{MaxBytes: 150 << 10})
	held := acquire(t, c, refs[0], m)
	var room *treecache.RoomError
	_, err := c.Acquire(t.Context(), refs[1], m)
	if !errors.As(err, &room) || !errors.Is(err, cas.ErrFull) || room.Need <= room.Free {
		t.Errorf("beside one that is held: %v", err)
	}
	if m.times(digest.RefOf([]byte("1 "+strings.Repeat("x", 100<<10)))) != 0 {
		t.Error("a file was fetched")
	}
	held.Release()
	acquire(t, c, refs[1], m).Release()
	huge := refs[0]
	huge.Bytes = forge.TiB * 900
	if _, err := open(t, t.TempDir(), treecache.Options{}).Acquire(t.Context(), huge, m); !errors.As(err, &room) {
		t.Errorf("more than any disk has: %v", err)
	}
}

func TestTheSweepTakesWhatIsTooOld(t *testing.T) {
	m, dir := newMemory(), t.TempDir()
	refs := numbered(t, m, 2)
	c := open(t, dir, treecache.Options{MaxAge: time.Hour})
	held := acquire(t, c, refs[0], m)
	acquire(t, c, refs[1], m).Release()
	must(t, c.Sweep(t.Context()))
	if n := len(trees(t, dir)); n != 2 {
		t.Errorf("%d trees are left, want both", n)
	}
	treecache.Age(c, 2*time.Hour)
	must(t, c.Sweep(t.Context()))
	if left := trees(t, dir); len(left) != 1 || !strings.HasPrefix(held.Path(), filepath.Join(dir, left[0])) {
		t.Errorf("left: %q", left)
	}
	held.Release()
}

func TestAPowerCutTakesOnlyTreesThatWereNotFlushed(t *testing.T) {
	if treecache.BootID() == "" {
		t.Skip("this system does not say when it was started")
	}
	m, dir := newMemory(), t.TempDir()
	refs := numbered(t, m, 2)
	c, err := treecache.Open(dir, treecache.Options{})
	must(t, err)
	acquire(t, c, refs[0], m).Release()
	must(t, c.Sweep(t.Context()))
	acquire(t, c, refs[1], m).Release()
	must(t, c.Close())
	must(t, os.WriteFile(filepath.Join(dir, "boot"), []byte("an earlier one"), 0o600))
	c = open(t, dir, treecache.Options{})
	acquire(t, c, refs[0], nil).Release()
	if _, err := c.Acquire(t.Context(), refs[1], newMemory()); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("what may be damaged: %v", err)
	}
}

func TestACacheBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, treecache.Options{})
	if _, err := treecache.Open(dir, treecache.Options{}); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("a second time: %v", err)
	}
}

func TestACopyIsItsOwnersToChangeOrToReadOnly(t *testing.T) {
	m := newMemory()
	c := open(t, t.TempDir(), treecache.Options{})
	got := acquire(t, c, m.tree(t, mixed), m)
	defer got.Release()
	for _, x := range []struct {
		style folder.Style
		want  map[string]string
	}{
		{folder.Plain, want("-rw-r--r--", "-rwxr-xr-x", "drwxr-xr-x")},
		{folder.Frozen, want("-r--r--r--", "-r-xr-xr-x", "dr-xr-xr-x")},
	} {
		dir := t.TempDir()
		must(t, folder.Copy(t.Context(), got.Path(), dir, x.style))
		if diff := cmp.Diff(x.want, seen(t, dir)); diff != "" {
			t.Errorf("a copy (-want +got):\n%s", diff)
		}
		must(t, os.Chmod(filepath.Join(dir, "README"), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, "README"), []byte("changed"), 0o644))
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o755) // so that the test's folder can be removed
			}
			return err
		}))
	}
	if diff := cmp.Diff(want("-rw-r--r--", "-rwxr-xr-x", "drwxr-xr-x"), seen(t, got.Path())); diff != "" {
		t.Errorf("what was copied is changed:\n%s", diff)
	}
}
