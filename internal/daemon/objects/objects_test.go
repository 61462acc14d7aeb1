package objects_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestAProjectsStorePassesTheSuite(t *testing.T) {
	castest.Suite(t, func(t *testing.T) cas.Store { return newWorld(t).Project("app") })
}

func TestWhatOneProjectHoldsAnotherHasToSend(t *testing.T) {
	w := newWorld(t)
	small, large := castest.Bytes(1, 1000), castest.Bytes(2, 3<<20)
	for _, b := range [][]byte{small, large} {
		ref := put(t, w.Project("mine"), b)
		castest.Lacks(t, w.Project("yours"), ref)
		var mismatch *cas.MismatchError
		wrong := bytes.Repeat([]byte{1}, len(b))
		for _, lie := range [][]byte{nil, b[:len(b)-1], wrong} {
			if err := w.Project("yours").Put(t.Context(), ref, bytes.NewReader(lie)); !errors.As(err, &mismatch) {
				t.Errorf("%d bytes of a guess: %v", len(lie), err)
			}
		}
		castest.Lacks(t, w.Project("yours"), ref)
		put(t, w.Project("yours"), b)
		castest.Holds(t, w.Project("yours"), ref, b)
	}
}

func TestACopyIntoAProjectReadsWhatAnotherHolds(t *testing.T) {
	w := newWorld(t)
	src := castest.NewMemory()
	var refs []digest.Ref
	for i := range 1200 {
		b := castest.Bytes(uint64(i), 100)
		refs = append(refs, src.Add(b))
		if i%3 == 0 {
			put(t, w.Project("other"), b)
		}
	}
	w.must(cas.Copy(t.Context(), w.Project("app"), src, refs))
	if src.Opened() != len(refs) {
		t.Errorf("%d of %d objects were read", src.Opened(), len(refs))
	}
	if missing, err := w.Project("app").Missing(t.Context(), refs); err != nil || len(missing) > 0 {
		t.Errorf("%d are missing: %v", len(missing), err)
	}
	src.Set(digest.RefOf(castest.Bytes(9999, 10)), nil) // a source that lies about what another project holds
	held := put(t, w.Project("other"), castest.Bytes(9999, 10))
	if err := cas.Copy(t.Context(), w.Project("app"), src, []digest.Ref{held}); err == nil {
		t.Error("a lie was believed")
	}
	castest.Lacks(t, w.Project("app"), held)
}

// Claim 4.4: presence outlives the process.
func TestWhatIsHeldIsHeldAfterARestart(t *testing.T) {
	w := newWorld(t)
	b := castest.Bytes(1, 5000)
	ref := put(t, w.Project("app"), b)
	w.restart()
	castest.Holds(t, w.Project("app"), ref, b)
	castest.Lacks(t, w.Project("other"), ref)
}

func TestADamagedObjectIsMissingUntilItIsSentAgain(t *testing.T) {
	w := newWorld(t)
	b := castest.Bytes(1, 5000)
	ref := put(t, w.Project("app"), b)
	w.spoil(ref)
	rc, err := w.Project("app").Open(t.Context(), ref)
	if err == nil {
		_, err = io.Copy(io.Discard, rc)
		_ = rc.Close()
	}
	var corrupt *cas.CorruptError
	if !errors.As(err, &corrupt) {
		t.Errorf("it was read: %v", err)
	}
	missing, err := w.Project("app").Missing(t.Context(), []digest.Ref{ref})
	if err != nil || len(missing) != 1 {
		t.Errorf("missing: %v, %v", missing, err)
	}
	put(t, w.Project("app"), b)
	castest.Holds(t, w.Project("app"), ref, b)
}

// spoil changes a byte of an object behind the store's back.
func (w *world) spoil(ref digest.Ref) {
	w.t.Helper()
	hex := strings.Split(ref.String(), ":")[1]
	path := filepath.Join(w.dir, "b3", hex[:2], hex)
	b, err := os.ReadFile(path)
	w.must(err)
	b[len(b)/2]++
	w.must(os.Chmod(path, 0o644))
	w.must(os.WriteFile(path, b, 0o644))
}

