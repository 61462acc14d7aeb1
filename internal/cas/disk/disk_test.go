package disk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	osdisk "github.com/forgeyard/forgeyard/internal/disk"
)

// put stores bytes and returns their name.
func put(t testing.TB, s cas.Sink, data []byte) digest.Ref {
	t.Helper()
	ref := digest.RefOf(data)
	if err := s.Put(t.Context(), ref, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return ref
}

// fileOf is where an object stands: the layout is part of what operators may rely on.
func fileOf(dir string, ref digest.Ref) string {
	hex := strings.TrimPrefix(ref.Digest.String(), "b3:")
	return filepath.Join(dir, "b3", hex[:2], hex)
}

// change overwrites an object behind the store's back.
func change(t testing.TB, path string, with func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, with(data), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func flip(data []byte) []byte {
	data[len(data)/2] ^= 0x10
	return data
}

// used sets when an object was used last.
func used(t testing.TB, dir string, ref digest.Ref, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	if err := os.Chtimes(fileOf(dir, ref), at, at); err != nil {
		t.Fatal(err)
	}
}

func TestObjectsArePlainReadOnlyFilesUnderTheirDigest(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	for _, size := range []int{3, 1 << 20} {
		data := castest.Bytes(1, size)
		path := fileOf(dir, put(t, s, data))
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o444 {
			t.Errorf("%v, %v; want a file of mode 0444", info.Mode(), err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
			t.Errorf("the file has other bytes than the object (%v)", err)
		}
	}
}

// 07-A09, case B85: a byte that flipped in the store.
func TestADamagedObjectGoesToQuarantineAndIsNamed(t *testing.T) {
	for _, size := range []int{1, 100, 256 << 10, 256<<10 + 1, 3 << 20} {
		dir := castest.Folder(t)
		s := openedAt(t, dir, disk.Options{})
		data := castest.Bytes(1, size)
		ref := put(t, s, data)
		change(t, fileOf(dir, ref), flip)
		got, err := cas.ReadAll(t.Context(), s, ref, ref.Bytes)
		var corrupt *cas.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Ref != ref || got != nil {
			t.Errorf("%d bytes: %v, want a CorruptError that names the object", size, err)
		}
		castest.Lacks(t, s, ref)
		if usage, err := s.Usage(t.Context()); err != nil || usage.Quarantined != 1 || usage.Objects != 0 {
			t.Errorf("%+v, %v", usage, err)
		}
		castest.Holds(t, s, put(t, s, data), data)
	}
}

func TestAReaderOfADamagedObjectNeverSaysItWasWhole(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	data := castest.Bytes(1, 1<<20)
	ref := put(t, s, data)
	r, err := s.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	change(t, fileOf(dir, ref), func(d []byte) []byte { return d[:len(d)-1] }) // cut while it is read
	var corrupt *cas.CorruptError
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); !errors.As(err, &corrupt) {
		t.Errorf("read: %v, want a CorruptError", err)
	}
	for range 2 {
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.As(err, &corrupt) {
			t.Errorf("read on: %d, %v", n, err)
		}
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
}

func TestTheObjectThatReplacedADamagedOneIsNotTakenAway(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	data := castest.Bytes(1, 1<<20)
	ref := put(t, s, data)
	change(t, fileOf(dir, ref), flip)
	slow, err := s.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cas.ReadAll(t.Context(), s, ref, ref.Bytes); err == nil {
		t.Fatal("the damage was not found")
	}
	put(t, s, data)
	var corrupt *cas.CorruptError
	if _, err := io.Copy(io.Discard, slow); !errors.As(err, &corrupt) {
		t.Errorf("the reader of the old file: %v", err)
	}
	if err := slow.Close(); err != nil {
		t.Error(err)
	}
	castest.Holds(t, s, ref, data)
}

func TestAFileThatWasCutIsAbsentAndPutHealsIt(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	data := castest.Bytes(1, 5000)
	ref := put(t, s, data)
	change(t, fileOf(dir, ref), func(d []byte) []byte { return d[:4999] })
	castest.Lacks(t, s, ref)
	castest.Holds(t, s, put(t, s, data), data)
}

func TestQuarantineKeepsTheLastFew(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	for i := range 30 {
		ref := put(t, s, castest.Bytes(uint64(i), 100))
		change(t, fileOf(dir, ref), flip)
		if _, err := s.Open(t.Context(), ref); err == nil {
			t.Fatal("the damage was not found")
		}
	}
	if usage, err := s.Usage(t.Context()); err != nil || usage.Quarantined != 16 {
		t.Errorf("%d files in quarantine, %v", usage.Quarantined, err)
	}
}

// Case B85: healed from another tier, in every way that an object can be wrong.
func TestADamagedObjectIsHealedFromAnotherTier(t *testing.T) {
	for name, with := range map[string]func([]byte) []byte{
		"a flipped bit": flip, "cut": func(d []byte) []byte { return d[:len(d)/2] }, "empty": func([]byte) []byte { return nil },
		"longer": func(d []byte) []byte { return append(d, 0) },
	} {
		for _, size := range []int{1000, 3 << 20} {
			dir := castest.Folder(t)
			near, far := openedAt(t, dir, disk.Options{}), castest.NewMemory()
			data := castest.Bytes(1, size)
			ref := far.Add(data)
			put(t, near, data)
			change(t, fileOf(dir, ref), with)
			r, err := cas.Tiered(near, far).Open(t.Context(), ref)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got bytes.Buffer
			if _, err := io.Copy(&got, r); err != nil || !bytes.Equal(got.Bytes(), data) {
				t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			castest.Holds(t, near, ref, data)
		}
	}
}

// Claim 4.4.
func TestWhatWasUsedLongestAgoGoesFirstAndPinnedObjectsNever(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{MaxBytes: 100_000, Evict: true})
	var refs []digest.Ref
	for i := range 10 {
		refs = append(refs, put(t, s, castest.Bytes(uint64(i), 10_000)))
	}
	for i, ref := range refs {
		used(t, dir, ref, time.Duration(100-i)*time.Hour)
	}
	release := s.Pin(refs[0], refs[1])
	if _, err := s.Missing(t.Context(), refs[2:3]); err != nil { // of use just now
		t.Fatal(err)
	}
	newest := castest.Bytes(77, 20_000)
	castest.Holds(t, s, put(t, s, newest), newest)
	missing, err := s.Missing(t.Context(), refs)
	if err != nil || len(missing) != 3 || missing[0] != refs[3] || missing[2] != refs[5] {
		t.Errorf("gone are %v (%v), want the fourth to the sixth: of those not pinned the three used longest ago", missing, err)
	}
	if usage, err := s.Usage(t.Context()); err != nil || usage.Bytes > 100_000 || usage.Pinned != 2 || s.Pinned() != 2 {
		t.Errorf("%+v, %v", usage, err)
	}
	release()
}

func TestWhereEverythingIsPinnedTheStoreIsFullAndSaysSo(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{MaxBytes: 50_000, Evict: true})
	var all [][]byte
	var refs []digest.Ref
	for i := range 5 {
		all = append(all, castest.Bytes(uint64(i), 10_000))
		refs = append(refs, put(t, s, all[i]))
	}
	release := s.Pin(refs...)
	for _, size := range []int{1, 300 << 10} {
		more := castest.Bytes(9, size)
		if err := s.Put(t.Context(), digest.RefOf(more), bytes.NewReader(more)); !errors.Is(err, cas.ErrFull) {
			t.Errorf("put: %v, want ErrFull", err)
		}
		if _, err := s.Add(t.Context(), bytes.NewReader(more)); !errors.Is(err, cas.ErrFull) {
			t.Errorf("add: %v, want ErrFull", err)
		}
		if _, err := s.Part(t.Context(), digest.RefOf(more)); !errors.Is(err, cas.ErrFull) {
			t.Errorf("part: %v, want ErrFull", err)
		}
		castest.Lacks(t, s, digest.RefOf(more))
	}
	for i, ref := range refs {
		castest.Holds(t, s, ref, all[i])
	}
	release()
	put(t, s, castest.Bytes(10, 10_000))
}

func TestAStoreThatDoesNotEvictDeletesNothing(t *testing.T) {
	s := opened(t, disk.Options{MaxBytes: 20_000})
	a, b := castest.Bytes(1, 10_000), castest.Bytes(2, 10_000)
	refs := []digest.Ref{put(t, s, a), put(t, s, b)}
	more := castest.Bytes(3, 1)
	if err := s.Put(t.Context(), digest.RefOf(more), bytes.NewReader(more)); !errors.Is(err, cas.ErrFull) {
		t.Errorf("put: %v, want ErrFull", err)
	}
	castest.Holds(t, s, refs[0], a)
	castest.Holds(t, s, refs[1], b)
}

func TestTheBoundHoldsOverARestart(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{MaxBytes: 50_000, Evict: true})
	first := put(t, s, castest.Bytes(1, 30_000))
	used(t, dir, first, 50*time.Hour)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openedAt(t, dir, disk.Options{MaxBytes: 50_000, Evict: true})
	put(t, s, castest.Bytes(2, 30_000))
	castest.Lacks(t, s, first)
}

func TestOneProcessWritesAndOthersMayRead(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	data := castest.Bytes(1, 100)
	ref := put(t, s, data)
	if _, err := disk.Open(dir, disk.Options{}); !errors.Is(err, osdisk.ErrLocked) {
		t.Errorf("a second writer: %v, want ErrLocked", err)
	}
	reading := openedAt(t, dir, disk.Options{ReadOnly: true})
	castest.Holds(t, reading, ref, data)
	if err := reading.Put(t.Context(), digest.RefOf(nil), strings.NewReader("")); !errors.Is(err, disk.ErrReadOnly) {
		t.Errorf("put: %v, want ErrReadOnly", err)
	}
	change(t, fileOf(dir, ref), flip)
	var corrupt *cas.CorruptError
	if _, err := reading.Open(t.Context(), ref); !errors.As(err, &corrupt) {
		t.Errorf("open: %v, want a CorruptError", err)
	}
	if _, err := os.Stat(fileOf(dir, ref)); err != nil {
		t.Errorf("a reader moved the file: %v", err)
	}
	if _, err := disk.Open(filepath.Join(dir, "none"), disk.Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("to read a store that is not there: %v", err)
	}
}

func TestWhatADeadProcessLeftIsRemovedAtStart(t *testing.T) {
	dir := castest.Folder(t)
	if err := openedAt(t, dir, disk.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "tmp", "1a")
	if err := os.WriteFile(left, []byte("half an obj"), 0o444); err != nil {
		t.Fatal(err)
	}
	openedAt(t, dir, disk.Options{})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestABatchThatIsDiscardedLeavesNothing(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{Durable: true})
	b := s.Batch()
	ref, err := b.Add(t.Context(), strings.NewReader("one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), ref, strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	castest.Lacks(t, s, ref)
	b.Discard()
	castest.Lacks(t, s, ref)
	if list, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(list) != 0 {
		t.Errorf("%d temporary files, %v", len(list), err)
	}
	if err := b.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAReaderHandsOutItsFileForCloning(t *testing.T) {
	s := opened(t, disk.Options{})
	for _, size := range []int{300 << 10, 1 << 20} {
		data := castest.Bytes(1, size)
		r, err := s.Open(t.Context(), put(t, s, data))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, size)
		if _, err := r.(cas.Filer).File().ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%v", err)
		}
		if n, err := io.Copy(io.Discard, r); err != nil || n != int64(size) {
			t.Errorf("after the file was used: %d bytes, %v", n, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestVerifyTellsOfEverythingThatIsWrong(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	var refs []digest.Ref
	for i := range 20 {
		refs = append(refs, put(t, s, castest.Bytes(uint64(i), 1000+i*20_000)))
	}
	for i, with := range []func([]byte) []byte{flip, func(d []byte) []byte { return d[:10] }, func([]byte) []byte { return nil }} {
		change(t, fileOf(dir, refs[i*7]), with)
	}
	stray := filepath.Join(filepath.Dir(fileOf(dir, refs[1])), "notes.txt")
	if err := os.WriteFile(stray, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]error)
	note := func(f disk.Finding) error { found[f.Path] = f.Err; return nil }
	report, err := s.Verify(t.Context(), false, note)
	if err != nil || report.Objects != 20 || report.Findings != 1 || found[stray] == nil {
		t.Errorf("%+v, %v, %v; want the stray file", report, found, err)
	}
	report, err = s.Verify(t.Context(), true, note)
	if err != nil || report.Findings != 4 {
		t.Errorf("deep: %+v, %v, %v", report, found, err)
	}
	for _, i := range []int{0, 7, 14} {
		var corrupt *cas.CorruptError
		if err := found[fileOf(dir, refs[i])]; !errors.As(err, &corrupt) || corrupt.Ref.Digest != refs[i].Digest {
			t.Errorf("object %d: %v", i, err)
		}
		castest.Lacks(t, s, refs[i])
	}
	if report, err := s.Verify(t.Context(), true, nil); err != nil || report.Objects != 17 || report.Findings != 1 {
		t.Errorf("again: %+v, %v", report, err)
	}
	enough := errors.New("enough")
	if _, err := s.Verify(t.Context(), true, func(disk.Finding) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}

func TestScrubComesByEverywhere(t *testing.T) {
	dir := castest.Folder(t)
	s := openedAt(t, dir, disk.Options{})
	var bad digest.Ref
	for i := range 50 {
		bad = put(t, s, castest.Bytes(uint64(i), 1000))
	}
	change(t, fileOf(dir, bad), flip)
	for range 10_000 {
		report, err := s.Scrub(t.Context(), 3000, nil)
		if err != nil || report.Bytes > 4000 {
			t.Fatalf("%+v, %v", report, err)
		}
		if report.Findings == 1 {
			castest.Lacks(t, s, bad)
			return
		}
	}
	t.Error("the damage was never found")
}

func TestAContextThatIsOverEndsWaiting(t *testing.T) {
	s := opened(t, disk.Options{})
	ref := digest.RefOf([]byte("x"))
	p, err := s.Part(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := s.Part(ctx, ref); !errors.Is(err, gone) {
		t.Errorf("%v, want the cause", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Missing(ctx, []digest.Ref{ref}); !errors.Is(err, gone) {
		t.Errorf("missing: %v, want the cause", err)
	}
}
