//go:build unix

package localstate

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// takeLock opens a file and locks it until it is closed, also by the end of the process.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s", ErrInUse, path)
	default:
		err = fmt.Errorf("lock state folder: %w", err)
	}
	return nil, errors.Join(err, file.Close())
}
