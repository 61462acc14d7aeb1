//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATreeThatIsPlantedIsAlwaysTheSame(t *testing.T) {
	one, other := &treeYard{folder: t.TempDir()}, &treeYard{folder: t.TempDir()}
	for _, y := range []*treeYard{one, other} {
		y.source = filepath.Join(y.folder, "source")
		if err := plant(y.source, 200); err != nil {
			t.Fatal(err)
		}
		if err := y.walk(); err != nil {
			t.Error(err)
		}
	}
	a, b := captured(t, one), captured(t, other)
	if a != b {
		t.Errorf("a source is once %s and once %s", a, b)
	}
}

// captured captures a source twice, as tree.unchanged does, and names it.
func captured(t *testing.T, y *treeYard) string {
	t.Helper()
	s, err := y.openStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	first, err := s.take(t.Context(), y)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.take(t.Context(), y)
	if err != nil || first != again {
		t.Errorf("%+v and then %+v, %v", first, again, err)
	}
	if first.Files != 200 {
		t.Errorf("%d files", first.Files)
	}
	return first.Root.String()
}

func TestACopyOfATreeIsTakenAway(t *testing.T) {
	y := &treeYard{folder: t.TempDir()}
	y.source = filepath.Join(y.folder, "source")
	if err := plant(y.source, 20); err != nil {
		t.Fatal(err)
	}
	if took, err := y.copy(t.Context()); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	list, err := os.ReadDir(y.folder)
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestObjectsThatAreMovedHaveTheirSizeAndAreAlwaysTheSame(t *testing.T) {
	for _, content := range []func(int) ([]byte, error){noise, sources} {
		a, err := content(3 << 20)
		if err != nil || len(a) != 3<<20 {
			t.Fatalf("%d bytes, %v", len(a), err)
		}
		if b, err := content(3 << 20); err != nil || !cmp.Equal(a, b) {
			t.Errorf("another content, %v", err)
		}
	}
}
