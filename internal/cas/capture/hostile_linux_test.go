package capture_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case B83, threat S18.
func TestWhatIsNoFileFolderOrLinkIsRefusedByName(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, at string){
		"pipe": func(t *testing.T, at string) { must(t, unix.Mkfifo(at, 0o666)) },
		"socket": func(t *testing.T, at string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at})
			must(t, err)
			l.SetUnlinkOnClose(false)
			must(t, l.Close())
		},
		"device": func(t *testing.T, at string) {
			// The one device that needs no privilege: it marks what an overlay hides.
			if err := unix.Mknod(at, unix.S_IFCHR|0o666, 0); err != nil {
				t.Skip("system calls are filtered, and no device can be made:", err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			j := newJob(t, "dist")
			j.write("dist/a")
			leave(t, filepath.Join(j.source, "dist", "thing"))
			leave(t, filepath.Join(j.source, "thing")) // which nothing takes
			j.refused(forge.OutputRefused, `"dist/thing"`, what)
			j.out.Patterns = append(j.out.Patterns, "!dist/thing")
			j.want(`dist/a "dist/a"`)
		})
	}
}

func TestEverythingThatIsRefusedIsNamedUpToABound(t *testing.T) {
	j := newJob(t, "**")
	for i := range 25 {
		must(t, unix.Mkfifo(filepath.Join(j.source, fmt.Sprintf("pipe%02d", i)), 0o600))
	}
	e := j.refused(forge.OutputRefused, "pipe00", "pipe09", "and 15 more")
	if len(e.Paths) != 10 || e.Paths[0] != "pipe00" || strings.Contains(e.Error(), "pipe10") {
		t.Errorf("paths %q", e.Paths)
	}
}

func TestNamesThatAreNoTextAreRefusedByName(t *testing.T) {
	for _, name := range []string{"\xff\xfe", "bad\xc3/file"} {
		j := newJob(t, "**")
		j.write(name)
		j.refused(forge.OutputRefused, `\x`, "UTF-8")
		j.out.Patterns = []string{"**", "!*"} // what nothing takes may have any name
		j.write("ok")
		j.out.Patterns = append(j.out.Patterns, "ok")
		j.want(`ok "ok"`)
	}
}

// As whom the agent runs decides what it may read; what it may not read it names.
func TestWhatCannotBeReadIsRefusedByName(t *testing.T) {
	j := newJob(t, "**")
	j.write("closed/file", "locked")
	must(t, os.Chmod(filepath.Join(j.source, "locked"), 0))
	must(t, os.Chmod(filepath.Join(j.source, "closed"), 0))
	t.Cleanup(func() { must(t, os.Chmod(filepath.Join(j.source, "closed"), 0o700)) })
	if os.Getuid() == 0 {
		j.want(`closed/file "closed/file"`, `locked "locked"`)
		return
	}
	j.refused(forge.OutputRefused, `"closed"`, `"locked"`, "may not be read")
}

// Case B83: somebody changes things while they are captured.
func TestASwapDuringTheCaptureIsHarmless(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("precious"), 0o600))
	for what, swap := range map[string]func(file, folder string) error{
		"the file becomes a link": func(file, _ string) error {
			return errors.Join(os.Remove(file), os.Symlink(filepath.Join(outside, "file"), file))
		},
		"the file becomes a pipe": func(file, _ string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) },
		"the file becomes another file": func(file, _ string) error {
			return errors.Join(os.Rename(file, file+"2"), os.WriteFile(file, []byte("f"), 0o600))
		},
		"the file grows":                func(file, _ string) error { return os.WriteFile(file, make([]byte, 1000), 0o600) },
		"the file shrinks":              func(file, _ string) error { return os.Truncate(file, 0) },
		"the folder becomes a link out": func(_, folder string) error { return errors.Join(os.RemoveAll(folder), os.Symlink(outside, folder)) },
		"the folder becomes a link in": func(_, folder string) error {
			return errors.Join(os.Rename(folder, folder+"2"), os.Mkdir(folder+"3", 0o700), os.Symlink("zz3", folder))
		},
		"the folder becomes a pipe": func(_, folder string) error { return errors.Join(os.RemoveAll(folder), unix.Mkfifo(folder, 0o600)) },
	} {
		t.Run(what, func(t *testing.T) {
			j := newJob(t)
			j.write("zz/file")
			source, err := os.OpenRoot(j.source)
			must(t, err)
			folder, err := source.OpenRoot("zz")
			must(t, err)
			ofFolder, err := source.Lstat("zz")
			must(t, err)
			ofFile, err := folder.Lstat("file")
			must(t, err)
			must(t, swap(filepath.Join(j.source, "zz", "file"), filepath.Join(j.source, "zz")))
			if strings.Contains(what, "folder") {
				_, err = capture.OpenFolder(source, ofFolder)
			} else {
				_, err = capture.OpenFile(folder, ofFile)
			}
			if !errors.Is(err, capture.ErrChanged) {
				t.Errorf("it is opened: %v", err)
			}
			must(t, errors.Join(folder.Close(), source.Close()))
		})
	}
}

func TestAFileThatChangesWhileItIsReadIsRefused(t *testing.T) {
	for what, change := range map[string]func(at string) error{
		"it grows":   func(at string) error { return os.WriteFile(at, make([]byte, 200_000), 0o600) },
		"it shrinks": func(at string) error { return os.Truncate(at, 99_999) },
		"it is written again": func(at string) error {
			return errors.Join(os.WriteFile(at, make([]byte, 100_000), 0o600), os.Chtimes(at, time.Unix(1, 0), time.Unix(1, 0)))
		},
	} {
		j := newJob(t, "**")
		at := filepath.Join(j.source, "file")
		must(t, os.WriteFile(at, make([]byte, 100_000), 0o600))
		j.sink.before = func(_ context.Context, r io.Reader) error {
			_, err := io.CopyN(io.Discard, r, 5000)
			return errors.Join(err, change(at))
		}
		t.Log(what)
		j.refused(forge.OutputRefused, `"file"`, "has changed")
	}
}

// Hard links are files with the same bytes.
func TestFilesWithSeveralNamesAreKeptUnderEach(t *testing.T) {
	j := newJob(t, "**")
	j.write("a")
	must(t, os.Link(filepath.Join(j.source, "a"), filepath.Join(j.source, "b")))
	j.want(`a "a"`, `b "a"`)
}
