//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas/treecache"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/snapshot"
)

// treeColdFigure is the whole way of a source that nobody knows yet: its capture into the daemon's store, the check that it is
// complete, its folder made from there, and a sandbox that has it for its source, with nothing started in it. It goes as in
// one process that is daemon and agent: no object is copied but into the store and out of it.
var treeColdFigure = figure{
	name: "tree.cold", unit: "s", limitIs: "cp -a of the tree, in memory as well",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newTreeYard(ctx, treeFiles, true)
		if err != nil {
			return pair{}, err
		}
		return pair{ours: y.cold, limit: y.copy, end: y.close}, nil
	},
}

// treeUnchangedFigure is a capture of a source that is as it was, by one who has its index, into a store that has it.
var treeUnchangedFigure = figure{
	name: "tree.unchanged", unit: "ms", limitIs: "WalkDir and Lstat of every entry, in one goroutine",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newTreeYard(ctx, treeFiles, false)
		if err != nil {
			return pair{}, err
		}
		s, err := y.openStore(ctx)
		if err != nil {
			y.close()
			return pair{}, err
		}
		end := func() {
			_ = s.close()
			y.close()
		}
		for range 2 { // stamps that are too young are looked at again
			if _, err = s.take(ctx, y); err != nil {
				end()
				return pair{}, err
			}
			time.Sleep(3 * time.Second)
		}
		return pair{
			ours: func(ctx context.Context) (float64, error) {
				return inMilliseconds(func() error { _, err := s.take(ctx, y); return err })
			},
			limit: func(context.Context) (float64, error) { return inMilliseconds(y.walk) },
			end:   end,
		}, nil
	},
}

// warmFigure is how long it takes until a sandbox stands that has a tree for its source which was made for an earlier one.
var warmFigure = figure{
	name: "workspace.warm", unit: "ms", limitIs: "the same with a tree of 10 files",
	begin: func(ctx context.Context, _ options) (_ pair, err error) {
		var yards [2]*treeYard
		var stands [2]*stand
		end := func() {
			for i := range yards {
				if stands[i] != nil {
					_ = stands[i].close()
				}
				if yards[i] != nil {
					yards[i].close()
				}
			}
		}
		for i, files := range []int{treeFiles, 10} {
			if yards[i], err = newTreeYard(ctx, files, true); err == nil {
				stands[i], err = yards[i].newStand(ctx)
			}
			if err != nil {
				end()
				return pair{}, err
			}
		}
		return pair{ours: each(stands[0].warm), limit: each(stands[1].warm), end: end}, nil
	},
}

func inMilliseconds(do func() error) (float64, error) {
	begun := time.Now()
	err := do()
	return float64(time.Since(begun)) / float64(time.Millisecond), err
}

// treeYard is a source in memory, and an executor.
type treeYard struct {
	folder   string
	source   string
	executor *native.Executor
}

func newTreeYard(ctx context.Context, files int, jobs bool) (*treeYard, error) {
	folder, err := memoryFolder()
	if err != nil {
		return nil, err
	}
	y := &treeYard{folder: folder, source: filepath.Join(folder, "source")}
	if err = plant(y.source, files); err == nil && jobs {
		y.executor, err = openNative(ctx, folder, native.Config{Slots: 1})
	}
	if err != nil {
		y.close()
		return nil, err
	}
	return y, nil
}

func (y *treeYard) close() {
	if y.executor != nil {
		_ = y.executor.Close()
	}
	_ = os.RemoveAll(y.folder)
}

// copy is the limit of tree.cold.
func (y *treeYard) copy(ctx context.Context) (float64, error) {
	to := filepath.Join(y.folder, "copy")
	begun := time.Now()
	out, err := exec.CommandContext(ctx, "cp", "-a", y.source, to).CombinedOutput()
	took := time.Since(begun).Seconds()
	if err != nil {
		return 0, fmt.Errorf("cp: %w\n%s", err, out)
	}
	return took, os.RemoveAll(to)
}

// walk is the limit of tree.unchanged.
func (y *treeYard) walk() error {
	return filepath.WalkDir(y.source, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, err = os.Lstat(path)
		return err
	})
}

// treeStore is a daemon's store in memory.
type treeStore struct {
	dir     string
	rows    *store.Store
	objects *objects.Objects
}

func (y *treeYard) openStore(ctx context.Context) (*treeStore, error) {
	dir, err := os.MkdirTemp(y.folder, "store")
	if err != nil {
		return nil, err
	}
	s := &treeStore{dir: dir}
	if s.rows, err = store.Open(ctx, filepath.Join(dir, "rows"), store.Options{}); err != nil {
		return nil, err
	}
	if s.objects, err = objects.Open(filepath.Join(dir, "objects"), objects.Options{}, s.rows); err != nil {
		return nil, errors.Join(err, s.rows.Close())
	}
	return s, nil
}

func (s *treeStore) close() error {
	return errors.Join(s.objects.Close(), s.rows.Close(), os.RemoveAll(s.dir))
}

// take captures the source as a command does, and checks it as the planner does.
func (s *treeStore) take(ctx context.Context, y *treeYard) (forge.TreeRef, error) {
	o := snapshot.Options{Dir: y.source, Index: filepath.Join(s.dir, "index")}
	taken, err := snapshot.Take(ctx, o, s.objects.Project(forge.DefaultProject))
	return taken.Tree, err
}

// stand is a store with the source in it, and the folder that was made of that.
type stand struct {
	*treeYard
	store *treeStore
	cache *treecache.Cache
	tree  forge.TreeRef
}

func (y *treeYard) newStand(ctx context.Context) (*stand, error) {
	s, err := y.openStore(ctx)
	if err != nil {
		return nil, err
	}
	made := &stand{treeYard: y, store: s}
	if made.cache, err = treecache.Open(filepath.Join(s.dir, "trees"), treecache.Options{}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if made.tree, err = s.take(ctx, y); err == nil {
		err = s.objects.CheckTree(ctx, forge.DefaultProject, made.tree)
	}
	if err != nil {
		return nil, errors.Join(err, made.close())
	}
	return made, nil
}

func (s *stand) close() error { return errors.Join(s.cache.Close(), s.store.close()) }

// warm is from the wish for the tree until a sandbox stands with it. The first makes the tree.
func (s *stand) warm(ctx context.Context) (time.Duration, error) {
	folder, err := workFolder(s.folder)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	t, err := s.cache.Acquire(ctx, s.tree, s.store.objects.Project(forge.DefaultProject))
	if err != nil {
		return 0, err
	}
	w, err := s.executor.Prepare(ctx, idleOrder(folder, executor.Input{Mount: forge.SourceDir, Tree: t.Path(), Mode: forge.InputCopyOnWrite}))
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	err = w.Close()
	t.Release()
	return took, errors.Join(err, os.RemoveAll(folder))
}

// cold makes a store, and everything of what is in it, anew.
func (y *treeYard) cold(ctx context.Context) (float64, error) {
	begun := time.Now()
	s, err := y.newStand(ctx)
	if err != nil {
		return 0, err
	}
	_, err = s.warm(ctx)
	took := time.Since(begun).Seconds()
	return took, errors.Join(err, s.close())
}
