package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// withInput gives a job a tree with one file.
func (j *job) withInput(mode forge.InputMode) (tree string) {
	j.Helper()
	tree = j.TempDir()
	must(j.T, os.Chmod(tree, 0o755))
	must(j.T, os.WriteFile(filepath.Join(tree, "file"), []byte("old\n"), 0o644))
	j.order.Inputs = []executor.Input{{Mount: forge.SourceDir, Tree: tree, Mode: mode}}
	return tree
}

// left reads a file that a job has left.
func (j *job) left(w executor.Workload, name string) string {
	j.Helper()
	root, err := w.Files()
	must(j.T, err)
	defer func() { must(j.T, root.Close()) }()
	data, err := root.ReadFile(name)
	must(j.T, err)
	return string(data)
}

// inBothWays runs a test with ids of its own for each sandbox, as far as this user can, and with a single one.
func inBothWays(t *testing.T, test func(t *testing.T, cfg native.Config)) {
	if os.Geteuid() == 0 {
		t.Run("mapped", func(t *testing.T) { test(t, native.Config{}) })
	}
	t.Run("single", func(t *testing.T) { test(t, native.Config{Rootless: true}) })
}

func TestWhatAJobLeftIsReadWithoutTheLauncher(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg native.Config) {
		e := openExecutor(t, cfg)
		j := newJob(t, "echo new >file; echo ready; sleep 999")
		tree := j.withInput(forge.InputCopyOnWrite)
		w := j.start(e)
		j.sink.Await("ready")
		must(t, syscall.Kill(parentOf(t, firstOf(t, j.unique)), syscall.SIGKILL))
		j.end(w)
		if got := j.left(w, "source/file"); got != "new\n" {
			t.Errorf("it left %q", got)
		}
		if data, err := os.ReadFile(filepath.Join(tree, "file")); err != nil || string(data) != "old\n" {
			t.Errorf("the tree holds %q, %v", data, err)
		}
	})
}

func TestWithoutLayersEachJobHasACopy(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg native.Config) {
		e := openExecutor(t, cfg)
		native.Flatten(e)
		for _, mode := range []forge.InputMode{forge.InputCopyOnWrite, forge.InputReadOnly} {
			j := newJob(t, "stat -c %u:%g file; (echo new >>file) 2>/dev/null || echo refused; echo other >other 2>/dev/null; cat file")
			tree := j.withInput(mode)
			w := j.start(e)
			j.end(w)
			want, left := "1000:1000\nold\nnew\n", "old\nnew\n"
			if mode == forge.InputReadOnly {
				want, left = "1000:1000\nrefused\nold\n", "old\n"
			}
			if got := j.sink.Text(forge.LogStdout); got != want {
				t.Errorf("%v: %q", mode, got)
			}
			if got := j.left(w, "source/file"); got != left {
				t.Errorf("%v: it left %q", mode, got)
			}
			if data, err := os.ReadFile(filepath.Join(tree, "file")); err != nil || string(data) != "old\n" {
				t.Errorf("%v: the tree holds %q, %v", mode, data, err)
			}
			must(t, os.Chmod(filepath.Join(j.order.Folder, "source"), 0o755)) // so that the test's folder can be removed
		}
	})
}

// unlayered is a folder on a file system that cannot be below a layer.
const unlayered = "/proc/sys/kernel/random"

func TestATreeThatCannotBeBelowALayerIsCopiedUnlessTheJobInsists(t *testing.T) {
	inBothWays(t, func(t *testing.T, cfg native.Config) {
		e := openExecutor(t, cfg)
		if r := e.Report(); !r.Has(sandbox.LevelOverlay) {
			t.Skip(r.Sorry(sandbox.LevelOverlay))
		}
		j := newJob(t, "cat poolsize")
		j.order.Inputs = []executor.Input{{Mount: forge.SourceDir, Tree: unlayered, Mode: forge.InputCopyOnWrite}}
		j.order.Spec.Sandbox.Levels = []string{string(sandbox.LevelOverlay)}
		if _, err := e.Prepare(t.Context(), j.order); err == nil || !strings.Contains(err.Error(), "layers") {
			t.Errorf("the job that insists: %v", err)
		}
		j.order.Spec.Sandbox.Levels = nil
		if o := j.run(e); o.Result.Class != forge.Succeeded || j.sink.Text(forge.LogStdout) == "" {
			t.Errorf("%+v, %q", o.Result, j.sink.Text(forge.LogStdout))
		}
	})
}

// Upper halves are kept where the sandbox shows nothing.
func TestTheSandboxKeepsItsLayersInTheAgentsOwnFolder(t *testing.T) {
	if sandbox.OwnDir != executor.OwnDir {
		t.Errorf("%q and %q", sandbox.OwnDir, executor.OwnDir)
	}
}

// Case B87: the disk is full, and it is not the job's limit.
func TestAStepThatFailsOnAFullDiskIsToldSo(t *testing.T) {
	castest.OnSmallDisk(t, 8<<20, func(t *testing.T, dir string) {
		e := openExecutor(t, native.Config{Rootless: true})
		j := newJob(t, "dd if=/dev/zero of=big bs=65536 2>/dev/null")
		j.order.Folder = filepath.Join(dir, "work")
		j.withInput(forge.InputCopyOnWrite)
		if o := j.run(e); o.Result.Class != forge.ExitCode {
			t.Errorf("%+v", o.Result)
		}
		if !strings.Contains(j.notices(), "disk of this machine is full") {
			t.Errorf("the log says %q", j.notices())
		}
	})
}
