// Package workspace makes the folders in which attempts run, and takes them away again.
//
//	<root>/<attempt>/{source,build,home,tmp,outputs}   fresh for each attempt, and nobody else's
//	<root>/.gone-…                                     on its way out
//
// A workload may leave anything behind: folders that nobody may enter, files that nobody may change, links to
// elsewhere, trees deeper than a path can say. All of it is removed, and nothing outside is touched: every path is resolved
// within the root, and what was mounted there is unmounted, not emptied.
//
// What is to go is renamed first, so that an attempt's name is free at once, and half a folder is never taken for a whole
// one. Then it is removed in the background, one tree after the other, so that the next attempt does not wait for it. What
// an earlier process has left half removed, Sweep finds by its name and goes on with.
//
// The package knows nothing of what runs in a folder; whoever removes one has ended that before. A Root has at most one
// goroutine, which exists while something waits to be removed; Close joins it. Its methods may be called from several.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
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
	opts Options
	gone atomic.Uint64 // numbers what was renamed

	stop    chan struct{} // closed when removing has to end where it is
	removes sync.WaitGroup

	mu       sync.Mutex
	queue    []string // names that are on their way out; the first is being removed while removing
	removing bool     // the goroutine exists
	closed   bool
	moved    chan struct{}    // closed, and made anew, when the queue gets shorter, and at the end
	failed   map[string]error // names that could not be removed, until a sweep tries again
}

// Options are what a Root is told. The zero value is fine.
type Options struct {
	// Failed hears once of each tree that could not be removed, from the goroutine that tried; Sweep tries again. nil: nobody
	// does, but Sweep.
	Failed func(err error)
	// Removed hears of each tree that was removed, from the goroutine that did: the disk has its room again. nil: nobody does.
	Removed func()
}

// Open takes a folder as the root, and makes it if it is not there. Close gives it back. Nobody but the agent's user may reach
// what is in it: a job's files are that user's, and a job may make programs of them that run as their owner.
func Open(dir string, opts Options) (*Root, error) {
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
	return &Root{
		path: dir, root: root, opts: opts,
		stop: make(chan struct{}), moved: make(chan struct{}), failed: map[string]error{},
	}, nil
}

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

// Remove takes the folder of an attempt away with all that is in it: when it returns nothing has that name, and what was
// there is removed in the background. If too much waits for that already, it waits too. One that is not there is no error.
// What cannot be removed, Options.Failed and Sweep hear of; Remove itself fails only once the root is closed.
func (r *Root) Remove(attempt forge.AttemptID) error {
	gone := r.discard(attempt.String())
	if gone == "" {
		return nil
	}
	if _, err := r.enqueue(gone); err != nil {
		return fmt.Errorf("remove workspace %v: %w", attempt, err)
	}
	r.throttle()
	return nil
}

// Sweep takes away the workspace of every attempt that keep does not name, and tries what earlier removals have left. It
// returns how many there were, once all has been removed or cannot be, or ctx has ended. Entries that no workspace has made
// are left alone and named in the error, as is what cannot be removed.
func (r *Root) Sweep(ctx context.Context, keep func(forge.AttemptID) bool) (removed int, err error) {
	entries, err := fs.ReadDir(r.root.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("sweep workspaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		gone := e.Name()
		attempt, bad := forge.ParseID[forge.AttemptID](e.Name())
		switch {
		case strings.HasPrefix(gone, gonePrefix):
		case bad != nil:
			errs = append(errs, fmt.Errorf("%s is no workspace; move it elsewhere", gone))
			continue
		case keep(attempt):
			continue
		default:
			gone = r.discard(gone)
		}
		if gone == "" {
			continue
		}
		switch added, err := r.enqueue(gone); {
		case err != nil:
			errs = append(errs, err)
		case added:
			removed++
		}
	}
	errs = append(errs, r.Idle(ctx))
	failed := r.failures()
	if err := errors.Join(append(errs, failed...)...); err != nil {
		return max(0, removed-len(failed)), fmt.Errorf("sweep workspaces: %w", err)
	}
	return removed, nil
}

// Free says how much of the disk below the root is free for us, and how much there is. What waits to be removed is not free
// yet, and nobody is promised it: an attempt that comes too early for it waits or is refused, and Options.Removed hears when to look again.
func (r *Root) Free() (free, total forge.Bytes, err error) {
	free, total, err = diskSpace(r.path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the disk of %s: %w", r.path, err)
	}
	return free, total, nil
}

// discard renames a folder to something that is on its way out. It returns nothing if there is none. What cannot be renamed,
// because the disk is full to the last block or something is mounted on it, is on its way out under its own name.
func (r *Root) discard(name string) string {
	gone := fmt.Sprintf("%s%s-%d", gonePrefix, name, r.gone.Add(1))
	err := r.root.Rename(name, gone)
	if err != nil && unlock(r.root, name) { // what must not be changed must not be renamed either
		err = r.root.Rename(name, gone)
	}
	switch {
	case err == nil:
		return gone
	case errors.Is(err, fs.ErrNotExist):
		return "" // somebody else was faster
	default:
		return name
	}
}
