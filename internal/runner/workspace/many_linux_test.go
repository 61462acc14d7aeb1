package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

// A job can leave more files than anybody should wait for: the next attempt has its folder at once, a process that ends before they
// are gone leaves the rest, and the next one removes it. A million files with FORGEYARD_NIGHTLY=1.
func TestManySmallFilesAreRemovedBehindTheBackOfTheNextAttempt(t *testing.T) {
	const folders = 20
	each := 500
	if os.Getenv("FORGEYARD_NIGHTLY") != "" {
		each = 50_000
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // a disk takes long to make them
	}
	dir := filepath.Join(t.TempDir(), "work")
	r, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	id, path := made(t, r)
	for i := range folders {
		must(t, fill(filepath.Join(path, workspace.Source, strconv.Itoa(i)), each))
	}
	open0 := descriptors(t)
	must(t, r.Remove(id))
	_, err = r.Make(id)
	must(t, err)
	if n := r.Waiting(); n > 1 {
		t.Errorf("%d trees wait, and one was removed", n)
	}
	if n := descriptors(t); n > open0+10 {
		t.Errorf("%d descriptors are open, before %d", n, open0)
	}
	must(t, r.Close()) // which waits a while, and not for a million
	next, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	_, err = next.Sweep(t.Context(), none)
	must(t, err)
	nothingLeft(t, next, dir)
	must(t, next.Close())
}

// fill makes a folder of many files of a few bytes.
func fill(dir string, files int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for i := range files {
		f, err := unix.Openat(fd, strconv.Itoa(i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o400)
		if err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		_, err = unix.Write(f, []byte("few"))
		if err = errors.Join(err, unix.Close(f)); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
	}
	return unix.Close(fd)
}
