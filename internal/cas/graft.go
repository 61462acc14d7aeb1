package cas

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// ErrTaken says that something stands already where a tree should go.
var ErrTaken = errors.New("cas: something stands there already")

// Graft makes one tree of two that are in s: the second stands at a path of the first, where nothing may be yet, else it is ErrTaken.
// Folders above the path are made where they are missing. Only the folders on the way are written anew; what is below the second, and
// beside the way, stays as it is.
func Graft(ctx context.Context, s Store, into forge.TreeRef, at string, t forge.TreeRef) (forge.TreeRef, error) {
	var b tree.Builder
	free, err := walkTo(ctx, s, into, at, b.Add)
	if err != nil {
		return forge.TreeRef{}, err
	}
	if !free {
		return forge.TreeRef{}, ErrTaken
	}
	entries, err := folder(ctx, s, at, t.Root, func(totals tree.Totals) bool { return totals.Ref(t.Root) == t })
	if err != nil {
		return forge.TreeRef{}, err
	}
	if err := b.Add(at, tree.Entry{Kind: tree.Folder, Ref: t.Root, Totals: tree.TotalsOf(entries)}); err != nil {
		return forge.TreeRef{}, err
	}
	joined, _, err := b.Build(func(ref digest.Ref, encoded []byte) error { return s.Put(ctx, ref, bytes.NewReader(encoded)) })
	return joined, err
}

// Free reports whether nothing of a tree stands at a path, nor in its way.
func Free(ctx context.Context, s Source, t forge.TreeRef, at string) (bool, error) {
	return walkTo(ctx, s, t, at, func(string, tree.Entry) error { return nil })
}

// walkTo passes on what stands beside the way to a path, and reports whether the path is free.
func walkTo(ctx context.Context, s Source, t forge.TreeRef, at string, beside func(path string, e tree.Entry) error) (free bool, err error) {
	root, above := t.Root, ""
	for name := range strings.SplitSeq(at, "/") {
		entries, err := folder(ctx, s, above, root, func(tree.Totals) bool { return true })
		if err != nil {
			return false, err
		}
		var next *tree.Entry
		for i := range entries {
			if entries[i].Name == name {
				next = &entries[i]
				continue
			}
			if err := beside(path.Join(above, entries[i].Name), entries[i]); err != nil {
				return false, err
			}
		}
		if above = path.Join(above, name); next == nil {
			return true, nil
		}
		if above == at || next.Kind != tree.Folder {
			return false, nil
		}
		root = next.Ref
	}
	return false, nil
}
