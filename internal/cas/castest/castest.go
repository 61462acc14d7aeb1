// Package castest is for tests around the content store: the suite that each implementation of cas.Store passes, a store in
// memory, stores and readers that fail on purpose, and disks so small that they fill up.
package castest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Bytes returns an object of so many bytes that do not compress, always the same for a seed.
func Bytes(seed uint64, size int) []byte {
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24), 0xca})
	_, _ = random.Read(data)
	return data
}

// Folder is a folder for a test, in memory where this machine has a large place there: thousands of small files are made and
// removed in it without a disk that gets slower by it.
func Folder(t testing.TB) string {
	t.Helper()
	if memory == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "forgeyard-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Suite runs everything that a store promises on stores that make returns. Each is empty.
func Suite(t *testing.T, make func(t *testing.T) cas.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s cas.Store)
	}{
		{"WhatWasPutComesBack", comesBack},
		{"AnObjectIsNamedByBothDigestAndSize", namedByBoth},
		{"MissingAnswersInOrderEachOnceAnyNumber", missing},
		{"BytesThatAreAnotherObjectAreRefused", mismatch},
		{"PuttingAgainIsNoError", again},
		{"AnErrorOfTheReaderIsReturnedAndNothingIsVisible", readerFails},
		{"ACancelledPutLeavesNothing", cancelled},
		{"ManyAtOncePutAndReadTheSame", together},
		{"AReaderMayBeClosedEarly", closedEarly},
		{"CopyBringsWhatIsMissing", copies},
		{"TreesAreFetchedAndWalked", trees},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, make(t)) })
	}
}

// sizes are around the bounds at which implementations change their ways.
var sizes = []int{0, 1, 4096, 64 << 10, 64<<10 + 1, 256 << 10, 256<<10 + 1, 1 << 20, 3<<20 + 17}

func comesBack(t *testing.T, s cas.Store) {
	for i, size := range sizes {
		data := Bytes(uint64(i), size)
		ref := digest.RefOf(data)
		if err := s.Put(t.Context(), ref, iotest.DataErrReader(bytes.NewReader(data))); err != nil {
			t.Fatalf("put %d bytes: %v", size, err)
		}
		Holds(t, s, ref, data)
	}
	data := Bytes(99, 70_000)
	if err := s.Put(t.Context(), digest.RefOf(data), iotest.OneByteReader(bytes.NewReader(data))); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), digest.RefOf(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(r, data); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Holds checks that a store has an object, by what it says and by its bytes.
func Holds(t testing.TB, s cas.Store, ref digest.Ref, data []byte) {
	t.Helper()
	if missing, err := s.Missing(t.Context(), []digest.Ref{ref}); err != nil || len(missing) > 0 {
		t.Errorf("object %v counts as missing (%v)", ref, err)
	}
	got, err := cas.ReadAll(t.Context(), s, ref, ref.Bytes)
	if err != nil {
		t.Errorf("read: %v", err)
	} else if !bytes.Equal(got, data) {
		t.Errorf("object %v has other bytes", ref)
	}
}

// Lacks checks that a store has not an object.
func Lacks(t testing.TB, s cas.Store, ref digest.Ref) {
	t.Helper()
	if missing, err := s.Missing(t.Context(), []digest.Ref{ref}); err != nil || len(missing) != 1 || missing[0] != ref {
		t.Errorf("object %v is not missing: %v, %v", ref, missing, err)
	}
	if r, err := s.Open(t.Context(), ref); !errors.Is(err, cas.ErrNotFound) {
		if err == nil {
			_, err = io.Copy(io.Discard, r) // a road may say so late
			err = errors.Join(err, r.Close())
		}
		if !errors.Is(err, cas.ErrNotFound) {
			t.Errorf("object %v can be opened: %v, want ErrNotFound", ref, err)
		}
	}
}

func namedByBoth(t *testing.T, s cas.Store) {
	data := Bytes(1, 1000)
	ref := digest.RefOf(data)
	Lacks(t, s, ref)
	if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []uint64{0, 999, 1001, 1 << 40} {
		Lacks(t, s, digest.Ref{Digest: ref.Digest, Bytes: size})
	}
	Lacks(t, s, digest.Ref{Digest: digest.Of([]byte("another")), Bytes: 1000})
	Holds(t, s, ref, data)
}

func missing(t *testing.T, s cas.Store) {
	const many = 10_000 // more than fits one question of the protocol
	var all, want []digest.Ref
	for i := range many {
		data := fmt.Appendf(nil, "object %d", i)
		ref := digest.RefOf(data)
		all = append(all, ref)
		if i%100 == 7 {
			if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
		} else {
			want = append(want, ref)
		}
	}
	for name, ask := range map[string][]digest.Ref{"each once": all, "some twice": append(slices.Clone(all), all[:50]...)} {
		got, err := s.Missing(t.Context(), ask)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d missing, want %d, in their order (%v)", name, len(got), len(want), err)
		}
	}
	if got, err := s.Missing(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing is missing %v, %v", got, err)
	}
}

