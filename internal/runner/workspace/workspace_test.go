package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

func open(t *testing.T) (*workspace.Root, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	r, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, dir
}

func made(t *testing.T, r *workspace.Root) (forge.AttemptID, string) {
	t.Helper()
	id := ident.New[forge.AttemptID]()
	path, err := r.Make(id)
	if err != nil {
		t.Fatal(err)
	}
	return id, path
}

// nothingLeft waits for what is being removed.
func nothingLeft(t *testing.T, r *workspace.Root, dir string) {
	t.Helper()
	must(t, r.Idle(t.Context()))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachAttemptGetsAFreshFolderOfItsOwn(t *testing.T) {
	r, dir := open(t)
	id, path := made(t, r)
	if path != filepath.Join(dir, id.String()) {
		t.Errorf("the workspace is %s", path)
	}
	for _, part := range []string{workspace.Source, workspace.Build, workspace.Home, workspace.Temp, workspace.Outputs} {
		info, err := os.Stat(filepath.Join(path, part))
		must(t, err)
		if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", part, info.Mode())
		}
	}
	if _, err := r.Make(id); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same workspace a second time: %v", err)
	}
	must(t, r.Remove(id))
	must(t, r.Remove(id)) // again, harmless
	nothingLeft(t, r, dir)
}

// TestWhateverAWorkloadLeavesIsRemoved: every trick by itself, each also while a neighbour must stay.
func TestWhateverAWorkloadLeavesIsRemoved(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, path string){
		"folders that nobody may enter": func(t *testing.T, path string) {
			must(t, os.MkdirAll(filepath.Join(path, "a", "b"), 0o700))
			must(t, os.WriteFile(filepath.Join(path, "a", "b", "c"), nil, 0))
			must(t, os.Chmod(filepath.Join(path, "a", "b"), 0))
			must(t, os.Chmod(filepath.Join(path, "a"), 0o555))
			must(t, os.Chmod(path, 0))
		},
		"names that look like options": func(t *testing.T, path string) {
			must(t, os.WriteFile(filepath.Join(path, "-rf"), nil, 0o600))
			must(t, os.WriteFile(filepath.Join(path, "new\nline"), nil, 0o600))
		},
		"a tree deeper than a path can say": func(t *testing.T, path string) {
			root, err := os.OpenRoot(path)
			must(t, err)
			name := strings.Repeat("d", 200)
			for range 300 {
				must(t, root.Mkdir(name, 0o700))
				next, err := root.OpenRoot(name)
				must(t, errors.Join(err, root.Close()))
				root = next
			}
			must(t, root.WriteFile("bottom", nil, 0o600))
			must(t, root.Close())
			must(t, os.Chmod(filepath.Join(path, name), 0)) // so that the quick way fails for others than root
		},
		"a link to elsewhere": func(t *testing.T, path string) {
			must(t, os.Symlink("/", filepath.Join(path, "root")))
			must(t, os.Remove(filepath.Join(path, workspace.Temp)))
			must(t, os.Symlink("../..", filepath.Join(path, workspace.Temp)))
		},
	} {
		t.Run(what, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("made of what Unix has")
			}
			r, dir := open(t)
			id, path := made(t, r)
			other, otherPath := made(t, r)
			leave(t, path)
			must(t, r.Remove(id))
			if _, err := os.Stat(filepath.Join(otherPath, workspace.Build)); err != nil {
				t.Errorf("the neighbour is damaged: %v", err)
			}
			must(t, r.Remove(other))
			nothingLeft(t, r, dir)
		})
	}
}

// What a job makes belongs to the agent's user, programs that run as their owner too.
func TestNobodyElseReachesWorkspaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	r, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	must(t, r.Close())
	info, err := os.Stat(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("it has mode %v", info.Mode())
	}
}

