package cas_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// 07-A09.
func TestAReaderSaysTheEndOnlyOfTheWholeObject(t *testing.T) {
	data := castest.Bytes(1, 10_000)
	ref := digest.RefOf(data)
	flipped := slices.Clone(data)
	flipped[9_999] ^= 1
	for name, given := range map[string][]byte{
		"cut": data[:9_999], "nothing": nil, "longer": append(slices.Clone(data), 0), "flipped": flipped,
	} {
		for _, wrap := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader,
		} {
			r := cas.Check(ref, io.NopCloser(wrap(bytes.NewReader(given))), "here")
			got, err := io.ReadAll(r)
			var corrupt *cas.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Ref != ref || uint64(len(got)) > ref.Bytes {
				t.Errorf("%s: %d bytes, %v; want a CorruptError", name, len(got), err)
			}
			if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.As(err, &corrupt) {
				t.Errorf("%s: read on: %d, %v", name, n, err)
			}
		}
	}
	if err := iotest.TestReader(cas.Check(ref, io.NopCloser(bytes.NewReader(data)), ""), data); err != nil {
		t.Error(err)
	}
	cut := errors.New("cut")
	r := cas.Check(ref, io.NopCloser(io.MultiReader(bytes.NewReader(data[:10]), iotest.ErrReader(cut))), "")
	if _, err := io.ReadAll(r); !errors.Is(err, cut) {
		t.Errorf("the road's error became %v", err)
	}
}

func TestReadAllIsBounded(t *testing.T) {
	m := castest.NewMemory()
	ref := m.Add(make([]byte, 100))
	if _, err := cas.ReadAll(t.Context(), m, ref, 99); err == nil {
		t.Error("more than the bound was read")
	}
	if data, err := cas.ReadAll(t.Context(), m, ref, 100); err != nil || len(data) != 100 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	huge := digest.Ref{Digest: ref.Digest, Bytes: 1 << 50} // promised, never sent
	m.Set(huge, []byte("x"))
	if _, err := cas.ReadAll(t.Context(), m, huge, 1<<60); err == nil {
		t.Error("a petabyte of one byte")
	}
}

// Threat S16: what may not be had looks as if it were not there.
func TestForbiddenObjectsLookAbsent(t *testing.T) {
	m := castest.NewMemory()
	allowed, forbidden, absent := m.Add([]byte("allowed")), m.Add([]byte("forbidden")), digest.RefOf([]byte("absent"))
	s := cas.Only(func(ref digest.Ref) bool { return ref != forbidden }, m)
	_, a := s.Open(t.Context(), forbidden)
	_, b := s.Open(t.Context(), absent)
	if a != b || !errors.Is(a, cas.ErrNotFound) {
		t.Errorf("forbidden: %v, absent: %v", a, b)
	}
	got, err := s.Missing(t.Context(), []digest.Ref{forbidden, allowed, absent, forbidden})
	if want := []digest.Ref{forbidden, absent}; err != nil || !slices.Equal(got, want) {
		t.Errorf("missing are %v, %v; want %v", got, err, want)
	}
	if err := s.Put(t.Context(), forbidden, strings.NewReader("forbidden")); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("put: %v", err)
	}
	if err := cas.Copy(t.Context(), s, m, []digest.Ref{forbidden}); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("copy: %v", err)
	}
	if m.Opened() != 0 {
		t.Error("something was looked up for it")
	}
	castest.Holds(t, s, allowed, []byte("allowed"))
}

func TestTieredFetchesWhatIsNotNearAndKeepsIt(t *testing.T) {
	near, far := castest.NewMemory(), castest.NewMemory()
	data := castest.Bytes(1, 3<<20)
	ref := far.Add(data)
	for range 3 {
		if got, err := cas.ReadAll(t.Context(), cas.Tiered(near, far), ref, ref.Bytes); err != nil || !bytes.Equal(got, data) {
			t.Fatal(err)
		}
	}
	if far.Opened() != 1 {
		t.Errorf("far was asked %d times", far.Opened())
	}
}