func TestATreeIsCheckedWholeAndTrue(t *testing.T) {
	w := newWorld(t)
	app := w.Project("app")
	ref, _ := castest.Tree(t, app, map[string]string{"a/b/c": "1", "a/d": "2", "l": "-> a/d", "e": "1"})
	for range 2 { // the second time from memory
		w.must(w.CheckTree(t.Context(), "app", ref))
	}
	for name, lie := range map[string]func(*forge.TreeRef){
		"files": func(r *forge.TreeRef) { r.Files++ },
		"bytes": func(r *forge.TreeRef) { r.Bytes-- },
		"depth": func(r *forge.TreeRef) { r.Depth++ },
	} {
		wrong := ref
		lie(&wrong)
		var bad *cas.TreeError
		if err := w.CheckTree(t.Context(), "app", wrong); !errors.As(err, &bad) {
			t.Errorf("wrong %s: %v", name, err)
		}
	}
	file := forge.TreeRef{Root: put(t, app, []byte("no tree"))}
	var bad *cas.TreeError
	if err := w.CheckTree(t.Context(), "app", file); !errors.As(err, &bad) {
		t.Errorf("a file as a tree: %v", err)
	}
}

func TestAFolderThatLiesIsFoundWhereverItIsSharedFrom(t *testing.T) {
	w := newWorld(t)
	app := w.Project("app")
	below, totals := castest.Tree(t, app, map[string]string{"f": "x"})
	lie := totals
	lie.Bytes += 7
	encoded, err := tree.Encode([]tree.Entry{
		{Name: "a", Kind: tree.Folder, Ref: below.Root, Totals: totals},
		{Name: "b", Kind: tree.Folder, Ref: below.Root, Totals: lie},
	})
	w.must(err)
	entries, err := tree.Decode(encoded)
	w.must(err)
	root := tree.TotalsOf(entries).Ref(put(t, app, encoded))
	var bad *cas.TreeError
	if err := w.CheckTree(t.Context(), "app", root); !errors.As(err, &bad) || bad.Path != "b" {
		t.Errorf("%v", err)
	}
}

// A tree whose paths are many more than its objects costs what its objects cost.
func TestATreeThatUnfoldsWithoutEndIsCheckedByItsObjects(t *testing.T) {
	w := newWorld(t)
	app := w.Project("app")
	ref, totals := castest.Tree(t, app, map[string]string{"f": "x"})
	for range 20 {
		encoded, err := tree.Encode([]tree.Entry{
			{Name: "a", Kind: tree.Folder, Ref: ref.Root, Totals: totals},
			{Name: "b", Kind: tree.Folder, Ref: ref.Root, Totals: totals},
		})
		w.must(err)
		entries, err := tree.Decode(encoded)
		w.must(err)
		totals = tree.TotalsOf(entries)
		ref = totals.Ref(put(t, app, encoded))
	}
	if ref.Files != 1<<20 {
		t.Fatalf("%d files", ref.Files)
	}
	w.must(w.CheckTree(t.Context(), "app", ref))
}

func TestAMissingPartOfATreeIsNamed(t *testing.T) {
	w := newWorld(t)
	whole := castest.NewMemory()
	ref, _ := castest.Tree(t, whole, map[string]string{"a/b": "deep", "c": "flat"})
	for _, left := range [][]byte{[]byte("deep"), []byte("flat")} {
		project := forge.ProjectName("lacks-" + string(left))
		var some []digest.Ref
		for _, r := range whole.Refs() {
			if r != digest.RefOf(left) {
				some = append(some, r)
			}
		}
		w.must(cas.Copy(t.Context(), w.Project(project), whole, some))
		var missing *objects.MissingError
		err := w.CheckTree(t.Context(), project, ref)
		if !errors.As(err, &missing) || missing.Count != 1 || missing.Some[0] != digest.RefOf(left) {
			t.Errorf("without %s: %v", left, err)
		}
		put(t, w.Project(project), left)
		w.must(w.CheckTree(t.Context(), project, ref))
	}
}

// What is remembered of one project's tree tells another nothing of it.
func TestMemoryOfATreeIsNoWayIntoAnotherProject(t *testing.T) {
	w := newWorld(t)
	ref, _ := castest.Tree(t, w.Project("mine"), map[string]string{"secret/plan": "x", "other": "y"})
	w.must(w.CheckTree(t.Context(), "mine", ref))
	var missing *objects.MissingError
	if err := w.CheckTree(t.Context(), "yours", ref); !errors.As(err, &missing) || missing.Count != 1 || missing.Some[0] != ref.Root {
		t.Errorf("%v", err)
	}
	rc, err := w.Project("mine").Open(t.Context(), ref.Root)
	w.must(err)
	root, err := io.ReadAll(rc)
	w.must(errors.Join(err, rc.Close()))
	put(t, w.Project("yours"), root)
	entries, err := tree.Decode(root)
	w.must(err)
	err = w.CheckTree(t.Context(), "yours", ref)
	if !errors.As(err, &missing) || missing.Count != 1 || missing.Some[0] != entries[1].Ref {
		t.Errorf("it tells more than what stands in the root: %v", err)
	}
}

