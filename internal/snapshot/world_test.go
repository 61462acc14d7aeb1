package snapshot_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that keeps to the contract of one.
type memory struct {
	mu      sync.Mutex
	objects map[digest.Ref][]byte
	puts    int
	before  func() // before it says what is missing
}

func newMemory() *memory { return &memory{objects: map[digest.Ref][]byte{}} }

func (m *memory) Missing(_ context.Context, refs []digest.Ref) (missing []digest.Ref, _ error) {
	if m.before != nil {
		m.before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := map[digest.Ref]bool{}
	for _, ref := range refs {
		if _, ok := m.objects[ref]; !ok && !seen[ref] {
			seen[ref] = true
			missing = append(missing, ref)
		}
	}
	return missing, nil
}

func (m *memory) Put(_ context.Context, ref digest.Ref, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if got := digest.RefOf(data); got != ref {
		return &cas.MismatchError{Ref: ref, Got: got}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts++
	m.objects[ref] = data
	return nil
}

func (m *memory) Open(_ context.Context, ref digest.Ref) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[ref]
	if !ok {
		return nil, cas.ErrNotFound
	}
	return cas.Check(ref, io.NopCloser(bytes.NewReader(data)), "memory"), nil
}

// sh runs a script in dir as a user of git with a name and no other configuration, and returns what it printed.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
		"GIT_CONFIG_KEY_1=protocol.file.allow", "GIT_CONFIG_VALUE_1=always",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", script, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

// folder is a new folder, by its real path, in which a script has run.
func folder(t testing.TB, script string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, script)
	return dir
}

// take captures into a store that is new if m is nil.
func take(t *testing.T, o snapshot.Options, m *memory) snapshot.Snapshot {
	t.Helper()
	if m == nil {
		m = newMemory()
	}
	snap, err := snapshot.Take(t.Context(), o, m)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// paths lists a tree: path, then what stands there.
func paths(t *testing.T, m *memory, root forge.TreeRef) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := cas.Walk(t.Context(), m, root, func(path string, e tree.Entry) error {
		switch e.Kind {
		case tree.Folder:
			list[path+"/"] = ""
		case tree.Link:
			list[path] = "-> " + e.Target
		default:
			list[path] = string(m.objects[e.Ref])
			if e.Executable {
				list[path] = "* " + list[path]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// materialise writes a tree into a folder.
func materialise(t *testing.T, m *memory, root forge.TreeRef, dir string) {
	t.Helper()
	err := cas.Walk(t.Context(), m, root, func(path string, e tree.Entry) error {
		at := filepath.Join(dir, path)
		switch e.Kind {
		case tree.Folder:
			return os.MkdirAll(at, 0o755)
		case tree.Link:
			return os.Symlink(e.Target, at)
		}
		mode := os.FileMode(0o644)
		if e.Executable {
			mode = 0o755
		}
		return os.WriteFile(at, m.objects[e.Ref], mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}
