package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// errTooMany ends a walk at its bound.
var errTooMany = errors.New("too many control groups to look at all of them")

// marked says whether a name is that of the folder of any agent.
func marked(name string) bool {
	mark, ok := strings.CutPrefix(name, folderWord)
	return ok && len(mark) == 2*markBytes && strings.Trim(mark, "0123456789abcdef") == ""
}

// Sweep kills and removes every group that has no owner: those of this agent's mark that were
// not made by this Tree, and those of other agents that are dead, as the lock on their folder
// says. That is what agents leave when they are killed, wherever they were started. It says how
// many it removed. What could not be removed is in the error, and is tried again by the next
// Sweep.
func (t *Tree) Sweep() (int, error) {
	found, err := t.leftovers()
	defer found.release()
	errs := []error{err}
	swept := 0
	for _, g := range found.groups {
		if err := errors.Join(g.Kill(), g.rmdir()); err != nil {
			errs = append(errs, fmt.Errorf("sweep cgroup %s: %w", g.name, err))
			continue
		}
		swept++
	}
	for _, dir := range found.folders {
		_ = os.Remove(dir) // Only empty ones go; the others were reported above.
	}
	return swept, errors.Join(errs...)
}

// leftovers are what a look at all hierarchies has found.
type leftovers struct {
	groups  []*Group
	folders []string   // without an owner, or empty and ours
	locks   []*os.File // on folders of dead agents, so that nobody takes them over meanwhile
}

// release lets the locked folders go.
func (l *leftovers) release() {
	for _, f := range l.locks {
		_ = f.Close()
	}
}

// leftovers finds what has no owner. One group has a folder in each hierarchy, found one by
// one, and is known by its mark and name.
func (t *Tree) leftovers() (*leftovers, error) {
	all, dirs := &leftovers{}, map[string]map[string]string{}
	var errs []error
	for controller, base := range t.host.base {
		errs = append(errs, walk(t.host.roots[controller], func(dir string) {
			name, parent := filepath.Base(dir), filepath.Dir(dir)
			switch {
			case marked(name):
				if dir != base && (name == folder(t.mark) || all.lock(dir)) {
					all.folders = append(all.folders, dir)
				}
			case name == folder(t.mark)+agentSuffix:
				all.folders = append(all.folders, dir)
			case filepath.Base(parent) == folder(t.mark) && !t.has(name), slices.Contains(all.folders, parent) && marked(filepath.Base(parent)):
				note(dirs, filepath.Join(filepath.Base(parent), name), controller, dir)
			}
		}))
	}
	for key, dirs := range dirs {
		m, err := t.host.manage(dirs, &cgroups.Resources{SkipDevices: true})
		if errs = append(errs, err); err == nil {
			all.groups = append(all.groups, &Group{tree: t, name: filepath.Base(key), dirs: dirs, manager: m})
		}
	}
	return all, errors.Join(errs...)
}

// lock says whether the owner of a folder is dead, and then keeps others from becoming it.
func (l *leftovers) lock(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	if flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close()
		return false
	}
	l.locks = append(l.locks, f)
	return true
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
func note(found map[string]map[string]string, key, controller, dir string) {
	if found[key] == nil {
		found[key] = map[string]string{}
	}
	found[key][controller] = dir
}
