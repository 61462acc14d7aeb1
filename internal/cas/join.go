package cas

import (
	"bytes"
	"context"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// A Part is a tree and where it stands in another one.
type Part struct {
	Path string // with slashes; "" for the entries of the tree itself
	Tree forge.TreeRef
}

// Join makes one tree of several that are in s, and puts the objects that this takes into s; what is below the parts stays as
// it is. No part may stand within another, and at most one has the empty path: its entries are beside those of the others.
func Join(ctx context.Context, s Store, parts ...Part) (forge.TreeRef, error) {
	var b tree.Builder
	for _, p := range parts {
		entries, err := folder(ctx, s, p.Path, p.Tree.Root, func(t tree.Totals) bool { return t.Ref(p.Tree.Root) == p.Tree })
		if err != nil {
			return forge.TreeRef{}, err
		}
		if p.Path == "" {
			for _, e := range entries {
				if err := b.Add(e.Name, e); err != nil {
					return forge.TreeRef{}, err
				}
			}
			continue
		}
		if err := b.Add(p.Path, tree.Entry{Kind: tree.Folder, Ref: p.Tree.Root, Totals: tree.TotalsOf(entries)}); err != nil {
			return forge.TreeRef{}, err
		}
	}
	joined, _, err := b.Build(func(ref digest.Ref, encoded []byte) error {
		return s.Put(ctx, ref, bytes.NewReader(encoded))
	})
	return joined, err
}

// Tree names the tree that begins at an object, with its totals, as the entries there tell them.
func Tree(ctx context.Context, s Source, root digest.Ref) (forge.TreeRef, error) {
	entries, err := folder(ctx, s, "", root, func(tree.Totals) bool { return true })
	if err != nil {
		return forge.TreeRef{}, err
	}
	return tree.TotalsOf(entries).Ref(root), nil
}

// ReadTree reads the files of a small tree, by their paths. More files or bytes than most is an error.
func ReadTree(ctx context.Context, s Source, t forge.TreeRef, files uint64, most forge.Bytes) (map[string][]byte, error) {
	if t.Files > files || t.Bytes > most {
		return nil, fmt.Errorf("the tree %v has %d files and %v, more than %d and %v", t.Root, t.Files, t.Bytes, files, most)
	}
	all := map[string][]byte{}
	err := Walk(ctx, s, t, func(path string, e tree.Entry) (err error) {
		if e.Kind == tree.File {
			all[path], err = ReadAll(ctx, s, e.Ref, uint64(most))
		}
		return err
	})
	return all, err
}