// Case B85: neither tier has it in order.
func TestTieredNamesAnObjectThatIsLostInBothTiers(t *testing.T) {
	for _, size := range []int{100, 3 << 20} {
		ref := digest.RefOf(castest.Bytes(1, size))
		wrong := castest.Bytes(2, size)
		near, far := castest.NewMemory(), castest.NewMemory()
		near.Set(ref, wrong)
		both := cas.Tiered(near, far)
		var corrupt *cas.CorruptError
		if _, err := both.Open(t.Context(), ref); !errors.As(err, &corrupt) || corrupt.Ref != ref {
			t.Errorf("damaged near, absent far: %v, want a CorruptError", err)
		}
		near.Remove(ref)
		far.Set(ref, wrong)
		if _, err := both.Open(t.Context(), ref); !errors.As(err, &corrupt) || corrupt.Ref != ref {
			t.Errorf("absent near, damaged far: %v, want a CorruptError", err)
		}
		castest.Lacks(t, near, ref)
		if _, err := cas.Tiered(castest.NewMemory(), castest.NewMemory()).Open(t.Context(), ref); !errors.Is(err, cas.ErrNotFound) {
			t.Errorf("absent in both: %v", err)
		}
	}
}

func TestCopyEndsAtTheFirstErrorAndJoinsItsWorkers(t *testing.T) {
	from := castest.NewMemory()
	var refs []digest.Ref
	for i := range 1000 {
		refs = append(refs, from.Add(fmt.Append(nil, i)))
	}
	from.Set(refs[500], []byte("wrong"))
	to := castest.NewMemory()
	var corrupt *cas.CorruptError
	if err := cas.Copy(t.Context(), to, from, refs); !errors.As(err, &corrupt) || corrupt.Ref != refs[500] {
		t.Errorf("%v, want a CorruptError", err)
	}
	castest.Lacks(t, to, refs[500])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cas.Copy(ctx, to, from, refs); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// better is a store that counts how often it was left to copy by itself.
type better struct {
	*castest.Memory
	to, from atomic.Int32
}

func (b *better) CopyTo(context.Context, cas.Sink, []digest.Ref) error { b.to.Add(1); return nil }

func (b *better) CopyFrom(context.Context, cas.Source, []digest.Ref) error { b.from.Add(1); return nil }

func TestCopyIsLeftToWhoeverKnowsABetterWay(t *testing.T) {
	b, m := &better{Memory: castest.NewMemory()}, castest.NewMemory()
	for _, pair := range [][2]cas.Store{{m, b}, {b, m}, {b, b}} {
		if err := cas.Copy(t.Context(), pair[0], pair[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	if b.to.Load() != 2 || b.from.Load() != 1 {
		t.Errorf("CopyTo %d times, want 2; CopyFrom %d times, want 1", b.to.Load(), b.from.Load())
	}
}

// plain is a reader that counts how often its bytes are taken without a check.
type plain struct {
	io.ReadCloser
	bytes []byte
	taken *atomic.Int32
}

var errPlain = errors.New("they were others")

func (p plain) Plain() io.Reader { p.taken.Add(1); return bytes.NewReader(p.bytes) }
func (p plain) Wrong() error     { return errPlain }

// plainSource has one object, or says so.
type plainSource struct {
	bytes []byte
	taken atomic.Int32
}

func (s *plainSource) Open(_ context.Context, ref digest.Ref) (io.ReadCloser, error) {
	return plain{cas.Check(ref, io.NopCloser(bytes.NewReader(s.bytes)), "here"), s.bytes, &s.taken}, nil
}

func TestWhatIsHashedAnywayIsTakenPlainAndItsSourceSaysWhenItIsWrong(t *testing.T) {
	data := castest.Bytes(1, 100)
	ref := digest.RefOf(data)
	src, m := &plainSource{bytes: data}, castest.NewMemory()
	if err := cas.CopyToHasher(t.Context(), m.Put, src, ref); err != nil || src.taken.Load() != 1 {
		t.Errorf("%v, taken plain %d times", err, src.taken.Load())
	}
	castest.Holds(t, m, ref, data)
	wrong := &plainSource{bytes: castest.Bytes(2, 100)}
	if err := cas.CopyToHasher(t.Context(), castest.NewMemory().Put, wrong, ref); !errors.Is(err, errPlain) {
		t.Errorf("%v", err)
	}
	other := &cas.MismatchError{Ref: digest.RefOf(nil)} // about another object: no word of this one
	put := func(context.Context, digest.Ref, io.Reader) error { return other }
	if err := cas.CopyToHasher(t.Context(), put, src, ref); !errors.Is(err, other) {
		t.Errorf("%v", err)
	}
}

// lying returns a tree one of whose folders is not what the tree says of it.
func lying(t *testing.T, m *castest.Memory, change func(e *tree.Entry)) forge.TreeRef {
	t.Helper()
	inner, totals := castest.Tree(t, m, map[string]string{"x": "1", "y/z": "22"})
	e := tree.Entry{Name: "d", Kind: tree.Folder, Ref: inner.Root, Totals: totals}
	change(&e)
	data, err := tree.Encode([]tree.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := tree.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return tree.TotalsOf(entries).Ref(m.Add(data))
}

// Threat S18: a tree that lies is found by whoever walks or fetches it.
func TestATreeThatLiesIsFound(t *testing.T) {
	m := castest.NewMemory()
	text := m.Add([]byte("no tree"))
	for name, change := range map[string]func(e *tree.Entry){
		"fewer files":    func(e *tree.Entry) { e.Totals.Files-- },
		"more bytes":     func(e *tree.Entry) { e.Totals.Bytes++ },
		"less deep":      func(e *tree.Entry) { e.Totals.Depth-- },
		"other hazards":  func(e *tree.Entry) { e.Totals.Hazards ^= tree.CaseConflict },
		"not a tree":     func(e *tree.Entry) { e.Ref = text },
		"the root's own": func(*tree.Entry) {},
	} {
		root := lying(t, m, change)
		if name == "the root's own" {
			root.Files++
		}
		var fault *cas.TreeError
		err := cas.Walk(t.Context(), m, root, func(string, tree.Entry) error { return nil })
		if !errors.As(err, &fault) {
			t.Errorf("%s: walk: %v, want a TreeError", name, err)
		}
		if err := cas.Fetch(t.Context(), castest.NewMemory(), m, root); !errors.As(err, &fault) {
			t.Errorf("%s: fetch: %v, want a TreeError", name, err)
		}
	}
	if err := cas.Walk(t.Context(), m, forge.TreeRef{}, nil); err == nil {
		t.Error("walked nothing")
	}
}

func TestATreeThatStandsTwiceIsJudgedInBothPlaces(t *testing.T) {
	m := castest.NewMemory()
	inner, totals := castest.Tree(t, m, map[string]string{"x": "1"})
	lie := totals
	lie.Bytes++
	data, err := tree.Encode([]tree.Entry{
		{Name: "a", Kind: tree.Folder, Ref: inner.Root, Totals: totals}, {Name: "b", Kind: tree.Folder, Ref: inner.Root, Totals: lie},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := forge.TreeRef{Root: m.Add(data), Files: 2, Bytes: 3, Depth: 2}
	var fault *cas.TreeError
	if err := cas.Fetch(t.Context(), castest.NewMemory(), m, root); !errors.As(err, &fault) || fault.Path != "b" {
		t.Errorf("fetch: %v, want a TreeError for b", err)
	}
}

// Case B77.
func TestALinkThatClimbsOutOfItsTreeIsFoundByWalk(t *testing.T) {
	m := castest.NewMemory()
	inner, _ := castest.Tree(t, m, map[string]string{"a/b/c/up": "-> ../../../x", "x": "1"})
	if diff := cmp.Diff(map[string]string{"a/b/c/up": "-> ../../../x", "x": "1"}, castest.Paths(t, m, inner)); diff != "" {
		t.Fatal(diff)
	}
	entries, err := tree.Decode(mustData(t, m, inner.Root))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries { // a/ alone, as a root: now the link leads out
		if e.Name == "a" {
			var link *tree.LinkError
			root := e.Totals.Ref(e.Ref)
			if err := cas.Walk(t.Context(), m, root, func(string, tree.Entry) error { return nil }); !errors.As(err, &link) || link.Path != "b/c/up" {
				t.Errorf("%v, want a LinkError with the path", err)
			}
		}
	}
}

func mustData(t *testing.T, m *castest.Memory, ref digest.Ref) []byte {
	t.Helper()
	data, ok := m.Data(ref)
	if !ok {
		t.Fatal("no such object")
	}
	return data
}

func TestAVisitorMaySkipAndEnd(t *testing.T) {
	m := castest.NewMemory()
	root, _ := castest.Tree(t, m, map[string]string{"a/1": "", "a/2": "", "b/1": "", "b/c/d": "", "e": ""})
	var seen []string
	enough := errors.New("enough")
	err := cas.Walk(t.Context(), m, root, func(path string, _ tree.Entry) error {
		seen = append(seen, path)
		switch path {
		case "a":
			return cas.SkipFolder
		case "b/c/d":
			return enough
		}
		return nil
	})
	if want := []string{"a", "b", "b/1", "b/c", "b/c/d"}; !errors.Is(err, enough) || !slices.Equal(seen, want) {
		t.Errorf("seen %q, %v; want %q", seen, err, want)
	}
}

func TestFetchHealsWhatIsDamagedNearAndBringsWhatIsMissingBelowWhatIsThere(t *testing.T) {
	far, near := castest.NewMemory(), castest.NewMemory()
	files := map[string]string{"a/b/c": "1", "a/d": "2", "e": "3"}
	root, _ := castest.Tree(t, far, files)
	castest.Tree(t, near, files)
	near.Remove(digest.RefOf([]byte("1"))) // evicted, while the trees above it stayed
	for _, ref := range near.Refs() {
		if data := mustData(t, near, ref); ref == root.Root {
			near.Set(ref, flipped(data))
		}
	}
	healing := &healing{near}
	if err := cas.Fetch(t.Context(), healing, far, root); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, castest.Paths(t, near, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func flipped(data []byte) []byte {
	data = slices.Clone(data)
	data[len(data)-1] ^= 1
	return data
}

// healing forgets an object that turns out to be damaged, as stores on disks do.
type healing struct{ *castest.Memory }

func (h *healing) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if _, err := cas.ReadAll(ctx, h.Memory, ref, ref.Bytes); err != nil {
		h.Remove(ref)
		return nil, err
	}
	return h.Memory.Open(ctx, ref)
}

// A folder that holds a folder twice, which holds a folder twice, and so on: small objects, paths without end.
func TestATreeThatMultipliesIsCountedBeforeItIsWalked(t *testing.T) {
	m := castest.NewMemory()
	ref, totals := m.Add([]byte{tree.Version, 0}), tree.Totals{}
	var fault error
	for level := range 60 {
		var entries []tree.Entry
		for _, name := range []string{"a", "b"} {
			entries = append(entries, tree.Entry{Name: name, Kind: tree.Folder, Ref: ref, Totals: totals})
		}
		data, err := tree.Encode(entries)
		if err != nil {
			fault = fmt.Errorf("level %d: %w", level, err)
			break
		}
		ref, totals = m.Add(data), tree.TotalsOf(entries)
	}
	if fault == nil {
		t.Fatalf("a tree of %d paths was made", totals.Files)
	}
	if totals.Files < 1<<31 {
		t.Errorf("%v at %d files", fault, totals.Files)
	}
	if err := cas.Fetch(t.Context(), castest.NewMemory(), m, totals.Ref(ref)); err != nil {
		t.Errorf("fetching it costs its few objects only: %v", err)
	}
}
