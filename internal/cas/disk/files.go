package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	osdisk "github.com/forgeyard/forgeyard/internal/disk"
)

// files is what a store asks of its file system. Each method is one step: tests let it fail, or let everything end before
// or after it.
type files interface {
	enter(dir string) error                     // before what is in dir is used often
	leave() error                               // paths in dir work on; it may be called again
	create(path string) (io.WriteCloser, error) // a new file, 0444 from the start
	resume(path string) (file, error)           // a file of the owner's, made if it is not there, and to be written though it was 0444
	open(path string) (object, error)           // for reading
	stat(path string) (facts, error)
	list(path string) ([]os.DirEntry, error)
	rename(from, to string) error
	remove(path string) error
	mkdir(path string) error // there already is no error
	touch(path string, now time.Time) error
	syncFile(path string) error
	syncFolder(path string) error
	syncAll(path string) error // the whole file system of path; errors.ErrUnsupported where there is no such call
	free(path string) (uint64, error)
}

// file is an open file.
type file interface {
	io.ReadWriteCloser
	io.Seeker
	Truncate(size int64) error
	Chmod(mode os.FileMode) error
	Sync() error
	Stat() (os.FileInfo, error)
}

// object is an open file that is only read, by one goroutine.
type object interface {
	io.ReadCloser
	look() (facts, error)
	osFile() *os.File // the same file, closed with it
}

// facts is what a store wants to know about a file.
type facts struct {
	bytes    uint64
	modified time.Time
	regular  bool
	identity identity // which file it is, whatever its name
}

func (*system) resume(path string) (file, error) {
	const flags = os.O_RDWR | os.O_CREATE
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, os.ErrPermission) { // a process ended between the last byte and the name of the object
		if err = os.Chmod(path, 0o600); err == nil {
			f, err = os.OpenFile(path, flags, 0o600)
		}
	}
	if err != nil {
		return nil, err // and no file that is not nil
	}
	return f, nil
}

func (*system) list(path string) ([]os.DirEntry, error) { return os.ReadDir(path) }
func (*system) remove(path string) error                { return os.Remove(path) }
func (*system) touch(path string, now time.Time) error  { return os.Chtimes(path, now, now) }
func (*system) syncFolder(path string) error            { return osdisk.SyncFolder(path) }
func (*system) syncAll(path string) error               { return syncAll(path) }
func (*system) free(path string) (uint64, error)        { return free(path) }

func (*system) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func (*system) syncFile(path string) error {
	f, err := openToSync(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// layout names the files of a store.
type layout struct{ dir string }

func (l layout) lock() string       { return filepath.Join(l.dir, "lock") }
func (l layout) objects() string    { return filepath.Join(l.dir, "b3") }
func (l layout) temps() string      { return filepath.Join(l.dir, "tmp") }
func (l layout) parts() string      { return filepath.Join(l.dir, "parts") }
func (l layout) quarantine() string { return filepath.Join(l.dir, "quarantine") }
