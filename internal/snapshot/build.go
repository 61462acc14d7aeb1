package snapshot

import (
	"cmp"
	"errors"
	"path"
	"slices"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// build names the tree objects of all folders, and returns the root. It reports whether any folder was encoded: those in
// which and below which nothing changed keep their names.
func (x *index) build() (root forge.TreeRef, totals tree.Totals, built bool, err error) {
	if len(x.folders) == 0 {
		return root, totals, false, &ChangedError{Paths: []string{"."}}
	}
	for i := len(x.folders) - 1; i > 0; i-- {
		if x.folders[i].changed {
			x.folders[x.folders[i].above].changed = true
		}
	}
	top := &x.folders[0]
	if top.changed {
		if err := x.encodeChanged(); err != nil {
			return root, totals, false, err
		}
		built = true
	}
	return top.totals.Ref(top.ref), top.totals, built, nil
}

func (x *index) encodeChanged() error {
	below := x.below()
	for i := len(x.folders) - 1; i >= 0; i-- {
		f := &x.folders[i]
		if !f.changed {
			continue
		}
		nodes := x.nodes(i, below[i])
		f.ref, f.totals = digest.Ref{}, tree.Totals{}
		if len(nodes) > 0 || i == 0 || !x.git {
			encoded, err := tree.Encode(nodes)
			if err != nil {
				return x.cannot(f.path, err)
			}
			f.ref, f.totals = digest.RefOf(encoded), tree.TotalsOf(nodes)
		}
		f.changed = false
	}
	return nil
}

// cannot says which path no tree can hold.
func (x *index) cannot(dir string, err error) error {
	p := Problem{Path: dir, Reason: "cannot be a folder of a tree: " + err.Error()}
	var entry *tree.EntryError
	if errors.As(err, &entry) {
		p = Problem{Path: path.Join(dir, entry.Path), Reason: entry.Reason}
	}
	return &RefusedError{Root: x.root, Problems: []Problem{p}}
}

// below lists for each folder the places of those in it.
func (x *index) below() [][]int {
	below := make([][]int, len(x.folders))
	for i := 1; i < len(x.folders); i++ {
		above := x.folders[i].above
		below[above] = append(below[above], i)
	}
	return below
}

// nodes are what a folder's tree object holds. Folders of a repository without anything in them are not part of it.
func (x *index) nodes(at int, below []int) []tree.Entry {
	f := &x.folders[at]
	nodes := make([]tree.Entry, 0, len(f.entries)+len(below))
	for i := range f.entries {
		switch e := &f.entries[i]; e.kind {
		case file:
			nodes = append(nodes, tree.Entry{Name: e.name, Kind: tree.File, Ref: e.ref, Executable: e.exec})
		case link:
			nodes = append(nodes, tree.Entry{Name: e.name, Kind: tree.Link, Target: e.text})
		}
	}
	for _, i := range below {
		if sub := &x.folders[i]; !sub.ref.IsZero() {
			nodes = append(nodes, tree.Entry{Name: path.Base(sub.path), Kind: tree.Folder, Ref: sub.ref, Totals: sub.totals})
		}
	}
	slices.SortFunc(nodes, func(a, b tree.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}
