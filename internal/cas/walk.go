package cas

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// TreeError says that an object is no tree, or that a tree is not what its name or its parent says.
type TreeError struct {
	Path string     // of the folder, "" for the root
	Ref  digest.Ref // its object
	Err  error
}

func (e *TreeError) Error() string {
	return fmt.Sprintf("the folder %.300q of the tree is wrong (object %v): %v", e.Path, e.Ref, e.Err)
}

func (e *TreeError) Unwrap() error { return e.Err }

// SkipFolder is what a visitor returns to leave out what is below a folder, as with fs.SkipDir. Nothing below it is read
// or checked then.
//
//lint:ignore ST1012 a word of control and no fault, as fs.SkipDir
var SkipFolder = errors.New("skip this folder")

// Walk calls visit for each entry of a tree, folders before what is in them and in the order of names. The path is the
// entry's, with slashes, from the root. It checks as it goes that every object is a tree in canonical form, that every
// folder holds what its totals say, and that no link leads out; the error is then a *TreeError. An error of visit ends
// the walk and is returned as it is. Hold back what a wrong tree must not cause until Walk has returned nil.
//
// The work is bounded by Files × Depth of the root, the memory by the folders of one path.
func Walk(ctx context.Context, src Source, root forge.TreeRef, visit func(path string, e tree.Entry) error) error {
	if err := root.Validate(); err != nil {
		return &TreeError{"", root.Root, err}
	}
	entries, err := folder(ctx, src, "", root.Root, func(t tree.Totals) bool { return t.Ref(root.Root) == root })
	if err != nil {
		return err
	}
	return walk(ctx, src, "", root.Root, entries, visit)
}

func walk(ctx context.Context, src Source, dir string, ref digest.Ref, entries []tree.Entry,
	visit func(string, tree.Entry) error,
) error {
	for i := range entries {
		e := &entries[i]
		path := dir + e.Name
		if err := e.CheckLink(path); err != nil {
			return &TreeError{dir, ref, err}
		}
		err := visit(path, *e)
		if e.Kind != tree.Folder || err == SkipFolder {
			if err != nil && err != SkipFolder {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		below, err := folder(ctx, src, path, e.Ref, func(t tree.Totals) bool { return t == e.Totals })
		if err != nil {
			return err
		}
		if err := walk(ctx, src, path+"/", e.Ref, below, visit); err != nil {
			return err
		}
	}
	return nil
}

// folder reads a tree object and checks its totals. As they are exact, each folder is less deep than the one above it,
// which is what ends a walk.
func folder(ctx context.Context, src Source, path string, ref digest.Ref, truth func(tree.Totals) bool) ([]tree.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if ref.Bytes > tree.MaxEncoded {
		return nil, &TreeError{path, ref, tree.ErrForm}
	}
	data, err := ReadAll(ctx, src, ref, tree.MaxEncoded)
	if err != nil {
		return nil, err
	}
	entries, err := tree.Decode(data)
	if err == nil && !truth(tree.TotalsOf(entries)) {
		err = errTotals
	}
	if err != nil {
		return nil, &TreeError{path, ref, err}
	}
	return entries, nil
}

var errTotals = errors.New("it holds other totals than it says")

// fetchFiles bounds the files that Fetch collects before it copies them.
const fetchFiles = 1 << 20

// Fetch brings trees and all below them into dst, level by level, trees before files, each object once. It checks the
// trees' form and totals as Walk does; links are left to Walk. When it returns nil, dst had everything at some moment
// during the call: pin the objects, or hold what names them, so that they stay.
func Fetch(ctx context.Context, dst Store, src Source, roots ...forge.TreeRef) error {
	f := fetch{dst: dst, src: src, trees: make(map[digest.Ref]tree.Totals), files: make(map[digest.Ref]struct{})}
	var level []claim
	for _, root := range roots {
		if err := root.Validate(); err != nil {
			return &TreeError{"", root.Root, err}
		}
		level = append(level, claim{"", root.Root, func(t tree.Totals) bool { return t.Ref(root.Root) == root }})
	}
	for len(level) > 0 {
		var err error
		if level, err = f.level(ctx, level); err != nil {
			return err
		}
	}
	return f.flush(ctx)
}

// claim is a folder that is to be fetched, and what is said of it.
type claim struct {
	path  string
	ref   digest.Ref
	truth func(tree.Totals) bool
}

type fetch struct {
	dst Store
	src Source

	trees map[digest.Ref]tree.Totals // fetched, with what they really hold
	files map[digest.Ref]struct{}    // to be fetched
}

// level fetches folders and returns those that stand in them.
func (f *fetch) level(ctx context.Context, claims []claim) (next []claim, err error) {
	refs := make([]digest.Ref, len(claims))
	for i, c := range claims {
		refs[i] = c.ref
		if c.ref.Bytes > tree.MaxEncoded {
			return nil, &TreeError{c.path, c.ref, tree.ErrForm}
		}
	}
	refs = Distinct(refs, func(ref digest.Ref) bool { _, known := f.trees[ref]; return !known })
	if err := Copy(ctx, f.dst, f.src, refs); err != nil {
		return nil, err
	}
	both := Tiered(f.dst, f.src) // what was there may be damaged, and what came may be evicted already
	for _, c := range claims {
		totals, known := f.trees[c.ref]
		if known {
			if !c.truth(totals) {
				return nil, &TreeError{c.path, c.ref, errTotals}
			}
			continue
		}
		entries, err := folder(ctx, both, c.path, c.ref, c.truth)
		if err != nil {
			return nil, err
		}
		f.trees[c.ref] = tree.TotalsOf(entries)
		if next, err = f.entries(ctx, c.path, entries, next); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// entries takes down what stands in a folder.
func (f *fetch) entries(ctx context.Context, path string, entries []tree.Entry, next []claim) ([]claim, error) {
	for _, e := range entries {
		switch e.Kind {
		case tree.File:
			f.files[e.Ref] = struct{}{}
		case tree.Folder:
			below := e.Name
			if path != "" {
				below = path + "/" + e.Name
			}
			next = append(next, claim{below, e.Ref, func(t tree.Totals) bool { return t == e.Totals }})
		}
	}
	if len(f.files) < fetchFiles {
		return next, nil
	}
	return next, f.flush(ctx)
}

// flush copies the files collected so far.
func (f *fetch) flush(ctx context.Context) error {
	refs := make([]digest.Ref, 0, len(f.files))
	for ref := range f.files {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b digest.Ref) int { return slices.Compare(a.Digest[:], b.Digest[:]) })
	clear(f.files)
	return Copy(ctx, f.dst, f.src, refs)
}
