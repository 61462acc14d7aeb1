package objects_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/objects"
)

// bound is how much the caches here may hold, and most a file of which they hold one, and not two: room is reserved in steps
// of 8 MiB for a file whose size is not known.
const (
	bound = 32 * forge.MiB
	most  = 22 << 20
)

// world is a machine with caches, and a daemon's store.
type world struct {
	t   *testing.T
	dir string
	far *castest.Memory
	*objects.Objects
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), far: castest.NewMemory()}
	w.open()
	t.Cleanup(func() { w.must(w.Close()) })
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	w.Objects, err = objects.Open(objects.Config{
		Dir: w.dir, Far: func(forge.AttemptContext) cas.Store { return w.far }, Limits: objects.Limits{MaxBytes: bound},
	})
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// job is what a job has left: one file of a size, which is another for each seed.
func job(t *testing.T, seed uint64, size int) *os.Root {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, forge.SourceDir), 0o700),
		os.WriteFile(filepath.Join(dir, forge.SourceDir, "built"), castest.Bytes(seed, size), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// take captures that file into a sink.
func take(t *testing.T, root *os.Root, sink capture.Sink) (digest.Ref, error) {
	t.Helper()
	out := forge.Output{Name: "built", Base: forge.SourceDir, Patterns: []string{"*"}, When: forge.WhenSuccess, MaxBytes: forge.GiB, MaxFiles: 4}
	r, err := capture.Take(t.Context(), root, out, sink, capture.Limits{})
	return r.Tree.Root, err
}

func TestWhatTheDaemonLosesIsDeliveredAgainFromTheCache(t *testing.T) {
	w := newWorld(t)
	out := w.Outputs(forge.AttemptContext{})
	defer out.Close()
	root, err := take(t, job(t, 1, 1000), out)
	w.must(err)
	w.must(out.Deliver(t.Context()))
	sent := len(w.far.Refs())
	if sent != 2 {
		t.Fatalf("%d objects were delivered", sent)
	}
	w.far.Remove(root)
	w.must(out.Deliver(t.Context()))
	if len(w.far.Refs()) != sent {
		t.Errorf("the daemon has %d of %d objects", len(w.far.Refs()), sent)
	}
}

// TestWhatIsCapturedIsNotGivenUpBeforeItsEnd: the cache makes room by giving up objects, but none that a completion that is not
// answered may need. Once the attempt is over, they are like any other.
func TestWhatIsCapturedIsNotGivenUpBeforeItsEnd(t *testing.T) {
	w := newWorld(t)
	first := w.Outputs(forge.AttemptContext{})
	_, err := take(t, job(t, 1, most), first)
	w.must(err)
	w.must(first.Deliver(t.Context()))
	for _, ref := range w.far.Refs() {
		w.far.Remove(ref)
	}
	second := w.Outputs(forge.AttemptContext{})
	_, err = take(t, job(t, 2, most), second)
	var refused *capture.Error
	if !errors.As(err, &refused) || refused.Class != forge.UploadFailed || !errors.Is(err, cas.ErrFull) {
		t.Errorf("what has no room ends as %v", err)
	}
	second.Close()
	w.must(first.Deliver(t.Context()))
	if len(w.far.Refs()) != 2 {
		t.Errorf("of the first %d objects came again", len(w.far.Refs()))
	}
	first.Close()
	third := w.Outputs(forge.AttemptContext{})
	_, err = take(t, job(t, 2, most), third)
	w.must(err)
	third.Close()
	if n, _ := w.InUse(); n != 0 {
		t.Errorf("%d objects are kept for nobody", n)
	}
}

// TestWhatTheCacheLosesTooIsNamedAndTakenAgain: a damaged object goes nowhere.
func TestWhatTheCacheLosesTooIsNamedAndTakenAgain(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"gone": os.Remove,
		"damaged": func(path string) error {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content[0] ^= 1
			return errors.Join(os.Remove(path), os.WriteFile(path, content, 0o400))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			files := job(t, 1, 300<<10)
			out := w.Outputs(forge.AttemptContext{})
			defer out.Close()
			_, err := take(t, files, out)
			w.must(err)
			ref := digest.RefOf(castest.Bytes(1, 300<<10))
			hex := ref.Digest.String()[len("b3:"):]
			w.must(spoil(filepath.Join(w.dir, "cache", "b3", hex[:2], hex)))
			var corrupt *cas.CorruptError
			if err := out.Deliver(t.Context()); !errors.Is(err, cas.ErrNotFound) && !errors.As(err, &corrupt) {
				t.Errorf("the error is %v", err)
			}
			if _, there := w.far.Data(ref); there {
				t.Error("the daemon got it all the same")
			}
			_, err = take(t, files, out)
			w.must(err)
			w.must(out.Deliver(t.Context()))
			if data, _ := w.far.Data(ref); !bytes.Equal(data, castest.Bytes(1, 300<<10)) {
				t.Error("the daemon has something else")
			}
		})
	}
}

// TestAnAgentThatWasKilledKeepsNothingForItsAttempts: what it had captured is cache, and goes when there is need.
func TestAnAgentThatWasKilledKeepsNothingForItsAttempts(t *testing.T) {
	w := newWorld(t)
	_, err := take(t, job(t, 1, most), w.Outputs(forge.AttemptContext{}))
	w.must(err)
	w.must(w.Close()) // as the system does; nobody closes the output
	w.open()
	out := w.Outputs(forge.AttemptContext{})
	defer out.Close()
	_, err = take(t, job(t, 2, most), out)
	w.must(err)
}

// place is a store of this machine that names what it takes.
type place struct{ *castest.Memory }

func (p place) Add(_ context.Context, r io.Reader) (digest.Ref, error) {
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		return digest.Ref{}, err
	}
	return p.Memory.Add(b.Bytes()), nil
}

// TestAnOutputThatIsWhereItGoesIsLookedForWhenItIsMissed: there is no other copy, but the job's files are there.
func TestAnOutputThatIsWhereItGoesIsLookedForWhenItIsMissed(t *testing.T) {
	w := &world{t: t, far: castest.NewMemory()}
	o, err := objects.Open(objects.Config{
		Dir: t.TempDir(), Far: func(forge.AttemptContext) cas.Store { return place{w.far} }, InPlace: true, Limits: objects.DefaultLimits(),
	})
	w.must(err)
	defer func() { w.must(o.Close()) }()
	files, out := job(t, 1, 1000), o.Outputs(forge.AttemptContext{})
	defer out.Close()
	root, err := take(t, files, out)
	w.must(err)
	w.must(out.Deliver(t.Context()))
	w.must(out.Deliver(t.Context()))
	w.far.Remove(root)
	if err := out.Deliver(t.Context()); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("of what is missing it says %v", err)
	}
	_, err = take(t, files, out)
	w.must(err)
	w.must(out.Deliver(t.Context()))
}
