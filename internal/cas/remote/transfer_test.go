package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// sizes are those at which something changes.
var sizes = []int{0, 1, 511, 512, 64 << 10, 256<<10 - 1, 256 << 10, 256<<10 + 1, remote.Small - 1, remote.Small, remote.Small + 1, 3<<20 + 7}

// corpus is objects of every size, some of which compress well and some not at all.
func corpus() (objects [][]byte) {
	for i, n := range sizes {
		objects = append(objects, noise(uint64(i), n), bytes.Repeat([]byte{byte(i + 1)}, n+i+1))
	}
	return objects
}

func everyRoad(t *testing.T, test func(t *testing.T, r road)) {
	t.Run("inmem", func(t *testing.T) { test(t, inMemory) })
	t.Run("quic", func(t *testing.T) { test(t, overQUIC(t)) })
}

func TestObjectsOfEverySizeGoUpAndDownUnchanged(t *testing.T) {
	everyRoad(t, func(t *testing.T, r road) {
		objects := corpus()
		mine, theirs := newShelf(objects...), newShelf()
		w := newWorld(t, r, theirs)
		w.connect()
		if err := w.store().CopyFrom(t.Context(), mine, refsOf(objects)); err != nil {
			t.Fatal(err)
		}
		back := newShelf()
		if err := w.store().CopyTo(t.Context(), back, refsOf(objects)); err != nil {
			t.Fatal(err)
		}
		for i, o := range objects {
			if !theirs.has(o) || !back.has(o) {
				t.Errorf("object %d of %d bytes: up %v, and down %v", i, len(o), theirs.has(o), back.has(o))
			}
		}
		if errs := w.served(); len(errs) > 0 {
			t.Error(errs)
		}
	})
}

