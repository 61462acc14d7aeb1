package tree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Builder makes the objects of a tree from paths. The zero value is an empty tree. One goroutine uses it.
type Builder struct {
	root   folder
	byPath map[string]*folder

	last    string // the folder asked for last: entries mostly come folder by folder
	lastHit *folder
}

// folder is one in the making.
type folder struct {
	name    string
	entries []Entry
	folders []*folder
}

// Add puts an entry at a path, in any order; the folders above it come by themselves. The entry's Name is taken from the
// path. A folder with a Ref is a tree that exists already, with its Totals; nothing can be added below it. A folder
// without one is made, and may stay empty. The error is an *EntryError or *LinkError with the whole path; that a path was
// added twice shows at Build.
func (b *Builder) Add(path string, e Entry) error {
	switch {
	case strings.HasPrefix(path, "/"):
		return &EntryError{path, "is absolute"}
	case strings.Count(path, "/") >= forge.MaxTreeDepth:
		return &EntryError{path, fmt.Sprintf("is more than %d names deep", forge.MaxTreeDepth)}
	}
	dir, name := split(path)
	if e.Kind == Folder && e.Ref.IsZero() {
		_, err := b.folder(path)
		return err
	}
	in, err := b.folder(dir)
	if err != nil {
		return err
	}
	e.Name = name
	if err := e.check(); err != nil {
		return withPath(err, dir)
	}
	if err := e.CheckLink(path); err != nil {
		return err
	}
	in.entries = append(in.entries, e)
	return nil
}

// folder returns the folder at a path, made with those above it if it is new.
func (b *Builder) folder(path string) (*folder, error) {
	if path == "" {
		return &b.root, nil
	}
	if path == b.last {
		return b.lastHit, nil
	}
	f, ok := b.byPath[path]
	if !ok {
		dir, name := split(path)
		if reason := nameFault(name); reason != "" {
			return nil, &EntryError{path, "has a folder whose name " + reason}
		}
		above, err := b.folder(dir)
		if err != nil {
			return nil, err
		}
		f = &folder{name: name}
		above.folders = append(above.folders, f)
		if b.byPath == nil {
			b.byPath = make(map[string]*folder)
		}
		b.byPath[path] = f
	}
	b.last, b.lastHit = path, f
	return f, nil
}

// Build gives every tree object to put, those below before those above, and returns the root. It may be called once.
func (b *Builder) Build(put func(ref digest.Ref, encoded []byte) error) (forge.TreeRef, Totals, error) {
	root, totals, err := b.root.build("", put)
	return totals.Ref(root), totals, err
}

func (f *folder) build(path string, put func(digest.Ref, []byte) error) (digest.Ref, Totals, error) {
	slices.SortFunc(f.folders, func(a, b *folder) int { return cmp.Compare(a.name, b.name) })
	for _, below := range f.folders {
		ref, totals, err := below.build(join(path, below.name), put)
		if err != nil {
			return digest.Ref{}, Totals{}, err
		}
		f.entries = append(f.entries, Entry{Name: below.name, Kind: Folder, Ref: ref, Totals: totals})
	}
	f.folders = nil
	encoded, totals, err := encode(f.entries)
	if err != nil {
		return digest.Ref{}, Totals{}, withPath(err, path)
	}
	f.entries = nil
	ref := digest.RefOf(encoded)
	return ref, totals, put(ref, encoded)
}

// withPath puts the folder's path before the name in an error that knows only the name.
func withPath(err error, dir string) error {
	var entry *EntryError
	if errors.As(err, &entry) {
		return &EntryError{join(dir, entry.Path), entry.Reason}
	}
	var link *LinkError
	if errors.As(err, &link) {
		return &LinkError{join(dir, link.Path), link.Target, link.Reason}
	}
	return fmt.Errorf("folder %q: %w", clip(dir), err)
}

func split(path string) (dir, name string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
