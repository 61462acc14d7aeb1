package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// Bounds of what a removal takes, whatever a workload has left. os.RemoveAll has none: it holds a file open and goes one call
// deeper for each level, so that a deep tree takes every descriptor of the agent, and in the end its stack.
const (
	maxDepth = 64   // levels that are entered at once, with an open folder each
	maxNames = 1024 // that are kept of a folder at a time
)

// removal takes one tree away. What lies deeper than maxDepth is put aside, for the next one.
type removal struct {
	*Root
	aside string // folder at the top for what is too deep; empty while there is none
	moved int    // entries in it
}

// remove removes a tree.
func (r *Root) remove(name string) error {
	for name != "" {
		v := removal{Root: r}
		if err := v.clear(r.root, name, name, 0); err != nil {
			return err
		}
		name = v.aside
	}
	return nil
}

// clear removes an entry of a folder and all that is in it, which it makes changeable where it must. at is its path from
// the top. Links are removed, never followed.
func (v *removal) clear(in *os.Root, name, at string, depth int) error {
	first := in.Remove(name)
	if first == nil || errors.Is(first, fs.ErrNotExist) {
		return nil
	}
	info, err := in.Lstat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		if err := open(in, name, info); err != nil {
			return err
		}
		if depth == maxDepth {
			return v.put(at)
		}
		if err := v.empty(in, name, at, depth); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		unlock(in, name)
	default:
		return first
	}
	return in.Remove(name)
}

// open makes a folder one that can be entered and changed.
func open(in *os.Root, name string, info fs.FileInfo) error {
	unlock(in, name)
	if info.Mode().Perm()&0o700 == 0o700 {
		return nil
	}
	return in.Chmod(name, 0o700)
}

// empty removes what is in a folder.
func (v *removal) empty(in *os.Root, name, at string, depth int) (err error) {
	folder, err := in.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	for {
		names, err := some(folder)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, entry := range names {
			if err := v.clear(folder, entry, path.Join(at, entry), depth+1); err != nil {
				return err
			}
		}
	}
}

// some lists a part of what is in a folder now; none where there is nothing.
func some(folder *os.Root) ([]string, error) {
	dir, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, dir.Close())
}

// put puts a tree aside.
func (v *removal) put(at string) error {
	if v.aside == "" {
		aside := fmt.Sprintf("%s%d-%d", gonePrefix, os.Getpid(), v.gone.Add(1))
		if err := v.root.Mkdir(aside, 0o700); err != nil {
			return err
		}
		v.aside = aside
	}
	v.moved++
	return v.root.Rename(at, path.Join(v.aside, strconv.Itoa(v.moved)))
}
