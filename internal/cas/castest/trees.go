package castest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Tree puts a tree of files with these contents into a store. A content of "-> x" makes a link to x, a path that ends
// with a slash an empty folder, and one that ends with a star a program.
func Tree(t testing.TB, s cas.Sink, files map[string]string) (forge.TreeRef, tree.Totals) {
	t.Helper()
	var b tree.Builder
	put := func(ref digest.Ref, data []byte) error {
		return s.Put(context.WithoutCancel(t.Context()), ref, bytes.NewReader(data))
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		e := tree.Entry{Kind: tree.File, Ref: digest.RefOf([]byte(content))}
		switch last := path[len(path)-1]; {
		case last == '/':
			path, e = path[:len(path)-1], tree.Entry{Kind: tree.Folder}
		case len(content) > 3 && content[:3] == "-> ":
			e = tree.Entry{Kind: tree.Link, Target: content[3:]}
		case last == '*':
			path, e.Executable = path[:len(path)-1], true
		}
		if err := b.Add(path, e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == tree.File {
			if err := put(e.Ref, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, totals, err := b.Build(put)
	if err != nil {
		t.Fatal(err)
	}
	return root, totals
}

// Paths lists a tree as Tree takes it, its contents included.
func Paths(t testing.TB, s cas.Source, root forge.TreeRef) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := cas.Walk(t.Context(), s, root, func(path string, e tree.Entry) error {
		switch e.Kind {
		case tree.Folder:
			if e.Totals.Files == 0 {
				files[path+"/"] = ""
			}
		case tree.Link:
			files[path] = "-> " + e.Target
		case tree.File:
			data, err := cas.ReadAll(t.Context(), s, e.Ref, e.Ref.Bytes)
			if err != nil {
				return err
			}
			if e.Executable {
				path += "*"
			}
			files[path] = string(data)
		}
		return nil
	})
	if err != nil {
		t.Errorf("walk: %v", err)
	}
	return files
}

func trees(t *testing.T, s cas.Store) {
	files := map[string]string{
		"README.md": "read me", "bin/run*": "#!/bin/sh\n", "src/a/b/c/deep.go": "package c", "src/empty/": "",
		"src/up": "-> ../README.md", "copy/README.md": "read me", "big": string(Bytes(1, 2<<20)),
	}
	for i := range 300 {
		files[fmt.Sprintf("many/%d/file%d", i%7, i)] = fmt.Sprintf("content %d", i%100)
	}
	far := NewMemory()
	root, _ := Tree(t, far, files)
	other, _ := Tree(t, far, map[string]string{"a": "read me", "src/new": "new"})
	if err := cas.Fetch(t.Context(), s, far, root, other); err != nil {
		t.Fatal(err)
	}
	for ref, times := range far.Reads() {
		if times > 1 {
			t.Errorf("object %v was read %d times", ref, times)
		}
	}
	if diff := cmp.Diff(files, Paths(t, s, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	opened := far.Opened()
	if err := cas.Fetch(t.Context(), s, far, root, other); err != nil {
		t.Fatal(err)
	}
	if more := far.Opened() - opened; more != 0 {
		t.Errorf("%d objects were read again", more)
	}
}
