// Package workspace makes the folders in which attempts run, and takes them away again.
//
//	<root>/<attempt>/{source,build,home,tmp,outputs}   fresh for each attempt, and nobody else's
//	<root>/.gone-…                                     on its way out
//
// A workload may leave anything behind: folders that nobody may enter, files that nobody may change, links to
// elsewhere. All of it is removed, and nothing outside is touched: every path is resolved within the root. What is to go
// is renamed first, so that an attempt's name is free at once, and half a folder is never taken for a whole one.
//
// The package knows nothing of what runs in a folder; whoever removes one has ended that before. It starts no goroutine.
// Its methods may be called from several at once.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// The folders of an attempt.
const (
	Source  = forge.SourceDir
	Build   = "build"
	Home    = "home"
	Temp    = "tmp"
	Outputs = "outputs"
)

// gonePrefix begins the names of what is on its way out.
const gonePrefix = ".gone-"

// Root is the folder of all workspaces of an agent.
type Root struct {
	path string
	root *os.Root
	gone atomic.Uint64 // numbers what was renamed
}

// Open takes a folder as the root, and makes it if it is not there. Close gives it back. Nobody but the agent's user may reach
// what is in it: a job's files are that user's, and a job may make programs of them that run as their owner.
func Open(dir string) (*Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspaces: %w", err)
	}
	if err := root.Chmod(".", 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("open workspaces: keep %s from others: %w", dir, err), root.Close())
	}
	return &Root{path: dir, root: root}, nil
}

// Close gives the root back. Workspaces stay.
func (r *Root) Close() error { return r.root.Close() }

// Make makes the folder of an attempt, with its parts, and returns its absolute path. It refuses one that is there.
func (r *Root) Make(attempt forge.AttemptID) (string, error) {
	name := attempt.String()
	if err := r.root.Mkdir(name, 0o700); err != nil {
		return "", fmt.Errorf("make workspace: %w", err)
	}
	for _, part := range []string{Source, Build, Home, Temp, Outputs} {
		if err := r.root.Mkdir(path.Join(name, part), 0o700); err != nil {
			return "", errors.Join(fmt.Errorf("make workspace: %w", err), r.Remove(attempt))
		}
	}
	return filepath.Join(r.path, name), nil
}

// Remove removes the folder of an attempt with all that is in it. One that is not there is no error. After an error it may
// be tried again, as Sweep does.
func (r *Root) Remove(attempt forge.AttemptID) error {
	name := attempt.String()
	if _, err := r.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := r.discard(name); err != nil {
		return fmt.Errorf("remove workspace %s: %w", name, err)
	}
	return nil
}

// Sweep removes the workspace of every attempt that keep does not name, and what earlier removals have left. It returns
// how many there were. Entries that no workspace has made are left alone and named in the error.
func (r *Root) Sweep(keep func(forge.AttemptID) bool) (removed int, err error) {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("sweep workspaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		switch attempt, bad := forge.ParseID[forge.AttemptID](e.Name()); {
		case strings.HasPrefix(e.Name(), gonePrefix):
			err = r.remove(e.Name())
		case bad != nil:
			err = fmt.Errorf("%s is no workspace; move it elsewhere", e.Name())
		case keep(attempt):
			continue
		default:
			err = r.Remove(attempt)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("sweep workspaces: %w", err)
	}
	return removed, nil
}

// Free says how much of the disk below the root is free for us, and how much there is.
func (r *Root) Free() (free, total forge.Bytes, err error) {
	free, total, err = diskSpace(r.path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the disk of %s: %w", r.path, err)
	}
	return free, total, nil
}

// discard renames a folder and removes it.
func (r *Root) discard(name string) error {
	gone := fmt.Sprintf("%s%s-%d", gonePrefix, name, r.gone.Add(1))
	if err := r.root.Rename(name, gone); err != nil {
		unlock(r.root, name) // what must not be changed must not be renamed either
		switch err := r.root.Rename(name, gone); {
		case errors.Is(err, fs.ErrNotExist):
			return nil // somebody else was faster
		case err != nil:
			return err
		}
	}
	return r.remove(gone)
}
