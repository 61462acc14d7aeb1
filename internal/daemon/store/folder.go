package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// folder is a daemon's folder, held by one process at a time.
type folder struct {
	path string
	lock *os.File
}

// openFolder makes a folder if it is not there, takes its lock, and makes the database file, so that SQLite gives the files
// beside it the same permissions: nobody but the daemon's user may read what is in them, or put something in their place.
func openFolder(path string) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makePrivate(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockExclusive(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f := &folder{path: path, lock: lock}
	if err := f.makeDatabase(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// errOwner is for what another user could change at any time.
var errOwner = errors.New("belongs to another user than the one who runs this daemon; use another folder, or chown it if nobody else has written to it")

// makePrivate makes a folder, or an existing one private.
func makePrivate(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !ours(info):
		return fmt.Errorf("%s %w", path, errOwner)
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o700)
	}
	return nil
}

func (f *folder) database() string { return filepath.Join(f.path, databaseFile) }

func (f *folder) makeDatabase() error {
	db, err := os.OpenFile(f.database(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := db.Stat()
	if err == nil && !ours(info) {
		err = fmt.Errorf("%s %w", f.database(), errOwner)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if err := errors.Join(db.Chmod(0o600), db.Close()); err != nil {
		return fmt.Errorf("make database file: %w", err)
	}
	return syncFolder(f.path)
}

// close gives the lock back. The file stays: a file that is removed while somebody waits for its lock would let two in.
func (f *folder) close() error { return f.lock.Close() }
