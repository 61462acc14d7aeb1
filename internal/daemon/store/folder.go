package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/disk"
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
	if err := disk.PrivateFolder(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := disk.Lock(lock); err != nil {
		if errors.Is(err, disk.ErrLocked) {
			err = ErrLocked
		}
		return nil, errors.Join(err, lock.Close())
	}
	f := &folder{path: path, lock: lock}
	if err := f.makeDatabase(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *folder) database() string { return filepath.Join(f.path, databaseFile) }

func (f *folder) makeDatabase() error {
	db, err := os.OpenFile(f.database(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := db.Stat()
	if err == nil && !disk.Ours(info) {
		err = fmt.Errorf("%s %w", f.database(), disk.ErrOwner)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if err := errors.Join(db.Chmod(0o600), db.Close()); err != nil {
		return fmt.Errorf("make database file: %w", err)
	}
	return disk.SyncFolder(f.path)
}

// close gives the lock back. The file stays: a file that is removed while somebody waits for its lock would let two in.
func (f *folder) close() error { return f.lock.Close() }
