package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// cleanEntry remembers the clean repository that was made last, so that it is made once for each commit.
type cleanEntry struct {
	key  digest.Digest // of what it was made from; zero for none
	tree forge.TreeRef
	refs []digest.Ref // its objects
}

// repository gives the sink the clean repository of the commit that is checked out. Its tree is what belongs into .git.
func (t *taking) repository(ctx context.Context, sha string) (*forge.TreeRef, error) {
	if sha == "" {
		return nil, fmt.Errorf("the source asks for its git repository, and in %s %w: commit something, or do without", t.dir, git.ErrNoCommit)
	}
	origin, err := t.repo.CleanKey(ctx)
	if err != nil {
		return nil, err
	}
	key := digest.Of(origin)
	if known := t.index.clean; known.key == key {
		missing, err := t.sink.Missing(ctx, known.refs)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			return &known.tree, nil
		}
	}
	made, err := t.makeRepository(ctx)
	if err != nil {
		return nil, err
	}
	made.key = key
	t.index.clean, t.stale = made, true
	return &made.tree, nil
}

// makeRepository makes it in a folder beside the index, and captures that as any other.
func (t *taking) makeRepository(ctx context.Context) (made cleanEntry, err error) {
	beside := ""
	if t.options.Index != "" {
		beside = filepath.Dir(t.options.Index)
	}
	dir, err := os.MkdirTemp(beside, "repository-")
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t.cleans++
	if err := t.repo.Clean(ctx, dir, uint64(t.options.MaxBytes)); err != nil {
		return made, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	options := Options{Dir: dir, MaxFiles: DefaultMaxFiles, MaxBytes: forge.MaxTreeBytes, Progress: t.options.Progress}
	c := &taking{options: options, sink: t.sink, now: t.now, root: root, dir: dir, index: &index{root: dir}}
	if _, err := c.update(ctx); err != nil {
		return made, err
	}
	if made.tree, _, _, err = c.index.build(); err != nil {
		return made, err
	}
	files, folders := c.index.refs()
	made.refs = append(files, folders...)
	return made, c.deliver(ctx, made.tree)
}