func mismatch(t *testing.T, s cas.Store) {
	for _, size := range []int{10, 300 << 10, 3 << 20} {
		data := Bytes(5, size)
		ref := digest.RefOf(data)
		flipped := slices.Clone(data)
		flipped[size/2] ^= 1
		for name, other := range map[string][]byte{
			"one bit": flipped, "cut": data[:size-1], "nothing": nil, "one more": append(slices.Clone(data), 0),
			"twice": append(slices.Clone(data), data...),
		} {
			err := s.Put(t.Context(), ref, bytes.NewReader(other))
			var m *cas.MismatchError
			if !errors.As(err, &m) || m.Ref != ref {
				t.Errorf("%d bytes, %s: %v, want a MismatchError that names the object", size, name, err)
			}
			Lacks(t, s, ref)
			if name != "nothing" {
				Lacks(t, s, digest.RefOf(other))
			}
		}
		if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
			t.Errorf("the right bytes after wrong ones: %v", err)
		}
		Holds(t, s, ref, data)
	}
}

func again(t *testing.T, s cas.Store) {
	data := Bytes(6, 5000)
	for range 3 {
		if err := s.Put(t.Context(), digest.RefOf(data), bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	Holds(t, s, digest.RefOf(data), data)
}

func readerFails(t *testing.T, s cas.Store) {
	cut := errors.New("the road is cut")
	for _, size := range []int{1000, 700 << 10} {
		data := Bytes(7, size)
		ref := digest.RefOf(data)
		for _, at := range []int{0, size / 2, size} {
			for _, fault := range []error{cut, io.ErrUnexpectedEOF} {
				r := io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(fault))
				if err := s.Put(t.Context(), ref, r); !errors.Is(err, fault) {
					t.Errorf("cut at %d of %d: %v, want %v", at, size, err, fault)
				}
				Lacks(t, s, ref)
				if at > 0 {
					Lacks(t, s, digest.RefOf(data[:at]))
				}
			}
		}
	}
}

func cancelled(t *testing.T, s cas.Store) {
	data := Bytes(8, 2<<20)
	ref := digest.RefOf(data)
	ctx, cancel := context.WithCancel(t.Context())
	r := &trigger{r: bytes.NewReader(data), after: 1 << 20, do: cancel}
	if err := s.Put(ctx, ref, r); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v, want that it was cancelled", err)
	}
	Lacks(t, s, ref)
	if _, err := s.Open(ctx, ref); err == nil {
		t.Error("opened under a context that is over")
	}
}

// trigger does something once so many bytes were read.
type trigger struct {
	r     io.Reader
	after int
	do    func()
}

func (t *trigger) Read(p []byte) (int, error) {
	n, err := t.r.Read(p[:min(len(p), 32<<10)])
	if t.after -= n; t.after <= 0 {
		t.do()
	}
	return n, err
}

func together(t *testing.T, s cas.Store) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 12 {
				data := Bytes(uint64(100+j), 1000*j*j*j)
				ref := digest.RefOf(data)
				if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				Holds(t, s, ref, data)
			}
		})
	}
	group.Wait()
}

func closedEarly(t *testing.T, s cas.Store) {
	for _, size := range []int{1000, 2 << 20} {
		data := Bytes(9, size)
		ref := digest.RefOf(data)
		if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		Holds(t, s, ref, data)
	}
}

func copies(t *testing.T, s cas.Store) {
	from := NewMemory()
	var refs []digest.Ref
	for i := range 300 {
		refs = append(refs, from.Add(Bytes(uint64(i), 1+i*i)))
	}
	refs = append(refs, refs[3], refs[3])
	if err := cas.Copy(t.Context(), s, from, refs[:100]); err != nil {
		t.Fatal(err)
	}
	opened := from.Opened()
	if err := cas.Copy(t.Context(), s, from, refs); err != nil {
		t.Fatal(err)
	}
	if more := from.Opened() - opened; more != 200 {
		t.Errorf("%d objects were read for the 200 that were missing", more)
	}
	back := NewMemory()
	if err := cas.Copy(t.Context(), back, s, refs); err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		want, _ := from.Data(ref)
		if got, ok := back.Data(ref); !ok || !bytes.Equal(got, want) {
			t.Errorf("object %v did not come through", ref)
		}
	}
	nowhere := digest.RefOf([]byte("nowhere"))
	if err := cas.Copy(t.Context(), s, from, []digest.Ref{nowhere}); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("an object that is nowhere: %v, want ErrNotFound", err)
	}
	if err := cas.Copy(t.Context(), back, s, []digest.Ref{nowhere}); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("an object that the store has not: %v, want ErrNotFound", err)
	}
}
