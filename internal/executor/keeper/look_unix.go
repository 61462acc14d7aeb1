//go:build unix

package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// LookPath finds a program as execvp would, with the PATH and the folder of the step.
func LookPath(name, dir string, env []string) (string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("its folder %s is not there", dir)
	}
	if path, known := Located(name, dir); known {
		return path, nil
	}
	var denied error
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(dir, folder)
		}
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular() && unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil:
			return path, nil
		case err == nil, errors.Is(err, fs.ErrPermission):
			denied = fmt.Errorf("%s: %w", path, fs.ErrPermission)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("%s: %w in PATH", name, ErrNotFound)
}

// Located is the path of a program whose name says where it is, without a look.
func Located(name, dir string) (path string, known bool) {
	switch {
	case !strings.Contains(name, "/"):
		return "", false
	case !filepath.IsAbs(name):
		return filepath.Join(dir, name), true
	}
	return name, true
}

// Explain puts what execve says about a program into words.
func Explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: %w, or the interpreter that it names is not", name, ErrNotFound)
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%s: its arguments and environment are longer than this system allows (128 KiB for each); keep the script in a file", name)
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// openFolder opens a folder and nothing else: a step may put a pipe in its place, which nobody writes to.
func openFolder(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

func variable(env []string, name string) string {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
