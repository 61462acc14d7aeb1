// Package disk is how our programs treat the files that they rest on: written whole or not at all, locked by one process,
// and belonging to the user who runs it.
//
// What it promises holds on a file system that keeps what it was asked to flush. It knows no format, keeps no file open
// and starts no goroutine.
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLocked says that another process has the lock.
var ErrLocked = errors.New("locked by another process")

// WriteFile makes data the contents of a file, durably and all at once: whoever reads it finds what was there before, or
// data, also after the end of this process or machine at any moment. What such an end leaves behind is a file beside it
// whose name begins with a dot, for the owner alone. The folder must exist.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // made with 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes the names in a folder durable. Windows has no such call and needs none.
func SyncFolder(path string) error {
	if err := syncFolder(path); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}

// Lock takes the lock of an open file, without waiting. It ends with the file's last descriptor, at the latest with the
// process. The error is of the kind ErrLocked where somebody else has it.
func Lock(f *os.File) error {
	if err := lock(f); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// Ours reports whether a file belongs to the user who runs this process: what belongs to another one is that one's to
// change, whatever its mode. On Windows, where access lists say who may do what, it is always true.
func Ours(info os.FileInfo) bool { return ours(info) }

// ErrOwner says that something belongs to another user, who could change it at any time.
var ErrOwner = errors.New("belongs to another user than the one who runs this program; use another folder, or chown it if nobody else has written to it")

// PrivateFolder makes a folder that only its owner reaches, or an existing one private. A folder of another user is refused,
// with an error of the kind ErrOwner.
func PrivateFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case !Ours(info):
		return fmt.Errorf("%s %w", path, ErrOwner)
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o700)
	}
	return nil
}
