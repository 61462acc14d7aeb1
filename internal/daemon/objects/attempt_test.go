package objects_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// Threat S16, 09§93: an attempt reads its inputs and what it has uploaded, and nothing else that exists.
func TestAnAttemptReadsItsInputsAndItsUploadsOnly(t *testing.T) {
	w := newWorld(t)
	app := w.Project("app")
	tree, _ := castest.Tree(t, app, map[string]string{"a/b": "source"})
	secret := put(t, app, []byte("of the same project, and no input"))
	l := w.running("app", func(s *forge.JobSpec) { input(tree)(s); output(s) })
	s := w.scope(l)
	castest.Holds(t, s, digest.RefOf([]byte("source")), []byte("source"))
	if got := castest.Paths(t, s, tree); got["a/b"] != "source" {
		t.Errorf("%v", got)
	}
	mine := put(t, s, []byte("made by the job"))
	castest.Holds(t, s, mine, []byte("made by the job"))
	_, forbidden := s.Open(t.Context(), secret)
	_, absent := s.Open(t.Context(), digest.RefOf([]byte("nowhere at all, the same length..")))
	if !errors.Is(forbidden, cas.ErrNotFound) || forbidden.Error() != absent.Error() {
		t.Errorf("forbidden: %v; absent: %v", forbidden, absent)
	}
	if missing, err := s.Missing(t.Context(), []digest.Ref{secret}); err != nil || len(missing) != 0 {
		t.Errorf("its project holds it: %v, %v", missing, err)
	}
	if _, err := s.Open(t.Context(), secret); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("after it was asked about: %v", err)
	}
}

func TestAnotherProjectsObjectsAreMissingAndForbiddenToAnAttempt(t *testing.T) {
	w := newWorld(t)
	secret := put(t, w.Project("theirs"), []byte("secret"))
	s := w.scope(w.running("app", output))
	missing, err := s.Missing(t.Context(), []digest.Ref{secret})
	if err != nil || len(missing) != 1 {
		t.Errorf("missing: %v, %v", missing, err)
	}
	if _, err := s.Open(t.Context(), secret); !errors.Is(err, cas.ErrNotFound) {
		t.Error(err)
	}
}

