package cgroup_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// asWarden makes this binary the one that cleans up after a test process, however that ended.
const asWarden = "FORGEYARD_CGROUP_WARDEN"

// states is the folder below which all state folders of this test process are.
var states string

func TestMain(m *testing.M) {
	beVictim()
	beWarden()
	beGuest()
	os.Exit(guarded(m))
}

// guarded runs the tests beside a warden.
func guarded(m *testing.M) int {
	var err error
	if states, err = os.MkdirTemp("", "forgeyard-cgroup-"); err != nil {
		panic(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), asWarden+"="+states)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	alive, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = alive.Close()
	if err := cmd.Wait(); err != nil && code == 0 {
		os.Stderr.WriteString("the warden found something to clean up: " + err.Error() + "\n")
		return 1
	}
	return code
}

// beWarden waits for the end of the test process, killed or not, removes what it left, and
// says with its exit code whether there was something.
func beWarden() {
	root := os.Getenv(asWarden)
	if root == "" {
		return
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	code := 0
	folders, _ := filepath.Glob(filepath.Join(root, "*"))
	for _, state := range folders {
		tree, _ := cgroup.Open(cgroup.Config{State: state})
		if tree == nil {
			continue
		}
		if n, err := tree.Sweep(); n > 0 || err != nil {
			code = 1
		}
		if err := tree.Close(); err != nil {
			code = 1
		}
	}
	if err := os.RemoveAll(root); err != nil {
		code = 1
	}
	os.Exit(code)
}

// stateFolder makes a state folder, which the warden removes.
func stateFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(states, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens a tree in a state folder of its own, or skips the test with the reason.
func open(t *testing.T) (*cgroup.Tree, cgroup.Report) {
	t.Helper()
	return openAt(t, stateFolder(t))
}

// openAt is open in a given state folder.
func openAt(t *testing.T, state string) (*cgroup.Tree, cgroup.Report) {
	t.Helper()
	tree, given := cgroup.Open(cgroup.Config{State: state})
	if tree == nil {
		t.Skip("this machine gives no control groups: " + given.Memory.Why)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree, given
}

// group makes a group that is killed and removed at the end of the test, passed or not.
func group(t *testing.T, tree *cgroup.Tree, name string, limits cgroup.Limits) *cgroup.Group {
	t.Helper()
	g, err := tree.Make(name, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Kill(); err != nil {
			t.Error(err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// need skips the test when something is not given here, with the reason.
func need(t *testing.T, grant cgroup.Grant) {
	t.Helper()
	if !grant.Given {
		t.Skip(grant.Why)
	}
}

// usage reads the usage of a group.
func usage(t *testing.T, g *cgroup.Group) cgroup.Usage {
	t.Helper()
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}
