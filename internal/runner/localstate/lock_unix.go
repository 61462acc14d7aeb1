//go:build unix

package localstate

import (
	"errors"
	"fmt"
	"os"
	"syscall"

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

// ours reports whether a file belongs to the user who runs this process: what belongs to another one is that one's to change,
// whatever its mode.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}