func TestOneObjectAfterAnotherGoesByPutAndOpen(t *testing.T) {
	everyRoad(t, func(t *testing.T, r road) {
		theirs := newShelf()
		w := newWorld(t, r, theirs)
		w.connect()
		for _, o := range corpus() {
			ref := digest.RefOf(o)
			if err := w.store().Put(t.Context(), ref, bytes.NewReader(o)); err != nil {
				t.Fatal(err)
			}
			rc, err := w.store().Open(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(rc)
			if err != nil || !bytes.Equal(got, o) {
				t.Errorf("%v came back as %d bytes: %v", ref, len(got), err)
			}
			if err := rc.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestNothingIsSentTwice(t *testing.T) {
	objects := corpus()
	w := newWorld(t, inMemory, newShelf(objects...))
	w.connect()
	if err := w.store().CopyFrom(t.Context(), newShelf(objects...), refsOf(objects)); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if len(o) <= remote.Small {
			continue
		}
		if err := w.store().Put(t.Context(), digest.RefOf(o), unread{t}); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.client.Figures(); f.Sent > 0 {
		t.Errorf("%d bytes were sent", f.Sent)
	}
}

// unread is a reader that nobody reads.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

func TestMissingAsksInBatchesAndKeepsTheOrder(t *testing.T) {
	var refs, want []digest.Ref
	theirs := newShelf()
	for i := range 10_000 {
		ref := digest.RefOf([]byte{byte(i), byte(i >> 8)})
		refs = append(refs, ref, ref)
		if i%3 == 0 {
			want = append(want, ref)
		} else {
			theirs.objects[ref] = nil
		}
	}
	w := newWorld(t, inMemory, theirs)
	w.connect()
	missing, err := w.store().Missing(t.Context(), refs)
	if err != nil || len(missing) != len(want) {
		t.Fatalf("%d are missing, not %d: %v", len(missing), len(want), err)
	}
	for i := range want {
		if missing[i] != want[i] {
			t.Fatalf("the order is lost at %d", i)
		}
	}
}

func TestWhatIsNotThereAndWhatMayNotBeHadLookAlike(t *testing.T) {
	secret := []byte("of another project")
	theirs := newShelf(secret)
	theirs.hidden[digest.RefOf(secret)] = true
	w := newWorld(t, inMemory, theirs)
	w.connect()
	_, forbidden := w.store().Open(t.Context(), digest.RefOf(secret))
	_, absent := w.store().Open(t.Context(), digest.RefOf([]byte("nowhere!!!!!!!!!!!")))
	if !errors.Is(forbidden, cas.ErrNotFound) || !errors.Is(absent, cas.ErrNotFound) {
		t.Errorf("%v; %v", forbidden, absent)
	}
	err := w.store().CopyTo(t.Context(), newShelf(), []digest.Ref{digest.RefOf(secret)})
	if !errors.Is(err, cas.ErrNotFound) {
		t.Error(err)
	}
}

func TestADamagedObjectNeverArrives(t *testing.T) {
	for _, n := range []int{1000, 300 << 10, 3 << 20} {
		o := noise(1, n)
		ref := digest.RefOf(o)
		theirs := newShelf(o)
		theirs.damage[ref] = true
		w := newWorld(t, inMemory, theirs)
		w.connect()
		mine := newShelf()
		err := w.store().CopyTo(t.Context(), mine, []digest.Ref{ref})
		var corrupt *cas.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Ref != ref {
			t.Errorf("%d bytes: %v", n, err)
		}
		if len(mine.objects) > 0 {
			t.Errorf("%d bytes: it was stored", n)
		}
	}
}

func TestASourceThatLiesIsFoundOutBeforeAnythingIsStored(t *testing.T) {
	for _, n := range []int{1000, 3 << 20} {
		o := noise(1, n)
		ref := digest.RefOf(o)
		mine, theirs := newShelf(o), newShelf()
		mine.damage[ref] = true
		w := newWorld(t, inMemory, theirs)
		w.connect()
		var corrupt *cas.CorruptError
		if err := w.store().CopyFrom(t.Context(), mine, []digest.Ref{ref}); !errors.As(err, &corrupt) {
			t.Errorf("copy of %d bytes: %v", n, err)
		}
		for _, b := range [][]byte{o[:n-1], append(bytes.Clone(o), 1), noise(2, n)} {
			var mismatch *cas.MismatchError
			if err := w.store().Put(t.Context(), ref, bytes.NewReader(b)); !errors.As(err, &mismatch) {
				t.Errorf("put of %d bytes: %v", len(b), err)
			}
		}
		if len(theirs.objects) > 0 {
			t.Errorf("%d bytes: it was stored", n)
		}
	}
}

func TestWhatADaemonRefusesComesBackAsItsError(t *testing.T) {
	for _, want := range []error{remote.ErrStale, remote.ErrQuota, cas.ErrNotFound} {
		for _, n := range []int{10, 3 << 20} {
			theirs := newShelf()
			theirs.fails = func() error { return want }
			w := newWorld(t, inMemory, theirs)
			w.connect()
			o := noise(1, n)
			if err := w.store().Put(t.Context(), digest.RefOf(o), bytes.NewReader(o)); !errors.Is(err, want) {
				t.Errorf("%d bytes: %v, not %v", n, err, want)
			}
		}
	}
}

// What is full gets room again, and nobody has to lend a hand.
func TestAFullDaemonIsTriedAgainUntilThereIsRoom(t *testing.T) {
	left := 2
	objects := [][]byte{noise(1, 10), noise(2, 3<<20)}
	theirs := newShelf()
	theirs.fails = func() error {
		if left--; left >= 0 {
			return cas.ErrFull
		}
		return nil
	}
	w := newWorld(t, inMemory, theirs)
	w.connect()
	if err := w.store().CopyFrom(t.Context(), newShelf(objects...), refsOf(objects)); err != nil {
		t.Error(err)
	}
	for _, o := range objects {
		if !theirs.has(o) {
			t.Errorf("%d bytes are missing", len(o))
		}
	}
}

func TestWhoGivesUpSaysWhatWentWrongLast(t *testing.T) {
	theirs := newShelf()
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("the deadline of the attempt")
	theirs.fails = func() error {
		cancel(late)
		return cas.ErrFull
	}
	w := newWorld(t, inMemory, theirs)
	w.connect()
	if err := w.store().Put(ctx, digest.RefOf([]byte("a")), bytes.NewReader([]byte("a"))); !errors.Is(err, late) {
		t.Error(err)
	}
}

// Whoever sent the beginning of an object may have been wrong about it. The next one does not suffer for that.
func TestAWrongBeginningIsSentOverAgain(t *testing.T) {
	o := noise(1, 3<<20)
	ref := digest.RefOf(o)
	for name, send := range map[string]func(*remote.Store) error{
		"copy": func(s *remote.Store) error { return s.CopyFrom(t.Context(), newShelf(o), []digest.Ref{ref}) },
		"put":  func(s *remote.Store) error { return s.Put(t.Context(), ref, bytes.NewReader(o)) },
	} {
		theirs := newShelf()
		theirs.parts[ref] = noise(2, 1<<20)
		w := newWorld(t, inMemory, theirs)
		w.connect()
		if err := send(w.store()); err != nil || !theirs.has(o) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
