package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

var storyBytes = castest.Bytes(1, 2*bufferBytes)

// story stores objects in every way that there is, and returns all of them and which the store said it has.
func story(s *Store) (all map[digest.Ref][]byte, said []digest.Ref) {
	all = make(map[digest.Ref][]byte)
	object := func(seed uint64, size int) (digest.Ref, []byte) {
		data := storyBytes[:size]
		if seed >= 100 {
			data = fmt.Appendf(nil, "object %d", seed)
		}
		ref := digest.RefOf(data)
		all[ref] = data
		return ref, data
	}
	s.markEvery = 1000
	ctx := context.Background()
	small, data := object(1, 500)
	if s.Put(ctx, small, bytes.NewReader(data)) == nil {
		said = append(said, small)
	}
	large, data := object(2, bufferBytes+5)
	if s.Put(ctx, large, bytes.NewReader(data)) == nil {
		said = append(said, large)
	}
	added, data := object(3, bufferBytes+50_000)
	if _, err := s.Add(ctx, bytes.NewReader(data)); err == nil {
		said = append(said, added)
	}
	batch := s.Batch()
	var together []digest.Ref
	for i := range flushTogether {
		ref, data := object(uint64(100+i), 10+i)
		if _, err := batch.Add(ctx, bytes.NewReader(data)); err == nil {
			together = append(together, ref)
		}
	}
	if batch.Commit(ctx) == nil {
		said = append(said, together...)
	}
	batch.Discard()
	arriving, data := object(4, 5000)
	if arrive(s, arriving, data, 4500) == nil && arrive(s, arriving, data, len(data)) == nil {
		said = append(said, arriving)
	}
	return all, said
}

// arrive writes a part up to an offset, and commits it when it is whole.
func arrive(s *Store, ref digest.Ref, data []byte, to int) (err error) {
	p, err := s.Part(context.Background(), ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Write(data[p.Held():max(uint64(to), p.Held())]); err != nil {
		return err
	}
	if p.Held() == ref.Bytes {
		return p.Commit(context.Background())
	}
	return nil
}

// settled fails where room is still reserved for what is not being written any more.
func settled(t *testing.T, s *Store) {
	t.Helper()
	if s.room.reserved != 0 || s.room.landed != 0 {
		t.Errorf("%d bytes stay reserved, %d landed", s.room.reserved, s.room.landed)
	}
}

// Claim 4.2. Cases B06, T49: a kill at every write point, and a power cut there.
func TestAfterAnEndAtAnyStepEachObjectIsWholeOrAbsent(t *testing.T) {
	for _, mode := range []struct {
		name     string
		options  Options
		powerCut bool
	}{
		{"the process is killed", Options{}, false},
		{"the process of a durable store is killed", Options{Durable: true}, false},
		{"the power goes under a durable store", Options{Durable: true}, true},
		{"the power goes under a cache", Options{}, true},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			const stride = 3 // a run tries every third step, from a random one on
			dir := castest.Folder(t)
			for end := 1 + rand.IntN(stride); ; end += stride {
				if ended := endAt(t, filepath.Join(dir, fmt.Sprint(end)), end, mode.options, mode.powerCut); t.Failed() || !ended {
					t.Logf("%d steps", end)
					return
				}
			}
		})
	}
}