func TestAnAttemptIsItsRunnersAlone(t *testing.T) {
	w := newWorld(t)
	l := w.running("app", output)
	for name, try := range map[string]func() error{
		"another runner": func() error {
			_, err := w.Admit(t.Context(), ident.New[forge.RunnerID](), l.of.Attempt, l.of.Lease)
			return err
		},
		"another lease": func() error {
			_, err := w.Admit(t.Context(), l.of.Runner, l.of.Attempt, ident.New[forge.LeaseID]())
			return err
		},
		"no such attempt": func() error {
			_, err := w.Admit(t.Context(), l.of.Runner, ident.New[forge.AttemptID](), l.of.Lease)
			return err
		},
	} {
		if err := try(); !errors.Is(err, objects.ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAfterItsLeaseAnAttemptMovesNothing(t *testing.T) {
	w := newWorld(t)
	tree, _ := castest.Tree(t, w.Project("app"), map[string]string{"f": "x"})
	l := w.running("app", func(s *forge.JobSpec) { input(tree)(s); output(s) })
	w.end(l)
	if _, err := w.Attempt(t.Context(), l.of); !errors.Is(err, remote.ErrStale) {
		t.Error(err)
	}
	w.restart()
	if _, err := w.Attempt(t.Context(), l.of); !errors.Is(err, remote.ErrStale) {
		t.Errorf("after a restart: %v", err)
	}
}

// Threat S22: an attempt uploads no more than its outputs may hold.
func TestAnAttemptUploadsNoMoreThanItsOutputsMayHold(t *testing.T) {
	w := newWorld(t)
	none := w.scope(w.running("app", func(*forge.JobSpec) {}))
	if err := none.Put(t.Context(), digest.RefOf([]byte("x")), bytes.NewReader([]byte("x"))); !errors.Is(err, remote.ErrQuota) {
		t.Errorf("without outputs: %v", err)
	}
	s := w.scope(w.running("app", output))
	var err error
	sent := 0
	for i := 0; err == nil && i < 50; i++ {
		b := castest.Bytes(uint64(i), 1<<20)
		if err = s.Put(t.Context(), digest.RefOf(b), bytes.NewReader(b)); err == nil {
			sent += len(b)
			put(t, s, b) // again, for nothing
		}
	}
	if !errors.Is(err, remote.ErrQuota) || sent < 16<<20 {
		t.Errorf("after %d bytes: %v", sent, err)
	}
	large := digest.Ref{Digest: digest.Digest{1}, Bytes: 1 << 40}
	if _, err := s.Part(t.Context(), large, nil); !errors.Is(err, remote.ErrQuota) {
		t.Errorf("a large one: %v", err)
	}
}

func TestAnUploadThatFailsGivesItsQuotaBack(t *testing.T) {
	w := newWorld(t)
	s := w.scope(w.running("app", output))
	ref := digest.Ref{Digest: digest.Digest{1}, Bytes: 20 << 20}
	for range 10 {
		p, err := s.Part(t.Context(), ref, nil)
		w.must(err)
		w.must(p.Close())
	}
}

// 07§289: a completion counts only once everything below what it names is there.
func TestWhatACompletionNamesHasToBeWholeFirst(t *testing.T) {
	w := newWorld(t)
	l := w.running("app", output)
	s := w.scope(l)
	whole := castest.NewMemory()
	tree, _ := castest.Tree(t, whole, map[string]string{"a/b": "made", "c": "too"})
	named := []forge.OutputRef{{Output: 0, Ref: tree.Root, Tree: true}}
	for i, ref := range append(whole.Refs(), digest.Ref{}) {
		err := w.Deliver(t.Context(), l.of, named)
		if last := i == len(whole.Refs()); last {
			w.must(err)
			break
		}
		var missing *objects.MissingError
		if !errors.As(err, &missing) {
			t.Fatalf("with %d objects: %v", i, err)
		}
		if w.live(l, named[0]) {
			t.Fatal("it is live already")
		}
		b, _ := whole.Data(ref)
		put(t, s, b)
	}
	if !w.live(l, named[0]) {
		t.Error("it is not live")
	}
	w.must(w.Deliver(t.Context(), l.of, named))
}

// live reports whether an output was recorded as live.
func (w *world) live(l lease, out forge.OutputRef) (live bool) {
	w.t.Helper()
	w.must(w.rows.View(w.t.Context(), func(v *store.View) error {
		uses, err := v.ObjectUses(out.Ref, 10)
		for _, u := range uses {
			live = live || u.Attempt == l.of.Attempt && u.Live
		}
		return err
	}))
	return live
}

func TestAnOutputThatMayNotBeIsRefused(t *testing.T) {
	w := newWorld(t)
	l := w.running("app", output)
	s := w.scope(l)
	files := map[string]string{}
	for i := range 101 {
		files[string(rune('a'+i%26))+string(rune('a'+i/26))] = "x"
	}
	many, _ := castest.Tree(t, s, files)
	no := put(t, s, []byte("no tree"))
	for name, out := range map[string]forge.OutputRef{
		"not declared":   {Output: 1, Ref: no},
		"too many files": {Ref: many.Root, Tree: true},
	} {
		var refused *objects.OutputError
		if err := w.Deliver(t.Context(), l.of, []forge.OutputRef{out}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var bad *cas.TreeError
	if err := w.Deliver(t.Context(), l.of, []forge.OutputRef{{Ref: no, Tree: true}}); !errors.As(err, &bad) {
		t.Errorf("no tree: %v", err)
	}
}

// A damaged input is no fault of whoever asks for it.
func TestADamagedInputIsNamed(t *testing.T) {
	w := newWorld(t)
	tree, _ := castest.Tree(t, w.Project("app"), map[string]string{"a/b": "source"})
	l := w.running("app", input(tree))
	w.spoil(tree.Root)
	var corrupt *cas.CorruptError
	if _, err := w.scope(l).Open(t.Context(), tree.Root); !errors.As(err, &corrupt) || corrupt.Ref != tree.Root {
		t.Error(err)
	}
}
