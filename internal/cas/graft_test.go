package cas_test

import (
	"errors"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// What is grafted is the same tree as if it had been captured so, however deep it stands. What is there already stays.
func TestATreeIsGraftedWhereNothingStands(t *testing.T) {
	s, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	source := map[string]string{"a.go": "a", "sub/b.go": "b", "sub/deep/c": "c", "z": "z"}
	into, modules := plant(t, s, source), plant(t, s, map[string]string{"x/index.js": "x", "y": "y"})
	for _, at := range []string{"node_modules", "sub/node_modules", "sub/deep/er/node_modules", "new/folder"} {
		want := map[string]string{at + "/x/index.js": "x", at + "/y": "y"}
		for path, content := range source {
			want[path] = content
		}
		got, err := cas.Graft(t.Context(), s, into, at, modules)
		if err != nil || got != plant(t, s, want) {
			t.Errorf("at %s: %+v, %v", at, got, err)
		}
		if free, err := cas.Free(t.Context(), s, into, at); !free || err != nil {
			t.Errorf("%s is free: %v, %v", at, free, err)
		}
		if free, err := cas.Free(t.Context(), s, got, at); free || err != nil {
			t.Errorf("%s is still free: %v, %v", at, free, err)
		}
	}
	for _, at := range []string{"sub", "sub/deep", "a.go", "z/node_modules", "sub/b.go/x"} {
		if _, err := cas.Graft(t.Context(), s, into, at, modules); !errors.Is(err, cas.ErrTaken) {
			t.Errorf("at %s, which is taken: %v", at, err)
		}
	}
	lies := modules
	lies.Files++
	if _, err := cas.Graft(t.Context(), s, into, "m", lies); err == nil {
		t.Error("a tree that lies about its files was grafted")
	}
	if _, err := cas.Graft(t.Context(), s, into, "m", forge.TreeRef{Root: digest.RefOf([]byte("nowhere"))}); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("a tree that is nowhere: %v", err)
	}
}
