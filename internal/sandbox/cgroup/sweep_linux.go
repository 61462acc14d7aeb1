package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/cgroups"
)

// errTooMany ends a walk at its bound.
var errTooMany = errors.New("too many control groups to look at all of them")

// Sweep kills and removes every group that bears this agent's mark and was not made by this
// Tree: what agents before it left when they died, wherever they were started. It says how
// many it removed. What could not be removed is in the error, and is tried again by the next
// Sweep.
func (t *Tree) Sweep() (int, error) {
	left, bases, err := t.leftovers()
	errs := []error{err}
	swept := 0
	for _, g := range left {
		if err := errors.Join(g.Kill(), g.rmdir()); err != nil {
			errs = append(errs, fmt.Errorf("sweep cgroup %s: %w", g.name, err))
			continue
		}
		swept++
	}
	for _, base := range bases {
		_ = os.Remove(base) // Only empty ones go; the others were reported above.
	}
	return swept, errors.Join(errs...)
}

// leftovers finds groups with our mark that are not in the books, and the folders of our mark
// in which this Tree makes none. One group has a folder in each hierarchy, found one by one.
func (t *Tree) leftovers() (left []*Group, bases []string, err error) {
	found := map[string]map[string]string{}
	var errs []error
	for controller, base := range t.host.base {
		errs = append(errs, walk(t.host.roots[controller], func(dir string) {
			switch name := filepath.Base(dir); {
			case filepath.Base(filepath.Dir(dir)) == folder(t.mark):
				note(found, name, controller, dir)
			case name == folder(t.mark) && dir != base, name == folder(t.mark)+agentSuffix:
				bases = append(bases, dir)
			}
		}))
	}
	for name, dirs := range found {
		if t.has(name) {
			continue
		}
		m, err := t.host.manage(dirs, &cgroups.Resources{SkipDevices: true})
		if errs = append(errs, err); err == nil {
			left = append(left, &Group{tree: t, name: name, dirs: dirs, manager: m})
		}
	}
	return left, bases, errors.Join(errs...)
}

// has says whether a name is in the books.
func (t *Tree) has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.groups[name]
}

// walk calls see with every folder below a hierarchy's root, down to a depth and up to a
// number. Folders that vanish meanwhile are none.
func walk(root string, see func(dir string)) error {
	looked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && gone(err), err == nil && !d.IsDir():
			return nil
		case err != nil:
			return err
		case looked == maxSwept:
			return errTooMany
		}
		looked++
		see(path)
		if strings.Count(strings.TrimPrefix(path, root), "/") == maxDepth {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for left cgroups in %s: %w", root, err)
	}
	return nil
}

// note keeps the folder of a group in one hierarchy.
func note(found map[string]map[string]string, name, controller, dir string) {
	if found[name] == nil {
		found[name] = map[string]string{}
	}
	found[name][controller] = dir
}