func TestPiecesOfAnotherProjectAreNotTakenUp(t *testing.T) {
	w := newWorld(t)
	b := castest.Bytes(1, 9<<20)
	ref := digest.RefOf(b)
	begin := func(project forge.ProjectName) remote.Part {
		t.Helper()
		p, err := w.Project(project).Part(t.Context(), ref, nil)
		w.must(err)
		return p
	}
	mine := begin("mine")
	_, err := mine.Write(b[:8<<20])
	w.must(err)
	w.must(mine.Close())
	w.restart()

	yours := begin("yours")
	if yours.Held() != 0 {
		t.Errorf("another project is told of %d bytes", yours.Held())
	}
	_, err = yours.Write(b[8<<20:])
	w.must(err)
	if err := yours.Commit(t.Context()); err == nil {
		t.Error("the rest was enough")
	}
	w.must(yours.Close())
	castest.Lacks(t, w.Project("yours"), ref)

	mine = begin("mine")
	if mine.Held() < 4<<20 {
		t.Errorf("its own project has lost all but %d bytes", mine.Held())
	}
	_, err = mine.Write(b[mine.Held():])
	w.must(err)
	w.must(mine.Commit(t.Context()))
	w.must(mine.Close())
	castest.Holds(t, w.Project("mine"), ref, b)

	yours = begin("yours") // now all of it is on the disk
	if yours.Held() != 0 {
		t.Errorf("another project is told of %d bytes", yours.Held())
	}
	_, err = yours.Write(b)
	w.must(err)
	w.must(yours.Commit(t.Context()))
	w.must(yours.Close())
	castest.Holds(t, w.Project("yours"), ref, b)
	if _, err := w.Project("yours").Part(t.Context(), ref, nil); !errors.Is(err, remote.ErrPresent) {
		t.Error(err)
	}
}

func TestTheNewerOfTwoUploadsOfOneAttemptGoesOn(t *testing.T) {
	w := newWorld(t)
	s := w.scope(w.running("app", output))
	b := castest.Bytes(1, 2<<20)
	ref := digest.RefOf(b)
	told := make(chan struct{})
	first, err := s.Part(t.Context(), ref, func() { close(told) })
	w.must(err)
	_, err = first.Write(b[:1<<20])
	w.must(err)
	closed := make(chan error, 1)
	go func() {
		<-told
		closed <- first.Close()
	}()
	second, err := s.Part(t.Context(), ref, nil)
	w.must(errors.Join(err, <-closed))
	if second.Held() != 1<<20 {
		t.Errorf("%d bytes are held", second.Held())
	}
	other := w.scope(w.running("app", output))
	if _, err := other.Part(t.Context(), ref, nil); !errors.Is(err, remote.ErrBusy) {
		t.Errorf("another attempt at the same time: %v", err)
	}
	w.must(second.Close())
}

func TestAnExplanationNamesHoldersAndUses(t *testing.T) {
	w := newWorld(t)
	l := w.running("app", output)
	ref, _ := castest.Tree(t, w.scope(l), map[string]string{"f": "x"})
	w.must(w.Deliver(t.Context(), l.of, []forge.OutputRef{{Ref: ref.Root, Tree: true}}))
	e, err := w.Explain(t.Context(), ref.Root)
	w.must(err)
	if !e.OnDisk || len(e.Holders) != 1 || e.Holders[0].Project != "app" || len(e.Uses) != 1 || e.Uses[0].Attempt != l.of.Attempt {
		t.Errorf("%+v", e)
	}
	s, err := w.Stat(t.Context())
	w.must(err)
	if s.Objects != 2 || s.Held != 2 || s.Room.Full {
		t.Errorf("%+v", s)
	}
	w.spoil(ref.Root)
	report, err := w.Verify(t.Context(), true, nil)
	w.must(err)
	if report.Findings != 1 {
		t.Errorf("%+v", report)
	}
	if e, err := w.Explain(t.Context(), ref.Root); err != nil || e.OnDisk {
		t.Errorf("%+v, %v", e, err)
	}
}
