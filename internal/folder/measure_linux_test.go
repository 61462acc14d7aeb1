package folder_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/folder"
)

// measured is what a folder takes besides what an empty one takes.
func measured(t *testing.T, dir string) folder.Size {
	t.Helper()
	s, err := folder.Measure(t.Context(), dir)
	must(t, err)
	return s
}

func TestAFolderIsMeasuredByTheBlocksOfWhatIsInIt(t *testing.T) {
	dir := t.TempDir()
	if s := measured(t, dir); s != (folder.Size{}) {
		t.Errorf("an empty folder: %+v", s)
	}
	sub := filepath.Join(dir, "a", "b")
	must(t, os.MkdirAll(sub, 0o755))
	base := measured(t, dir)
	must(t, os.WriteFile(filepath.Join(sub, "file"), make([]byte, 1<<20), 0o600))
	sparse, err := os.Create(filepath.Join(sub, "sparse"))
	must(t, err)
	must(t, errors.Join(sparse.Truncate(1<<40), sparse.Close()))
	must(t, os.Link(filepath.Join(sub, "file"), filepath.Join(dir, "again")))
	must(t, os.Symlink("/usr", filepath.Join(dir, "out")))
	s := measured(t, dir)
	if got := s.Bytes - base.Bytes; got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("a file of 1 MiB with two names, one that is all hole and a link take %d bytes", got)
	}
	if s.Files-base.Files != 4 || s.Blind != 0 {
		t.Errorf("%+v, before %+v", s, base)
	}
}

func TestWhatLiesTooDeepIsSaidToBeUnseen(t *testing.T) {
	top := t.TempDir()
	at, err := os.OpenRoot(top)
	must(t, err)
	for range 600 {
		must(t, at.Mkdir("d", 0o700))
		next, err := at.OpenRoot("d")
		must(t, errors.Join(err, at.Close()))
		at = next
	}
	must(t, at.Close())
	if s := measured(t, top); s.Blind != 1 || s.Files < 500 || s.Files > 520 {
		t.Errorf("%+v", s)
	}
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := folder.Measure(ctx, t.TempDir()); !errors.Is(err, enough) {
		t.Errorf("the error is %v", err)
	}
}
