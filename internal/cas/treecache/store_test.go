package treecache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/cas/treecache"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// memory is a store of objects that checks what it gives, as stores do, and can be told to misbehave.
type memory struct {
	mu      sync.Mutex
	objects map[digest.Ref][]byte
	opened  map[digest.Ref]int
	onOpen  func(ref digest.Ref) // called before an object is given
}

func newMemory() *memory {
	return &memory{objects: map[digest.Ref][]byte{}, opened: map[digest.Ref]int{}}
}

func (m *memory) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	m.mu.Lock()
	data, ok := m.objects[ref]
	m.opened[ref]++
	hook := m.onOpen
	m.mu.Unlock()
	if hook != nil {
		hook(ref)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !ok:
		return nil, cas.ErrNotFound
	case digest.RefOf(data) != ref:
		return io.NopCloser(io.MultiReader(bytes.NewReader(data), damaged{ref})), nil
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// damaged ends a reader of wrong bytes.
type damaged struct{ ref digest.Ref }

func (d damaged) Read([]byte) (int, error) {
	return 0, &cas.CorruptError{Ref: d.ref, Where: "memory"}
}

func (m *memory) put(ref digest.Ref, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[ref] = bytes.Clone(data)
	return nil
}

// flip damages an object.
func (m *memory) flip(ref digest.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[ref][0] ^= 1
}

func (m *memory) times(ref digest.Ref) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opened[ref]
}

// files says what is in a tree: contents by path. One that ends with "*" is executable, with "/" an empty folder, and a
// content that begins with "->" is a link.
type files map[string]string

func (m *memory) tree(t testing.TB, what files) forge.TreeRef {
	t.Helper()
	var b tree.Builder
	for at, content := range what {
		e := tree.Entry{Kind: tree.File, Ref: digest.RefOf([]byte(content))}
		switch last := at[len(at)-1]; {
		case last == '/':
			e, at = tree.Entry{Kind: tree.Folder}, at[:len(at)-1]
		case len(content) > 2 && content[:2] == "->":
			e = tree.Entry{Kind: tree.Link, Target: content[2:]}
		case last == '*':
			e.Executable, at = true, at[:len(at)-1]
		}
		if e.Kind == tree.File {
			must(t, m.put(e.Ref, []byte(content)))
		}
		must(t, b.Add(at, e))
	}
	ref, _, err := b.Build(m.put)
	must(t, err)
	return ref
}

// mixed is a small tree with one of everything.
var mixed = files{
	"README":         "read me",
	"empty":          "",
	"bin/tool*":      "#!/bin/sh\n",
	"bin/alias":      "->tool",
	"src/a/b/c.go":   "package b",
	"src/a/link":     "->../../README",
	"src/nowhere":    "->no/such/file",
	"hollow/":        "",
	"odd \n\t'name":  "odd",
	"src/a/d/e/f/g*": "same",
	"src/a/d/e/f/h":  "same",
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, o treecache.Options) *treecache.Cache {
	t.Helper()
	c, err := treecache.Open(dir, o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func acquire(t testing.TB, c *treecache.Cache, ref forge.TreeRef, src cas.Source) *treecache.Tree {
	t.Helper()
	got, err := c.Acquire(t.Context(), ref, src)
	must(t, err)
	return got
}

// seen lists what is in a folder: path, mode, and content or target.
func seen(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content string
		switch {
		case d.Type().IsRegular():
			data, bad := os.ReadFile(path)
			content, err = string(data), bad
		case d.Type() == fs.ModeSymlink:
			content, err = os.Readlink(path)
		}
		rel, bad := filepath.Rel(dir, path)
		got[filepath.ToSlash(rel)] = fmt.Sprintf("%v %q", info.Mode(), content)
		return errors.Join(err, bad)
	}))
	return got
}

// trees are the names of trees in a cache's folder, those half made or on their way out included.
func trees(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
