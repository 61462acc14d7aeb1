package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Bounds of what a removal takes, whatever a workload has left. os.RemoveAll has none: it holds a file open and goes one call
// deeper for each level, so that a deep tree takes every descriptor of the agent, and in the end its stack.
const (
	maxDepth  = 64   // levels that are entered at once, with an open folder each
	maxNames  = 1024 // that are kept of a folder at a time
	maxMounts = 16   // on one entry
	maxTries  = 16   // at a name
	maxPasses = 16   // through one folder, of which the last finds nothing: more and somebody is writing there
)

// removal takes one tree away. What lies deeper than maxDepth is put aside, for the next one.
type removal struct {
	*Root
	aside string // what was too deep, at the top; empty while there is nothing
}

// folder is an open folder: its names are resolved in it, and listed.
type folder struct {
	*os.Root
	dir *os.File
}

// openFolder opens a folder and nothing else, which the dot behind its name says: to open a pipe could take for ever.
func openFolder(in *os.Root, name string) (*folder, error) {
	root, err := in.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &folder{Root: root, dir: dir}, nil
}

// Close gives both back.
func (f *folder) Close() error { return errors.Join(f.dir.Close(), f.Root.Close()) }

// remove removes a tree.
func (r *Root) remove(name string) error {
	top, err := openFolder(r.root, ".")
	if err != nil {
		return err
	}
	for name != "" && err == nil {
		v := removal{Root: r}
		err = v.clear(top, name, "", 0)
		name = v.aside
	}
	return errors.Join(err, top.Close())
}

// clear removes an entry of a folder and all that is in it. up is the path of that folder from the top. Links are removed, never followed.
// What keeps an entry from being changed is taken away, but only after a try: it is rare, and costs as much to look at.
func (v *removal) clear(in *folder, name, up string, depth int) error {
	if v.stopped() {
		return errStopped
	}
	err := in.Remove(name)
	for range maxMounts {
		if !busy(err) || unmount(in, name) != nil {
			break
		}
		err = in.Remove(name)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, statErr := in.Lstat(name)
	switch {
	case statErr != nil:
		return statErr
	case info.IsDir():
		return v.clearFolder(in, name, path.Join(up, name), info, depth)
	case info.Mode().IsRegular() && unlock(in.Root, name):
		return in.Remove(name)
	default:
		return err
	}
}

// clearFolder empties a folder and removes it. It tries again only where something has changed, since each level does so.
func (v *removal) clearFolder(in *folder, name, at string, info fs.FileInfo, depth int) error {
	if info.Mode().Perm()&0o700 != 0o700 {
		err := in.Chmod(name, 0o700)
		if err != nil && unlock(in.Root, name) {
			err = in.Chmod(name, 0o700)
		}
		if err != nil {
			return err
		}
	}
	err := v.tryFolder(in, name, at, depth)
	if errors.Is(err, fs.ErrPermission) && unlock(in.Root, name) {
		err = v.tryFolder(in, name, at, depth)
	}
	return err
}

// tryFolder does so once.
func (v *removal) tryFolder(in *folder, name, at string, depth int) error {
	if depth == maxDepth {
		return v.put(at)
	}
	f, err := v.enter(in, name)
	if err != nil {
		return err
	}
	if err := errors.Join(v.empty(f, name, at, depth), f.Close()); err != nil {
		return err
	}
	return in.Remove(name)
}

// enter opens a folder in a folder, once nothing is mounted on it.
func (v *removal) enter(in *folder, name string) (*folder, error) {
	for range maxMounts {
		f, err := openFolder(in.Root, name)
		if err != nil || !mounted(in, f) {
			return f, err
		}
		if err := errors.Join(f.Close(), unmount(in, name)); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("on %s more than %d file systems are mounted", name, maxMounts)
}

// empty removes what is in a folder. It goes through it until it finds nothing: to begin anew after each part would cost the
// square of its size, and to go through it once is not promised to find all. What cannot be removed keeps nothing else.
func (v *removal) empty(f *folder, name, at string, depth int) error {
	for range maxPasses {
		found, err := v.pass(f, at, depth)
		if err != nil || !found {
			return err
		}
		if _, err := f.dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s fills up while it is emptied", name)
}

// pass goes through a folder once. It returns the first of the errors.
func (v *removal) pass(f *folder, at string, depth int) (found bool, first error) {
	for {
		names, err := f.dir.Readdirnames(maxNames)
		switch {
		case errors.Is(err, io.EOF):
			return found, first
		case err != nil:
			return found, errors.Join(first, err)
		}
		found = true
		for _, entry := range names {
			err := v.clear(f, entry, at, depth+1)
			if errors.Is(err, errStopped) {
				return found, err
			} else if err != nil && first == nil {
				first = err
			}
		}
	}
}

// put puts a tree aside. The first becomes the folder for the others: a full disk has no room for a new one. A workload may
// have taken the names there that we give.
func (v *removal) put(at string) (err error) {
	for range maxTries {
		to := path.Join(v.aside, fmt.Sprintf("%s%d-%d", gonePrefix, os.Getpid(), v.gone.Add(1)))
		if err = v.root.Rename(at, to); err == nil {
			if v.aside == "" {
				v.aside = to
			}
			return nil
		}
	}
	return err
}
