package tree_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

var typeOfTree = reflect.TypeFor[tree.TreeV1]()

// objects is where built trees go.
type objects map[digest.Ref][]byte

func (o objects) put(ref digest.Ref, encoded []byte) error {
	o[ref] = slices.Clone(encoded)
	return nil
}

// paths lists a built tree.
func (o objects) paths(t *testing.T, dir string, root digest.Ref) (list []string) {
	t.Helper()
	entries, err := tree.Decode(o[root])
	if err != nil {
		t.Fatalf("%q: %v", dir, err)
	}
	for _, e := range entries {
		path := dir + e.Name
		switch e.Kind {
		case tree.Folder:
			list = append(append(list, path+"/"), o.paths(t, path+"/", e.Ref)...)
		case tree.Link:
			list = append(list, path+" -> "+e.Target)
		default:
			list = append(list, path)
		}
	}
	return list
}

func TestATreeIsTheSameInWhateverOrderItsPathsCome(t *testing.T) {
	type item struct {
		path  string
		entry tree.Entry
	}
	items := []item{
		{"b/c/d", file("", "1")},
		{"b/a", program("", "22")},
		{"a", file("", "333")},
		{"b/c/l", link("", "../../a")},
		{"empty/inner", tree.Entry{Kind: tree.Folder}},
		{"b", tree.Entry{Kind: tree.Folder}},
		{"known", folder(t, "", file("x", "55555"))},
	}
	want := []string{"a", "b/", "b/a", "b/c/", "b/c/d", "b/c/l -> ../../a", "empty/", "empty/inner/", "known/"}
	var first forge.TreeRef
	for round := range 20 {
		var b tree.Builder
		for _, i := range items {
			if err := b.Add(i.path, i.entry); err != nil {
				t.Fatal(err)
			}
		}
		store := objects{}
		root, totals, err := b.Build(store.put)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			first = root
			known := encoded(t, file("x", "55555"))
			store[digest.RefOf(known)] = known
			want := slices.Insert(slices.Clone(want), len(want), "known/x")
			if diff := cmp.Diff(want, store.paths(t, "", root.Root)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if want := (tree.Totals{Files: 6, Bytes: 11, Depth: 3}); totals != want {
				t.Fatalf("totals %+v, want %+v", totals, want)
			}
		}
		if root != first {
			t.Fatalf("round %d: %v, want %v", round, root, first)
		}
		rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
}

func TestNothingAddedIsTheEmptyFolder(t *testing.T) {
	var b tree.Builder
	store := objects{}
	root, totals, err := b.Build(store.put)
	if err != nil || totals != (tree.Totals{}) || root.Root != digest.RefOf([]byte{1, 0}) || len(store) != 1 {
		t.Fatalf("%v, %+v, %v, %d objects", root, totals, err, len(store))
	}
}

func TestALinkMayClimbToItsRootAndNoFurther(t *testing.T) {
	for path, target := range map[string]string{"l": "..", "a/l": "../..", "a/b/l": "../../../c", "a/b/m": "../../../../../etc/passwd"} {
		var b tree.Builder
		var l *tree.LinkError
		if err := b.Add(path, link("", target)); !errors.As(err, &l) || l.Path != path || l.Target != target {
			t.Errorf("%s -> %s: %v, want a LinkError that names both", path, target, err)
		}
	}
	var b tree.Builder
	for path, target := range map[string]string{"l": ".", "a/l": "..", "a/b/l": "../../c", "a/b/m": "../../a"} {
		if err := b.Add(path, link("", target)); err != nil {
			t.Errorf("%s -> %s: %v", path, target, err)
		}
	}
}

func TestPathsThatCannotBeAreNamedInWhole(t *testing.T) {
	deep := strings.Repeat("d/", forge.MaxTreeDepth)
	for name, build := range map[string]func(b *tree.Builder) error{
		"a/b/..": func(b *tree.Builder) error { return b.Add("a/b/..", file("", "")) },
		"a/..":   func(b *tree.Builder) error { return b.Add("a/../b", file("", "")) },
		"/abs":   func(b *tree.Builder) error { return b.Add("/abs", file("", "")) },
		"a/":     func(b *tree.Builder) error { return b.Add("a//b", file("", "")) },
		deep:     func(b *tree.Builder) error { return b.Add(deep+"d/x", file("", "")) },
		"a/x": func(b *tree.Builder) error {
			return errors.Join(b.Add("a/x", file("", "1")), b.Add("a/x", file("", "1")))
		},
		"a/y": func(b *tree.Builder) error {
			return errors.Join(b.Add("a/y", file("", "1")), b.Add("a/y/z", file("", "1")))
		},
		"k": func(b *tree.Builder) error {
			return errors.Join(b.Add("k", folder(t, "", file("x", ""))), b.Add("k/z", file("", "1")))
		},
	} {
		var b tree.Builder
		err := build(&b)
		if err == nil {
			_, _, err = b.Build(objects{}.put)
		}
		var entry *tree.EntryError
		if !errors.As(err, &entry) || !strings.HasPrefix(entry.Path, strings.TrimSuffix(name, "/")) {
			t.Errorf("%.40q: %v, want an EntryError with the path", name, err)
		}
	}
	var b tree.Builder
	if err := b.Add(deep+"x", file("", "")); err == nil {
		t.Error("a file one too deep was added")
	}
	if err := b.Add(strings.TrimSuffix(deep, "d/")+"x", file("", "")); err != nil {
		t.Errorf("a file at the greatest depth: %v", err)
	}
	if _, totals, err := b.Build(objects{}.put); err != nil || totals.Depth != forge.MaxTreeDepth {
		t.Errorf("the deepest tree: %+v, %v", totals, err)
	}
}

func TestWhatPutRefusesEndsTheBuild(t *testing.T) {
	full := errors.New("full")
	var b tree.Builder
	if err := b.Add("a/b", file("", "")); err != nil {
		t.Fatal(err)
	}
	calls := 0
	_, _, err := b.Build(func(digest.Ref, []byte) error { calls++; return full })
	if !errors.Is(err, full) || calls != 1 {
		t.Fatalf("%v after %d calls", err, calls)
	}
}

func BenchmarkBuild(b *testing.B) {
	ref := digest.RefOf([]byte("x"))
	for b.Loop() {
		var t tree.Builder
		for i := range 50_000 {
			if err := t.Add(fmt.Sprintf("dir%d/sub%d/file%d", i/500, i/6%80, i), tree.Entry{Kind: tree.File, Ref: ref}); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := t.Build(func(digest.Ref, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
