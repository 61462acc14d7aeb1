package objects

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxClosure is how many different objects a tree may have. It bounds the memory of what is remembered about one.
const MaxClosure = 2_000_000

// refBytes is what one object of a closure takes in memory.
const refBytes = 40

// closure is everything that a tree is made of, in order. It is a truth about bytes and never changes.
type closure struct {
	totals tree.Totals
	refs   []digest.Ref // sorted, each once, the root among them
}

// has reports whether an object belongs to the tree. It takes as long for one that does not.
func (c *closure) has(ref digest.Ref) bool {
	_, found := slices.BinarySearchFunc(c.refs, ref, compareRefs)
	return found
}

func compareRefs(a, b digest.Ref) int {
	if c := slices.Compare(a.Digest[:], b.Digest[:]); c != 0 {
		return c
	}
	switch {
	case a.Bytes < b.Bytes:
		return -1
	case a.Bytes > b.Bytes:
		return 1
	}
	return 0
}

// closures remembers those that were used last, within a bound.
type closures struct {
	most int

	mu    sync.Mutex
	bytes int
	order *list.List // of *remembered, the latest first
	by    map[digest.Ref]*list.Element
}

type remembered struct {
	root digest.Ref
	c    *closure
}

func newClosures(most int) *closures {
	return &closures{most: most, order: list.New(), by: map[digest.Ref]*list.Element{}}
}

func (m *closures) get(root digest.Ref) *closure {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.by[root]
	if e == nil {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*remembered).c
}

func (m *closures) put(root digest.Ref, c *closure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by[root] != nil || len(c.refs)*refBytes > m.most {
		return
	}
	m.by[root] = m.order.PushFront(&remembered{root, c})
	m.bytes += len(c.refs) * refBytes
	for m.bytes > m.most {
		last := m.order.Back()
		old := m.order.Remove(last).(*remembered)
		delete(m.by, old.root)
		m.bytes -= len(old.c.refs) * refBytes
	}
}

// closure returns what a tree is made of, from memory or as its objects in src say.
func (o *Objects) closure(ctx context.Context, src cas.Source, root digest.Ref) (*closure, error) {
	if c := o.closures.get(root); c != nil {
		return c, nil
	}
	return o.walk(ctx, src, root)
}

// walk finds out what a tree is made of. Every folder is read once, shallowest first, so the work is that of the objects and
// not of the paths, of which there may be many more. The error is a *cas.TreeError where the tree is wrong, and a
// *MissingError where folders of it are not there.
func (o *Objects) walk(ctx context.Context, src cas.Source, root digest.Ref) (*closure, error) {
	w := walker{src: src, folders: map[digest.Ref]tree.Totals{}, files: map[digest.Ref]struct{}{}}
	level := []claim{{ref: root}}
	for len(level) > 0 {
		next, err := w.level(ctx, level)
		if err != nil {
			return nil, err
		}
		level = next
	}
	c := &closure{totals: w.folders[root], refs: w.all()}
	o.closures.put(root, c)
	return c, nil
}

// claim is a folder as its parent speaks of it.
type claim struct {
	path   string
	ref    digest.Ref
	totals *tree.Totals // nil: nothing was said
}

// walker walks a tree of which nothing is believed.
type walker struct {
	src     cas.Source
	folders map[digest.Ref]tree.Totals
	files   map[digest.Ref]struct{}
}

// level reads folders and returns those that stand in them.
func (w *walker) level(ctx context.Context, claims []claim) (next []claim, err error) {
	var missing []digest.Ref
	for _, c := range claims {
		totals, known := w.folders[c.ref]
		if !known {
			var entries []tree.Entry
			if entries, err = w.read(ctx, c); err != nil {
				if !absent(err) {
					return nil, err
				}
				missing = append(missing, c.ref)
				continue
			}
			totals = tree.TotalsOf(entries)
			w.folders[c.ref] = totals
			if next, err = w.below(c, entries, next); err != nil {
				return nil, err
			}
		}
		if c.totals != nil && totals != *c.totals {
			return nil, &cas.TreeError{Path: c.path, Ref: c.ref, Err: errTotals}
		}
	}
	if len(missing) > 0 {
		return nil, missingError(missing)
	}
	return next, nil
}

