package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/snapshot"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatChangesBeforeItIsSentIsCapturedAgain(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"content": "printf 222 > d/f", "size": "printf 2222 > d/f", "gone": "rm d/f", "a link": "ln -sf g d/f", "a folder": "rm d/f; mkdir d/f; printf x > d/f/x",
		"a FIFO": "rm d/f; mkfifo d/f",
	} {
		dir, m := folder(t, "mkdir d; printf 111 > d/f; printf g > d/g"), newMemory()
		var once sync.Once
		m.before = func() { once.Do(func() { sh(t, dir, script) }) }
		got := take(t, snapshot.Options{Dir: dir}, m)
		if want := take(t, snapshot.Options{Dir: dir}, nil); got.Tree != want.Tree {
			t.Errorf("%s: %v, want %v", name, paths(t, m, got.Tree), want.Tree)
		}
	}
}

// hasher is a store that hashes what it takes, as those on a disk do, and so reads files without a check before its own.
type hasher struct{ *memory }

func (h hasher) CopyFrom(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	missing, err := h.Missing(ctx, refs)
	for _, ref := range missing {
		err = errors.Join(err, cas.CopyToHasher(ctx, h.Put, src, ref))
	}
	return err
}

func TestAFileThatChangesBeforeAStoreHashesItIsCapturedAgain(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"content": "printf 222 > d/f", "shorter": "printf 2 > d/f", "nothing": ": > d/f", "gone": "rm d/f", "with another": "printf 2 > d/f; printf h > d/h",
	} {
		dir, m := folder(t, "mkdir d; printf 111 > d/f; printf g > d/g"), newMemory()
		var once sync.Once
		m.before = func() { once.Do(func() { sh(t, dir, script) }) }
		got, err := snapshot.Take(t.Context(), snapshot.Options{Dir: dir}, hasher{m})
		if want := take(t, snapshot.Options{Dir: dir}, nil); err != nil || got.Tree != want.Tree {
			t.Errorf("%s: %v, %v, want %v", name, got.Tree, err, want.Tree)
		}
	}
}

// What is appended while a file is sent is of the next capture.
func TestAFileThatGrowsBeforeItIsSentIsTheObjectThatItWas(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, "printf 111 > f"), newMemory()
	m.before = func() { sh(t, dir, "printf 2 >> f") }
	got, err := snapshot.Take(t.Context(), snapshot.Options{Dir: dir}, hasher{m})
	if err != nil || paths(t, m, got.Tree)["f"] != "111" {
		t.Errorf("%v, %v", paths(t, m, got.Tree), err)
	}
}

func TestAFileThatNeverRestsIsNamed(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, "mkdir d; printf 0 > d/busy; printf g > d/calm"), newMemory()
	n := 0
	m.before = func() { n++; write(t, filepath.Join(dir, "d", "busy"), fmt.Sprint(n)) }
	_, err := snapshot.Take(t.Context(), snapshot.Options{Dir: dir}, m)
	var changed *snapshot.ChangedError
	if !errors.As(err, &changed) || !slices.Equal(changed.Paths, []string{"d/busy"}) || !strings.Contains(err.Error(), `"d/busy"`) {
		t.Errorf("%v", err)
	}
}

func TestFactsAndTreeAreOfTheSameCommit(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, project), newMemory()
	var once sync.Once
	m.before = func() { once.Do(func() { sh(t, dir, "git commit -qam second") }) }
	snap := take(t, snapshot.Options{Dir: dir, Git: true}, m)
	if snap.Facts.SHA != sh(t, dir, "git rev-parse HEAD") || snap.Facts.Subject != "second" || *snap.Repository != *take(t, snapshot.Options{Dir: dir, Git: true}, nil).Repository {
		t.Errorf("%+v", snap.Facts)
	}
}

// Whoever replaces files as a whole finds each of them whole in what was captured, while others come and go.
func TestCaptureWhileFilesComeAndGo(t *testing.T) {
	t.Parallel()
	dir := folder(t, "git init -q .; printf x > rest")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- rewrite(dir, stop) }()
	o := snapshot.Options{Dir: dir, Index: filepath.Join(t.TempDir(), "index")}
	for range 5 {
		m := newMemory()
		snap, err := snapshot.Take(t.Context(), o, m)
		var changed *snapshot.ChangedError
		if errors.As(err, &changed) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for path, text := range paths(t, m, snap.Tree) {
			if strings.Trim(text, text[:min(1, len(text))]) != "" || path == "rest" && text != "x" {
				t.Errorf("%s is torn: %.40q", path, text)
			}
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := take(t, o, nil), take(t, snapshot.Options{Dir: dir}, nil); got.Tree != want.Tree {
		t.Errorf("at rest: %v, want %v", got.Tree, want.Tree)
	}
}

// rewrite replaces files by others of one letter each, and removes some, until it is stopped.
func rewrite(dir string, stop <-chan struct{}) error {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		at := filepath.Join(dir, fmt.Sprintf("f%d", n%7))
		if n%5 == 0 {
			if err := os.RemoveAll(at); err != nil {
				return err
			}
			continue
		}
		text := strings.Repeat(string(rune('a'+n%26)), 1000+n%3)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, ".git", "new"), []byte(text), 0o644), os.Rename(filepath.Join(dir, ".git", "new"), at)); err != nil {
			return err
		}
	}
}

func TestAnEndedContextEndsTheCapture(t *testing.T) {
	t.Parallel()
	dir := folder(t, project)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	m := newMemory()
	m.before = func() { cancel(why) }
	for range 2 { // during the capture, and before it
		if _, err := snapshot.Take(ctx, snapshot.Options{Dir: dir}, m); !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}
