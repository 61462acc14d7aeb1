package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// maxSubmodules bounds how deep submodules stand in submodules.
const maxSubmodules = 16

// repository lists what git says belongs to a repository that stands at prefix, and its submodules.
func (l *lister) repository(ctx context.Context, repo *git.Repo, prefix string, depth int) error {
	if depth > maxSubmodules {
		return l.whole(fmt.Sprintf("has submodules in submodules more than %d deep: %q", maxSubmodules, prefix))
	}
	for _, name := range []string{
		filepath.Join(repo.Dir, "index"), filepath.Join(repo.Dir, "config.worktree"),
		filepath.Join(repo.Common, "config"), filepath.Join(repo.Common, "info", "exclude"),
	} {
		if err := l.guard(name); err != nil {
			return err
		}
	}
	trusts, err := repo.TrustsModes(ctx)
	if err != nil {
		return err
	}
	items, err := repo.List(ctx)
	if err != nil {
		return err
	}
	w := &repoWalk{lister: l, repo: repo, prefix: prefix, trusts: trusts}
	w.sort(items)
	if err := w.walk(ctx); err != nil {
		return err
	}
	w.noteSparse()
	for _, sub := range w.submodules {
		if err := l.submodule(ctx, path.Join(prefix, sub), depth); err != nil {
			return err
		}
	}
	return nil
}

// submodule lists one that is checked out. One that is not is a folder to watch.
func (l *lister) submodule(ctx context.Context, at string, depth int) error {
	top := filepath.Join(l.dir, filepath.FromSlash(at))
	if info, err := os.Lstat(top); err != nil || !info.IsDir() {
		return l.missingSubmodule(at, top)
	}
	if _, err := os.Lstat(filepath.Join(top, ".git")); err != nil {
		return l.missingSubmodule(at, top)
	}
	repo, err := git.Open(ctx, top)
	if err != nil {
		return fmt.Errorf("submodule %q: %w", at, err)
	}
	return errors.Join(l.repository(ctx, repo, at, depth+1), repo.Close())
}

func (l *lister) missingSubmodule(at, top string) error {
	l.note(Warning{MissingSubmodule, at, "a submodule that is not checked out here; git submodule update --init --recursive fetches it"})
	return l.guard(top)
}

// repoWalk walks the folders of one repository, to find what the listing of git depends on, and which of its paths are there.
type repoWalk struct {
	*lister
	repo   *git.Repo
	prefix string // of the repository below the root
	trusts bool   // the bits on disk count

	items      map[string][]git.Listed // by folder, from the repository's top
	apart      map[string]bool         // folders that belong to other repositories
	submodules []string
	sparse     []string // what a sparse checkout may keep away
}

// sort puts what git lists where the walk looks for it.
func (w *repoWalk) sort(items []git.Listed) {
	w.items, w.apart = map[string][]git.Listed{"": nil}, map[string]bool{}
	for _, item := range items {
		if item.Sparse {
			w.sparse = append(w.sparse, path.Join(w.prefix, item.Path))
		}
		switch {
		case item.Submodule:
			w.submodules = append(w.submodules, item.Path)
			w.apart[item.Path] = true
		case item.Nested:
			w.apart[item.Path] = true
			at := path.Join(w.prefix, item.Path)
			w.note(Warning{NestedRepository, at, "a git repository of its own that is no submodule; add it as one, or remove its .git"})
		default:
			w.items[parent(item.Path)] = append(w.items[parent(item.Path)], item)
		}
		for dir := parent(item.Path); ; dir = parent(dir) { // the folders on the way hold something of the source
			if _, ok := w.items[dir]; ok {
				break
			}
			w.items[dir] = nil
		}
	}
}

// walk enters folders that hold something of the source, and others unless git ignores them: something could come up there.
func (w *repoWalk) walk(ctx context.Context) error {
	for todo := []string{""}; len(todo) > 0; {
		var next, doubtful []string
		for _, dir := range todo {
			below, err := w.folder(ctx, dir)
			if err != nil {
				return err
			}
			for _, sub := range below {
				if _, ok := w.items[sub]; ok {
					next = append(next, sub)
				} else {
					doubtful = append(doubtful, sub)
				}
			}
		}
		ignored, err := w.repo.Ignored(ctx, doubtful)
		if err != nil {
			return err
		}
		todo = append(next, slices.DeleteFunc(doubtful, func(dir string) bool { return ignored[dir] })...)
	}
	return nil
}

// folder takes what git lists in a folder and is there, and returns the folders in it.
func (w *repoWalk) folder(ctx context.Context, dir string) (below []string, err error) {
	f, names, err := w.enter(ctx, path.Join(w.prefix, dir))
	if err != nil || f == nil {
		return nil, err
	}
	there := make(map[string]bool, len(names)) // to whether it is a folder
	for _, name := range names {
		there[name.Name()] = name.IsDir()
		at := path.Join(dir, name.Name())
		switch {
		case name.Name() == ".gitignore":
			if err := w.guard(filepath.Join(w.dir, filepath.FromSlash(f.path), ".gitignore")); err != nil {
				return nil, err
			}
		case name.IsDir() && w.apart[at]:
			if err := w.guard(filepath.Join(w.dir, filepath.FromSlash(f.path), name.Name())); err != nil {
				return nil, err
			}
		case name.IsDir() && name.Name() != ".git":
			below = append(below, at)
		}
	}
	return below, w.present(f, dir, there)
}

// present takes those of a folder's paths that are there and no folders.
func (w *repoWalk) present(f *folder, dir string, there map[string]bool) error {
	for _, item := range w.items[dir] {
		name := item.Path[strings.LastIndexByte(item.Path, '/')+1:]
		isFolder, ok := there[name]
		if !ok { // it may still be there under a name that this file system takes for the same
			s, err := w.look.stamp(path.Join(f.path, name))
			ok, isFolder = err == nil, s.is(typeFolder)
		}
		if !ok || isFolder {
			continue
		}
		w.fresh.untracked = w.fresh.untracked || item.Untracked
		if err := w.take(f, name, w.bit(item)); err != nil {
			return err
		}
	}
	return nil
}

// bit is where a file's executable bit comes from.
func (w *repoWalk) bit(item git.Listed) bit {
	switch {
	case w.trusts && foldersTell:
		return fromDisk
	case item.Executable:
		return bitOn
	default:
		return bitOff
	}
}

// noteSparse counts what a sparse checkout keeps away.
func (w *repoWalk) noteSparse() {
	away := 0
	for _, at := range w.sparse {
		if _, err := w.look.stamp(at); err != nil {
			away++
		}
	}
	if away > 0 {
		text := fmt.Sprintf("%d tracked files that the sparse checkout does not want here; git sparse-checkout disable brings them", away)
		w.note(Warning{SparseFiles, path.Join(w.prefix, "."), text})
	}
}
