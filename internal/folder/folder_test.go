package folder_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/folder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// text fills a file, and counts those that are filled.
func text(content string, n *atomic.Int64) func(context.Context, *folder.File) (bool, error) {
	return func(_ context.Context, to *folder.File) (bool, error) {
		n.Add(1)
		_, err := to.Write([]byte(content))
		return false, err
	}
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	must(t, err)
	return r
}

func TestManyFilesInManyFoldersAreAllWritten(t *testing.T) {
	dir := t.TempDir()
	var filled, finished atomic.Int64
	must(t, folder.Write(t.Context(), openRoot(t, dir), folder.Plain, func(ctx context.Context, w *folder.Writer) error {
		for i := range 50 {
			sub := "d" + strings.Repeat("x", i)
			finish := func() error { finished.Add(1); return nil }
			if err := w.Add(ctx, sub, folder.Entry{Name: sub, Folder: true, Finish: finish}); err != nil {
				return err
			}
			for j := range 70 {
				name := "f" + strings.Repeat("y", j)
				if err := w.Add(ctx, sub+"/"+name, folder.Entry{Name: name, Fill: text(sub+name, &filled)}); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	if filled.Load() != 3500 || finished.Load() != 50 {
		t.Errorf("%d files and %d folders", filled.Load(), finished.Load())
	}
	data, err := os.ReadFile(filepath.Join(dir, "dxx", "fyyy"))
	if err != nil || string(data) != "dxxfyyy" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestTheFirstErrorEndsTheWorkAndEveryFolderIsClosed(t *testing.T) {
	broken := errors.New("broken")
	before := descriptors(t)
	var filled, finished atomic.Int64
	err := folder.Write(t.Context(), openRoot(t, t.TempDir()), folder.Plain, func(ctx context.Context, w *folder.Writer) error {
		at := ""
		for range 20 {
			at += "d"
			finish := func() error { finished.Add(1); return nil }
			if err := w.Add(ctx, at, folder.Entry{Name: "d", Folder: true, Finish: finish}); err != nil {
				return err
			}
			at += "/"
		}
		fail := func(context.Context, *folder.File) (bool, error) { return false, broken }
		if err := w.Add(ctx, at+"bad", folder.Entry{Name: "bad", Fill: fail}); err != nil {
			return err
		}
		if err := w.Add(ctx, "e", folder.Entry{Name: "e", Folder: true}); err != nil {
			return err
		}
		<-ctx.Done()
		return w.Add(ctx, "late", folder.Entry{Name: "late", Fill: text("", &filled)})
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "d/bad") {
		t.Errorf("the error is %v", err)
	}
	if filled.Load() != 0 || finished.Load() != 20 {
		t.Errorf("%d files were written, %d folders finished", filled.Load(), finished.Load())
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestANameThatIsThereIsNotWrittenOver(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("untouched"), 0o600))
	must(t, os.Symlink(victim, filepath.Join(dir, "name")))
	var n atomic.Int64
	err := folder.Write(t.Context(), openRoot(t, dir), folder.Plain, func(ctx context.Context, w *folder.Writer) error {
		return w.Add(ctx, "name", folder.Entry{Name: "name", Fill: text("new", &n)})
	})
	data, _ := os.ReadFile(victim)
	if err == nil || string(data) != "untouched" {
		t.Errorf("%v, and the victim holds %q", err, data)
	}
}

func TestNoNameLeadsOutOfItsFolder(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../out", "a/b", "/out", "a\x00b"} {
		dir := filepath.Join(t.TempDir(), "in")
		must(t, os.Mkdir(dir, 0o700))
		for _, e := range []folder.Entry{
			{Name: name, Folder: true},
			{Name: name, Target: "x"},
			{Name: name, Fill: func(context.Context, *folder.File) (bool, error) { return false, nil }},
		} {
			err := folder.Write(t.Context(), openRoot(t, dir), folder.Plain, func(ctx context.Context, w *folder.Writer) error {
				return w.Add(ctx, "at", e)
			})
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
			t.Errorf("%q: %d names, %v", name, len(left), err)
		}
	}
}

func TestACopyRefusesWhatIsNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets are files elsewhere only")
	}
	from, err := os.MkdirTemp("", "f") // a short path, which a socket needs
	must(t, err)
	defer func() { must(t, os.RemoveAll(from)) }()
	l, err := net.Listen("unix", filepath.Join(from, "socket"))
	must(t, err)
	defer func() { must(t, l.Close()) }()
	if err := folder.Copy(t.Context(), from, t.TempDir(), folder.Plain); err == nil || !strings.Contains(err.Error(), `"socket"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(from, "file"), nil, 0o600))
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := folder.Copy(ctx, from, to, folder.Plain); !errors.Is(err, enough) {
		t.Errorf("the error is %v", err)
	}
}

func TestACopyBelongsToWhomeverItIsFor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	from, to := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(from, "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(from, "d", "file"), nil, 0o700))
	must(t, os.Symlink("d", filepath.Join(from, "link")))
	style := folder.Plain
	style.Owner = &folder.Owner{UID: 4711, GID: 4712}
	must(t, folder.Copy(t.Context(), from, to, style))
	must(t, filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && !ownedBy(t, path, 4711, 4712) {
			t.Errorf("%s belongs to somebody else", path)
		}
		return err
	}))
}
