package cgroup_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

func TestWhatIsThereOfAnAgentIsListedUntilItIsGone(t *testing.T) {
	state := stateFolder(t)
	tree, _ := openAt(t, state)
	made := func() []string {
		paths, err := cgroup.Made(state)
		if err != nil {
			t.Fatal(err)
		}
		return paths
	}
	folders := made()
	if len(folders) == 0 {
		t.Fatal("nothing is listed of an agent that has a place for groups")
	}
	g := group(t, tree, "listed", cgroup.Limits{})
	for _, path := range made() {
		if filepath.Base(path) != "listed" || !strings.HasPrefix(filepath.Base(filepath.Dir(path)), "forgeyard-") {
			t.Errorf("%s is listed", path)
		}
	}
	if err := g.Remove(); err != nil {
		t.Fatal(err)
	}
	if after := made(); len(after) != len(folders) {
		t.Errorf("with no group there are %q, before %q", after, folders)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	if left := made(); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}