var errTotals = errors.New("it holds other totals than its parent says")

// absent reports whether an object has to be sent, again or for the first time.
func absent(err error) bool {
	var corrupt *cas.CorruptError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt)
}

func (w *walker) read(ctx context.Context, c claim) ([]tree.Entry, error) {
	if c.ref.Bytes > tree.MaxEncoded {
		return nil, &cas.TreeError{Path: c.path, Ref: c.ref, Err: tree.ErrForm}
	}
	data, err := cas.ReadAll(ctx, w.src, c.ref, tree.MaxEncoded)
	if err != nil {
		return nil, err
	}
	entries, err := tree.Decode(data)
	if err != nil {
		return nil, &cas.TreeError{Path: c.path, Ref: c.ref, Err: err}
	}
	return entries, nil
}

// below takes down what stands in a folder. The first path to a folder is the shortest, and so the one on which its links
// come closest to leading out.
func (w *walker) below(c claim, entries []tree.Entry, next []claim) ([]claim, error) {
	for i := range entries {
		e := &entries[i]
		path := e.Name
		if c.path != "" {
			path = c.path + "/" + e.Name
		}
		switch e.Kind {
		case tree.File:
			w.files[e.Ref] = struct{}{}
		case tree.Folder:
			next = append(next, claim{path, e.Ref, &e.Totals})
		case tree.Link:
			if err := e.CheckLink(path); err != nil {
				return nil, &cas.TreeError{Path: c.path, Ref: c.ref, Err: err}
			}
		}
	}
	if n := len(w.folders) + len(w.files) + len(next); n > MaxClosure {
		return nil, &cas.TreeError{Path: c.path, Ref: c.ref, Err: fmt.Errorf("the tree has more than %d different objects", MaxClosure)}
	}
	return next, nil
}

func (w *walker) all() []digest.Ref {
	refs := make([]digest.Ref, 0, len(w.folders)+len(w.files))
	for ref := range w.folders {
		refs = append(refs, ref)
	}
	for ref := range w.files {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, compareRefs)
	return slices.Compact(refs)
}

// complete returns a tree's closure once the project is known to hold all of it. What is remembered of a tree may come from
// another project, so it is no help in saying what this one lacks: that is read from what it holds.
func (o *Objects) complete(ctx context.Context, project forge.ProjectName, root digest.Ref) (*closure, error) {
	p := o.Project(project)
	if c := o.closures.get(root); c != nil {
		look := p.Missing
		if o.known.all(project, c.refs) {
			look = o.disk.Missing // which need not be asked about the rows
		}
		if missing, err := look(ctx, c.refs); err != nil || len(missing) == 0 {
			return c, err
		}
	}
	c, err := o.walk(ctx, p, root)
	if err != nil {
		return nil, err
	}
	missing, err := p.Missing(ctx, c.refs)
	if err == nil && len(missing) > 0 {
		err = missingError(missing)
	}
	return c, err
}

// CheckTree checks that a project holds all of a tree, that it is one, and that its totals are true. The error is a
// *MissingError, or a *cas.TreeError that says where the tree is wrong.
func (o *Objects) CheckTree(ctx context.Context, project forge.ProjectName, t forge.TreeRef) error {
	if err := t.Validate(); err != nil {
		return &cas.TreeError{Ref: t.Root, Err: err}
	}
	c, err := o.complete(ctx, project, t.Root)
	if err != nil {
		return err
	}
	if c.totals.Ref(t.Root) != t {
		return &cas.TreeError{Ref: t.Root, Err: errors.New("it holds other totals than its name says")}
	}
	return nil
}

// HasTree implements snapshot.TreeHolder: it reports whether the project has a tree with all below it, which is one question
// where nothing has changed.
func (p *Project) HasTree(ctx context.Context, t forge.TreeRef) (bool, error) {
	err := p.objects.CheckTree(ctx, p.name, t)
	var missing *MissingError
	if errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}
