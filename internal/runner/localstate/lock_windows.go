package localstate

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// takeLock opens a file and locks it until it is closed, also by the end of the process.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		err = fmt.Errorf("%w: %s", ErrInUse, path)
	default:
		err = fmt.Errorf("lock state folder: %w", err)
	}
	return nil, errors.Join(err, file.Close())
}

// ours is always true: access lists say here who may do what.
func ours(os.FileInfo) bool { return true }
