package capture_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a sink that checks what a store would.
type memory struct {
	mu      sync.Mutex
	objects map[digest.Ref][]byte
	added   int                                          // files
	before  func(ctx context.Context, r io.Reader) error // each file
}

func (m *memory) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	if m.before != nil {
		if err := m.before(ctx, r); err != nil {
			return digest.Ref{}, err
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return digest.Ref{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.added++
	return m.keep(b), nil
}

func (m *memory) Put(_ context.Context, ref digest.Ref, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	entries, err := tree.Decode(b)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if _, ok := m.objects[e.Ref]; !ok && e.Kind != tree.Link {
			return fmt.Errorf("%s is put before what it names", e.Name)
		}
	}
	if m.keep(b) != ref {
		return errors.New("another object")
	}
	return nil
}

func (m *memory) keep(b []byte) digest.Ref {
	if m.objects == nil {
		m.objects = map[digest.Ref][]byte{}
	}
	ref := digest.RefOf(b)
	m.objects[ref] = b
	return ref
}

// list writes a tree as lines, sorted as trees are.
func (m *memory) list(t *testing.T, ref digest.Ref) string {
	t.Helper()
	var b strings.Builder
	var walk func(ref digest.Ref, at string)
	walk = func(ref digest.Ref, at string) {
		entries, err := tree.Decode(m.objects[ref])
		must(t, err)
		if at != "" && len(entries) == 0 {
			fmt.Fprintf(&b, "%s/\n", at)
		}
		for _, e := range entries {
			at := path.Join(at, e.Name)
			switch e.Kind {
			case tree.Folder:
				walk(e.Ref, at)
			case tree.Link:
				fmt.Fprintf(&b, "%s -> %s\n", at, e.Target)
			default:
				x := ""
				if e.Executable {
					x = " x"
				}
				fmt.Fprintf(&b, "%s %q%s\n", at, m.objects[e.Ref], x)
			}
		}
	}
	walk(ref, "")
	return b.String()
}

// materialise writes a tree into a folder, and nothing through what stands there.
func (m *memory) materialise(t *testing.T, ref digest.Ref, into *os.Root) {
	t.Helper()
	entries, err := tree.Decode(m.objects[ref])
	must(t, err)
	for _, e := range entries {
		switch e.Kind {
		case tree.Folder:
			must(t, into.Mkdir(e.Name, 0o755))
			sub, err := into.OpenRoot(e.Name)
			must(t, err)
			m.materialise(t, e.Ref, sub)
			must(t, sub.Close())
		case tree.Link:
			must(t, into.Symlink(e.Target, e.Name))
		default:
			mode := fs.FileMode(0o644)
			if e.Executable {
				mode = 0o755
			}
			must(t, into.WriteFile(e.Name, m.objects[e.Ref], mode))
		}
	}
}

// job is the folder that a job has left.
type job struct {
	*testing.T
	work   string
	source string
	sink   memory
	out    forge.Output
	limits capture.Limits
}

func newJob(t *testing.T, patterns ...string) *job {
	t.Helper()
	work := t.TempDir()
	j := &job{T: t, work: work, source: filepath.Join(work, forge.SourceDir), out: forge.Output{
		Name: "app", Base: forge.SourceDir, Patterns: patterns, When: forge.WhenSuccess, MaxBytes: forge.MiB, MaxFiles: 1000,
	}}
	must(t, os.Mkdir(j.source, 0o700))
	return j
}

// write leaves files with their own paths in them.
func (j *job) write(paths ...string) {
	j.Helper()
	for _, p := range paths {
		at := filepath.Join(j.source, p)
		must(j.T, os.MkdirAll(filepath.Dir(at), 0o700))
		must(j.T, os.WriteFile(at, []byte(p), 0o600))
	}
}

func (j *job) link(target, name string) {
	j.Helper()
	at := filepath.Join(j.source, name)
	must(j.T, os.MkdirAll(filepath.Dir(at), 0o700))
	must(j.T, os.Symlink(target, at))
}

func (j *job) take() (capture.Result, error) {
	j.Helper()
	root, err := os.OpenRoot(j.work)
	must(j.T, err)
	r, err := capture.Take(j.Context(), root, j.out, &j.sink, j.limits)
	must(j.T, root.Close())
	return r, err
}

// want takes the output and compares what is kept.
func (j *job) want(lines ...string) capture.Result {
	j.Helper()
	r, err := j.take()
	must(j.T, err)
	if got, want := j.sink.list(j.T, r.Tree.Root), strings.Join(lines, "\n")+"\n"; got != want {
		j.Errorf("kept\n%swant\n%s", got, want)
	}
	return r
}

// refused takes the output and wants an error of a class that names what is wrong.
func (j *job) refused(class forge.Class, words ...string) *capture.Error {
	j.Helper()
	_, err := j.take()
	var e *capture.Error
	if !errors.As(err, &e) || e.Class != class || e.Output != j.out.Name {
		j.Fatalf("got %v, want the class %v", err, class)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			j.Errorf("%q says nothing of %q", err, word)
		}
	}
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
