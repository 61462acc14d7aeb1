package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// mounted is where systems have their control groups.
const mounted = "/sys/fs/cgroup"

// Made lists the paths of all groups that are there for the agent of a state folder, whether it lives or not, in every hierarchy
// and wherever it was started; without groups, those of the folders that they would be in. It is for whoever wants to know
// from outside whether anything is left.
func Made(state string) ([]string, error) {
	mark, err := markOf(state)
	if err != nil {
		return nil, err
	}
	var made []string
	err = filepath.WalkDir(mounted, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && gone(err), err == nil && (!d.IsDir() || d.Name() != folder(mark)):
			return nil
		case err != nil:
			return err
		}
		groups, err := foldersIn(path)
		if err != nil {
			return err
		}
		if len(groups) == 0 {
			groups = []string{path}
		}
		made = append(made, groups...)
		return fs.SkipDir
	})
	slices.Sort(made)
	return made, err
}

// foldersIn lists the paths of the folders in a folder.
func foldersIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if gone(err) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}
