package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// maxDepth is how deep a tree is walked at once. What lies deeper is renamed to the top and removed from there, so that no
// tree needs more open files or a longer path than there can be.
const maxDepth = 64

// remove removes a tree. The quick way is enough for nearly all.
func (r *Root) remove(name string) error {
	if err := r.root.RemoveAll(name); err == nil {
		return nil
	}
	return r.removeSlowly(name)
}

// removeSlowly removes what the quick way could not.
func (r *Root) removeSlowly(name string) error {
	pending := []string{name}
	for len(pending) > 0 {
		last := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		deeper, err := r.clear(last, 0)
		if err != nil {
			return err
		}
		pending = append(pending, deeper...)
	}
	return nil
}

// clear removes a tree entry by entry, after it has made each changeable. It returns the names under which what was too
// deep now lies at the top. Links are removed, never followed.
func (r *Root) clear(name string, depth int) (deeper []string, err error) {
	info, err := r.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		r.unlock(name)
		if err := r.root.Chmod(name, 0o700); err != nil {
			return nil, err
		}
		if deeper, err = r.clearEntries(name, depth); err != nil {
			return nil, err
		}
	case info.Mode().IsRegular():
		if err := r.root.Remove(name); err == nil {
			return nil, nil
		}
		r.unlock(name)
	}
	return deeper, r.root.Remove(name)
}

func (r *Root) clearEntries(name string, depth int) (deeper []string, err error) {
	dir, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	for _, entry := range names {
		at := path.Join(name, entry)
		if depth == maxDepth {
			top := fmt.Sprintf("%s%d-%d", gonePrefix, os.Getpid(), r.gone.Add(1))
			r.unlock(at)
			if err := r.root.Rename(at, top); err != nil {
				return nil, err
			}
			deeper = append(deeper, top)
			continue
		}
		more, err := r.clear(at, depth+1)
		if err != nil {
			return nil, err
		}
		deeper = append(deeper, more...)
	}
	return deeper, nil
}
