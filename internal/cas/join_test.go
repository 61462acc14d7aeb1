package cas_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// plant puts a tree of files into a store.
func plant(t *testing.T, s cas.Store, files map[string]string) forge.TreeRef {
	t.Helper()
	var b tree.Builder
	for path, content := range files {
		ref := digest.RefOf([]byte(content))
		if err := s.Put(t.Context(), ref, bytes.NewReader([]byte(content))); err != nil {
			t.Fatal(err)
		}
		if err := b.Add(path, tree.Entry{Kind: tree.File, Ref: ref}); err != nil {
			t.Fatal(err)
		}
	}
	root, _, err := b.Build(func(ref digest.Ref, encoded []byte) error { return s.Put(t.Context(), ref, bytes.NewReader(encoded)) })
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// What is joined is the same tree as if it had been captured so.
func TestTreesAreJoinedIntoOne(t *testing.T) {
	s, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	source := plant(t, s, map[string]string{"a.go": "a", "sub/b.go": "b"})
	repository := plant(t, s, map[string]string{"HEAD": "ref", "objects/x": "o"})
	joined, err := cas.Join(t.Context(), s, cas.Part{Tree: source}, cas.Part{Path: ".git", Tree: repository}, cas.Part{Path: "needs/x", Tree: source})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"a.go": "a", "sub/b.go": "b", ".git/HEAD": "ref", ".git/objects/x": "o", "needs/x/a.go": "a", "needs/x/sub/b.go": "b"}
	if whole := plant(t, s, all); joined != whole {
		t.Errorf("joined %+v, captured %+v", joined, whole)
	}
	if named, err := cas.Tree(t.Context(), s, joined.Root); err != nil || named != joined {
		t.Errorf("named %+v, %v", named, err)
	}
	read, err := cas.ReadTree(t.Context(), s, joined, 10, 100)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for path, content := range read {
		got[path] = string(content)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
	if _, err := cas.ReadTree(t.Context(), s, joined, 5, 100); err == nil {
		t.Error("a tree of 6 files is read where 5 are allowed")
	}
}

// A part that is not there, lies about its totals, or stands within another one is no part.
func TestWhatIsNoPartIsNotJoined(t *testing.T) {
	s, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	good := plant(t, s, map[string]string{"a": "1"})
	lies := good
	lies.Bytes++
	var wrong *cas.TreeError
	if _, err := cas.Join(t.Context(), s, cas.Part{Path: "x", Tree: lies}); !errors.As(err, &wrong) {
		t.Errorf("a tree that lies: %v", err)
	}
	absent := forge.TreeRef{Root: digest.RefOf([]byte("absent"))}
	if _, err := cas.Join(t.Context(), s, cas.Part{Path: "x", Tree: absent}); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("an absent tree: %v", err)
	}
	for _, parts := range [][]cas.Part{{{Path: "x", Tree: good}, {Path: "x/y", Tree: good}}, {{Tree: good}, {Path: "a", Tree: good}}, {{Path: "../x", Tree: good}}} {
		if _, err := cas.Join(context.Background(), s, slices.Clone(parts)...); err == nil {
			t.Errorf("%v is joined", parts)
		}
	}
}