// endAt runs the story until a step, opens the store again and looks. It reports whether the story came to that step.
func endAt(t *testing.T, dir string, end int, o Options, powerCut bool) (ended bool) {
	t.Helper()
	f := newFaulty()
	f.end = end
	s, err := open(dir, o, f)
	var all map[digest.Ref][]byte
	var said []digest.Ref
	if err == nil {
		all, said = story(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if powerCut {
		f.cut(t)
	}
	after, err := Open(dir, o)
	if err != nil {
		t.Fatalf("step %d: %v", end, err)
	}
	look(t, after, all, said, !powerCut || o.Durable)
	if t.Failed() {
		t.Fatalf("after an end at step %d", end)
	}
	if err := errors.Join(after.Close(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	return f.steps >= end
}

// look checks a store that was opened after an end: nothing half, nothing left over, and it goes on from here.
func look(t *testing.T, s *Store, all map[digest.Ref][]byte, said []digest.Ref, safe bool) {
	t.Helper()
	for _, ref := range said {
		if safe {
			castest.Holds(t, s, ref, all[ref])
		}
	}
	for ref, data := range all {
		if missing, err := s.Missing(t.Context(), []digest.Ref{ref}); err == nil && len(missing) == 0 {
			got, err := cas.ReadAll(t.Context(), s, ref, ref.Bytes)
			var corrupt *cas.CorruptError
			if safe || !errors.As(err, &corrupt) {
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("object %v is there and wrong: %v", ref, err)
				}
			}
		}
	}
	for _, dir := range []string{s.layout.temps(), s.layout.parts()} {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		for _, left := range list {
			if dir == s.layout.temps() {
				t.Errorf("%s is left", left.Name())
			}
		}
	}
	again, said := story(s)
	if len(said) != len(again) {
		t.Errorf("only %d of %d objects can be stored now", len(said), len(again))
	}
	for ref, data := range again {
		castest.Holds(t, s, ref, data)
	}
	settled(t, s)
	if list, err := os.ReadDir(s.layout.parts()); err != nil || len(list) > 0 {
		t.Errorf("%d parts are left (%v)", len(list), err)
	}
}

// Claim 4.2. Case B87: each step of writing finds the disk full.
func TestADiskThatIsFullAtAnyStepIsSaidAndNothingIsVisible(t *testing.T) {
	for _, step := range []string{"create", "write", "close", "rename", "mkdir", "sync file", "sync folder", "sync all", "resume"} {
		for at := range 3 {
			f := newFaulty()
			s, err := open(castest.Folder(t), Options{Durable: true}, f)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			f.fail = func(name string) error {
				if name != step {
					return nil
				}
				if count++; count == at+1 {
					return syscall.ENOSPC
				}
				return nil
			}
			var faults []error
			ctx := t.Context()
			data := castest.Bytes(1, 3*bufferBytes)
			faults = append(faults, s.Put(ctx, digest.RefOf(data), bytes.NewReader(data)), s.Put(ctx, digest.RefOf(data[:9]), bytes.NewReader(data[:9])))
			b := s.Batch()
			for i := range flushTogether {
				_, err := b.Add(ctx, bytes.NewReader(data[i:100]))
				faults = append(faults, err)
			}
			faults = append(faults, b.Commit(ctx), arrive(s, digest.RefOf(data[1:]), data[1:], len(data)-1))
			b.Discard()
			fault := errors.Join(faults...)
			if count > at && !errors.Is(fault, cas.ErrFull) {
				t.Errorf("full at %s %d: %v, want ErrFull", step, at, fault)
			}
			settled(t, s)
			f.fail = nil
			if report, err := s.Verify(ctx, true, nil); err != nil || report.Findings > 0 {
				t.Errorf("full at %s %d: %+v, %v", step, at, report, err)
			}
			if all, said := story(s); len(all) != len(said) {
				t.Errorf("full at %s %d: %d of %d objects can be stored after", step, at, len(said), len(all))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Claim 4.2: short writes and reads.
func TestShortWritesAndReadsLoseNothing(t *testing.T) {
	f := newFaulty()
	f.short = true
	s, err := open(castest.Folder(t), Options{}, f)
	if err != nil {
		t.Fatal(err)
	}
	all, said := story(s)
	if len(all) != len(said) {
		t.Errorf("%d of %d objects", len(said), len(all))
	}
	for ref, data := range all {
		castest.Holds(t, s, ref, data)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Claim 4.2. Case B85: a read error.
func TestAnObjectThatCannotBeReadIsNamedAndHealedFromAnotherTier(t *testing.T) {
	for _, size := range []int{100, 3 * bufferBytes} {
		for _, at := range []int{1, 2} { // of the reads; a small object takes one
			f := newFaulty()
			s, err := open(castest.Folder(t), Options{}, f)
			if err != nil {
				t.Fatal(err)
			}
			far := castest.NewMemory()
			data := castest.Bytes(1, size)
			ref := far.Add(data)
			if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			breakReads := func() {
				reads := 0
				f.fail = func(name string) error {
					if name == "read" {
						if reads++; reads == at {
							return syscall.EIO
						}
					}
					return nil
				}
			}
			if at == 2 && size < bufferBytes {
				continue
			}
			f.short = at == 2
			breakReads()
			_, err = cas.ReadAll(t.Context(), s, ref, ref.Bytes)
			var corrupt *cas.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Ref != ref || !errors.Is(err, syscall.EIO) {
				t.Fatalf("read: %v, want a CorruptError with its cause", err)
			}
			castest.Lacks(t, s, ref)
			if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			breakReads()
			if got, err := cas.ReadAll(t.Context(), cas.Tiered(s, far), ref, ref.Bytes); err != nil || !bytes.Equal(got, data) {
				t.Errorf("through both tiers: %v", err)
			}
			castest.Holds(t, s, ref, data)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Claim 4.4: the free space of the disk is kept.
func TestWhatIsToStayFreeStaysFree(t *testing.T) {
	disk := &freeDisk{system: system{}, bytes: 100 << 20}
	s, err := open(castest.Folder(t), Options{MinFree: 90 * forge.MiB}, disk)
	if err != nil {
		t.Fatal(err)
	}
	data := castest.Bytes(1, 11<<20)
	if err := s.Put(t.Context(), digest.RefOf(data), bytes.NewReader(data)); !errors.Is(err, cas.ErrFull) || !strings.Contains(err.Error(), "90 MiB") {
		t.Errorf("put: %v, want ErrFull that names the bound", err)
	}
	castest.Lacks(t, s, digest.RefOf(data))
	settled(t, s)
	disk.bytes = 102 << 20
	s.room.looked = false
	if err := s.Put(t.Context(), digest.RefOf(data), bytes.NewReader(data)); err != nil {
		t.Errorf("put once there is room: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

type freeDisk struct {
	system
	bytes uint64
}

func (d *freeDisk) free(string) (uint64, error) { return d.bytes, nil }

// Claim 4.4, case T48: while objects are given up, one that was seen after its pin stays.
func TestAPinnedObjectOutlastsEvictionAtAnyMoment(t *testing.T) {
	s, err := Open(castest.Folder(t), Options{MaxBytes: 40_000, Evict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var filling sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	filling.Go(func() {
		for i := uint64(0); ctx.Err() == nil; i++ {
			if _, err := s.Add(context.Background(), bytes.NewReader(castest.Bytes(i%1000, 1000))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	old := time.Now().Add(-100 * time.Hour) // first to go
	for i := range 300 {
		data := fmt.Appendf(nil, "needed %d", i%7)
		ref := digest.RefOf(data)
		release := s.Pin(ref)
		if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(s.path(ref.Digest), old, old); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			castest.Holds(t, s, ref, data)
		}
		release()
		release()
	}
	stop()
	filling.Wait()
	usage, err := s.Usage(t.Context())
	if err != nil || usage.Bytes > 40_000 || usage.Pinned != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
	settled(t, s)
}
