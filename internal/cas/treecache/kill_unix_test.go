//go:build unix

package treecache_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/cas/treecache"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// killedEnv makes this program one that is killed while it makes a tree in the folder that it names.
const killedEnv = "TREECACHE_TEST_KILLED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		beKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

// beKilled makes a tree whose last file never comes.
func beKilled(dir string) {
	c, err := treecache.Open(dir, treecache.Options{})
	if err != nil {
		panic(err)
	}
	m, t := newMemory(), &testing.T{}
	ref := m.tree(t, mixed)
	m.onOpen = func(got digest.Ref) {
		if got == digest.RefOf([]byte("package b")) {
			fmt.Println("in the middle")
			select {}
		}
	}
	_, err = c.Acquire(context.Background(), ref, m)
	panic(err)
}

// Case B06: a kill in the middle leaves nothing that a later job could see.
func TestAKillInTheMiddleLeavesNoTree(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait() // killed
	if left := trees(t, dir); line != "in the middle\n" || len(left) != 1 || !strings.HasPrefix(left[0], ".new-") {
		t.Fatalf("%q, and there is %q; the test is for a half tree", line, left)
	}
	m := newMemory()
	ref := m.tree(t, mixed)
	c := open(t, dir, treecache.Options{})
	if left := trees(t, dir); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	got := acquire(t, c, ref, m)
	defer got.Release()
	if _, err := os.Stat(filepath.Join(got.Path(), "src/a/b/c.go")); err != nil {
		t.Error(err)
	}
}
