package trust

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/forgeyard/forgeyard/internal/disk"
)

const (
	folderMode = 0o700
	secretMode = 0o600
	publicMode = 0o644

	// maxFile bounds every file that is read here.
	maxFile = 64 << 10
)

// ErrPermissions is the kind of error for a key or folder that others than its owner can reach.
var ErrPermissions = errors.New("others than its owner can reach it")

// checkPrivate refuses a file or folder that its group or others may read, write or enter. Windows has no such bits: the
// folder inherits the access list of the one above.
func checkPrivate(path string, info os.FileInfo) error {
	if runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	narrow := "0600"
	if info.IsDir() {
		narrow = "0700"
	}
	return fmt.Errorf("%s has mode %04o: %w; if nobody else has read it, run: chmod %s %s",
		path, info.Mode().Perm(), ErrPermissions, narrow, path)
}

// checkFolder refuses a folder that is not private, or is another user's.
func checkFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if !disk.Ours(info) {
		return fmt.Errorf("%s belongs to another user than the one who runs this: %w; use another folder, or chown it if nobody else has written to it", dir, ErrPermissions)
	}
	return checkPrivate(dir, info)
}

// readSecret reads a regular, private file of at most maxFile bytes.
func readSecret(path string) ([]byte, error) {
	return readFile(path, checkPrivate)
}

// readPublic reads a regular file of at most maxFile bytes.
func readPublic(path string) ([]byte, error) {
	return readFile(path, func(string, os.FileInfo) error { return nil })
}

func readFile(path string, check func(string, os.FileInfo) error) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return data, err
}