// A workload can make a tree that is deeper than an agent has descriptors.
func TestADeepTreeTakesFewDescriptors(t *testing.T) {
	open0 := descriptors(t)
	r, dir := open(t)
	id, path := made(t, r)
	root, err := os.OpenRoot(path)
	must(t, err)
	for range 2000 {
		must(t, root.Mkdir("d", 0o700))
		must(t, root.WriteFile("file", nil, 0o600))
		next, err := root.OpenRoot("d")
		must(t, errors.Join(err, root.Close()))
		root = next
	}
	must(t, root.Close())
	must(t, r.Remove(id))
	done, most := make(chan error), 0
	go func() { done <- r.Idle(t.Context()) }()
	for running := true; running; {
		select {
		case err := <-done:
			must(t, err)
			running = false
		default:
			most = max(most, descriptors(t))
		}
	}
	if most > open0+200 {
		t.Errorf("%d descriptors were open, before %d", most, open0)
	}
	nothingLeft(t, r, dir)
}

// descriptors counts those of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

func TestAFolderOfManyFilesIsRemoved(t *testing.T) {
	r, dir := open(t)
	id, path := made(t, r)
	for i := range 3000 {
		must(t, os.WriteFile(filepath.Join(path, strconv.Itoa(i)), nil, 0o600))
	}
	must(t, r.Remove(id))
	nothingLeft(t, r, dir)
}

func TestALinkInAWorkspaceIsRemovedAndNotWhatItNames(t *testing.T) {
	r, _ := open(t)
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	must(t, os.WriteFile(precious, []byte("x"), 0o400))
	id, path := made(t, r)
	if err := os.Symlink(outside, filepath.Join(path, "link")); err != nil {
		t.Skip(err)
	}
	must(t, os.Symlink(precious, filepath.Join(path, "file")))
	must(t, r.Remove(id))
	if info, err := os.Stat(precious); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("what a link named has changed: %v, %v", info, err)
	}
}

func TestFilesThatNobodyMayChangeAreRemoved(t *testing.T) {
	r, dir := open(t)
	id, path := made(t, r)
	file, folder := filepath.Join(path, "fixed"), filepath.Join(path, "folder")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Mkdir(folder, 0o700))
	must(t, os.WriteFile(filepath.Join(folder, "x"), nil, 0o600))
	if out, err := exec.Command("chattr", "+i", file, folder, path).CombinedOutput(); err != nil {
		t.Skipf("attributes cannot be set here: %v: %s", err, out)
	}
	must(t, r.Remove(id))
	nothingLeft(t, r, dir)
}

// TestTheSweeperRemovesWhatEarlierProcessesLeft: B40 and 07§245.
func TestTheSweeperRemovesWhatEarlierProcessesLeft(t *testing.T) {
	r, dir := open(t)
	live, livePath := made(t, r)
	made(t, r)
	_, half := made(t, r)
	must(t, os.Rename(half, filepath.Join(dir, ".gone-half"))) // an earlier removal was cut off
	removed, err := r.Sweep(t.Context(), func(id forge.AttemptID) bool { return id == live })
	must(t, err)
	if removed != 2 {
		t.Errorf("%d were removed, want 2", removed)
	}
	if _, err := os.Stat(livePath); err != nil {
		t.Errorf("a live workspace: %v", err)
	}
}

func TestTheSweeperLeavesWhatIsNotOurs(t *testing.T) {
	r, dir := open(t)
	foreign := filepath.Join(dir, "holiday photos")
	must(t, os.Mkdir(foreign, 0o700))
	made(t, r)
	removed, err := r.Sweep(t.Context(), func(forge.AttemptID) bool { return false })
	if removed != 1 || err == nil || !strings.Contains(err.Error(), "holiday photos") {
		t.Errorf("removed %d, %v; want 1, and a word about the foreign folder", removed, err)
	}
	must(t, func() error { _, err := os.Stat(foreign); return err }())
}

func TestFreeSpaceIsThatOfTheDisk(t *testing.T) {
	r, _ := open(t)
	free, total, err := r.Free()
	if err != nil || free == 0 || free > total {
		t.Errorf("free %v of %v, %v", free, total, err)
	}
}
