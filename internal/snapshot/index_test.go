package snapshot_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/snapshot"
)

// rested is how far ahead a clock is to which everything has rested.
const rested = 10 * time.Second

func TestNothingIsReadOrAskedTwice(t *testing.T) {
	t.Parallel()
	inner := folder(t, "git init -q .; printf i > inner; git add .; git commit -qm i")
	for name, dir := range map[string]string{
		"repository": folder(t, project+"git submodule --quiet add '"+inner+"' lib"),
		"folder":     folder(t, "mkdir -p a/b empty; printf 1 > a/b/1; ln -s b/1 a/l; ln -s /x a/out"),
	} {
		o, m := snapshot.Options{Dir: dir, Index: filepath.Join(t.TempDir(), "index")}, newMemory()
		step := func(script string, reads int64, lists, puts int) {
			t.Helper()
			sh(t, dir, script)
			before := m.puts
			snap, did, err := snapshot.TakeLater(t.Context(), o, m, rested)
			if err != nil {
				t.Fatal(err)
			}
			if did.Read != reads && reads >= 0 || did.Lists != lists || m.puts-before != puts && puts >= 0 {
				t.Errorf("%s, after %q: %+v, %d objects; want %d read, %d listings, %d objects", name, script, did, m.puts-before, reads, lists, puts)
			}
			if fresh := take(t, snapshot.Options{Dir: dir}, nil); fresh.Tree != snap.Tree {
				t.Errorf("%s, after %q: %v, want %v", name, script, snap.Tree, fresh.Tree)
			}
		}
		step("true", -1, 1, -1)
		step("true", 0, 0, 0)
		step("printf more > new", 1, 1, 2) // the file and the root
		step("printf less > new", 1, 0, 2)
		step("touch new", 1, 0, 0)
		step("rm new", 0, 1, 0)
		step("true", 0, 0, 0)
		if name == "repository" {
			step("printf new >> .gitignore", 1, 1, 2)
			step("printf x > src/new; printf y > ignored/more", 0, 1, 0)
			step("printf z >> ignored/more; mkdir ignored/sub", 0, 0, 0)
			step("printf '!new\\n' > src/.gitignore", 2, 1, -1)
			step("printf 'src/new\\n' > .git/info/exclude", 0, 1, 0)
			step("printf e > empty/e", 1, 1, -1)
			step("printf s > lib/s", 1, 1, -1)
			step("printf i2 > lib/inner", 1, 0, -1)
			step("git -C lib add s", 0, 1, 0)
			step("git rm -q --cached forced/y", 0, 1, -1)
		}
	}
}

// A change that leaves no trace in a stamp can come only while the file system's clock stands still.
func TestStampsThatAreTooYoungAreNotReliedOn(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{"folder": "", "repository": "git init -q .;"} {
		dir := folder(t, start+"printf 111 > f")
		o := snapshot.Options{Dir: dir, Index: filepath.Join(t.TempDir(), "index")}
		old := take(t, o, nil)
		sh(t, dir, "printf 222 > f; printf 333 > g")
		snapshot.Restamp(t, o.Index, dir, name == "repository")
		want := take(t, snapshot.Options{Dir: dir}, nil)
		if got := take(t, o, nil); got.Tree != want.Tree {
			t.Errorf("%s: %v, want %v (before it was %v)", name, got.Tree, want.Tree, old.Tree)
		}
	}
	// This is what is not relied on: by a clock to which all has rested, such a change stays hidden.
	dir := folder(t, "printf 111 > f")
	o := snapshot.Options{Dir: dir, Index: filepath.Join(t.TempDir(), "index")}
	m := newMemory() // it has the old content, so nobody finds out
	old, _, err := snapshot.TakeLater(t.Context(), o, m, rested)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "printf 222 > f")
	snapshot.Restamp(t, o.Index, dir, false)
	if got, did, err := snapshot.TakeLater(t.Context(), o, m, rested); err != nil || got.Tree != old.Tree {
		t.Errorf("the stamps were made equal, and still %+v, %v", did, err)
	}
	// A sink that lacks the old content brings it to light: what is sent is read again.
	got, _, err := snapshot.TakeLater(t.Context(), o, newMemory(), rested)
	if want := take(t, snapshot.Options{Dir: dir}, nil); err != nil || got.Tree != want.Tree {
		t.Errorf("%v, %v, want %v", got.Tree, err, want.Tree)
	}
}

func TestAnIndexThatIsDamagedOrOfAnotherFolderIsNone(t *testing.T) {
	t.Parallel()
	dir, other := folder(t, "printf 1 > f; mkdir d; printf 2 > d/g"), folder(t, "printf 3 > f")
	o := snapshot.Options{Dir: dir, Index: filepath.Join(t.TempDir(), "index")}
	want := take(t, o, nil).Tree
	good, err := os.ReadFile(o.Index)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(good); at += 41 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		for _, data := range [][]byte{bad, good[:at]} {
			if err := os.WriteFile(o.Index, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := take(t, o, nil).Tree; got != want {
				t.Fatalf("damaged at %d: %v, want %v", at, got, want)
			}
		}
	}
	if got := take(t, snapshot.Options{Dir: other, Index: o.Index}, nil).Tree; got != take(t, snapshot.Options{Dir: other}, nil).Tree {
		t.Error("another folder's index was used")
	}
	sh(t, dir, "git init -q .")
	if got := take(t, o, nil); got.Facts == nil {
		t.Error("the folder has become a repository, and the index hides it")
	}
}

func FuzzIndex(f *testing.F) {
	dir := folder(f, project)
	file := filepath.Join(f.TempDir(), "index")
	if _, err := snapshot.Take(f.Context(), snapshot.Options{Dir: dir, Index: file, Git: true}, newMemory()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:len(good)-32])
	f.Add([]byte("forgeyard source index 1\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		data := snapshot.Sum(body) // a checksum would hide everything behind it
		if back, ok := snapshot.DecodeIndex(data); ok && !bytes.Equal(back, data) {
			t.Errorf("%x is read and written as %x", data, back)
		}
	})
}

// fingerprint is what git and the disk say of a source, without us.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00")) {
		at := filepath.Join(dir, path)
		info, err := os.Lstat(at)
		if real, _ := filepath.EvalSymlinks(filepath.Dir(at)); err != nil || info.IsDir() || real != filepath.Dir(at) {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			target, _ := os.Readlink(at)
			fmt.Fprintf(&all, "%q -> %q\n", path, target)
			continue
		}
		data, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%q %v %q\n", path, info.Mode()&0o100 != 0, data)
	}
	return all.String()
}

// change does something to a repository.
func change(t *testing.T, dir string, r *rand.Rand) {
	t.Helper()
	names := []string{"a", "b", "c.o", "d/a", "d/b", "d/e/c", "f/x", "f/y.o", ".gitignore", "d/.gitignore"}
	at := filepath.Join(dir, names[r.IntN(len(names))])
	content := []string{"", "x", "yy", "*.o\n", "f/\n", "d/e\n", "!*.o\n", "b\n"}[r.IntN(8)]
	switch r.IntN(9) {
	case 0, 1, 2:
		_ = os.MkdirAll(filepath.Dir(at), 0o755) // it fails where a file is in the way, and so does the next
		_ = os.WriteFile(at, []byte(content), 0o644)
	case 3:
		_ = os.RemoveAll(at)
	case 4:
		_ = os.Rename(at, filepath.Join(dir, names[r.IntN(len(names))]))
	case 5:
		_ = os.Chmod(at, 0o755)
	case 6:
		_ = os.RemoveAll(at)
		_ = os.MkdirAll(filepath.Dir(at), 0o755)
		_ = os.Symlink([]string{"a", "d", "nowhere"}[r.IntN(3)], at)
	case 7:
		sh(t, dir, "git add . 2>&1; git commit -qm x --allow-empty")
	case 8:
		sh(t, dir, []string{"git add -f . 2>&1", "git reset -q --hard", "git rm -qr --cached --ignore-unmatch d", "git clean -qfd"}[r.IntN(4)])
	}
}

// Equal sources have equal trees and different ones different trees, whatever was known before.
func TestTheTreeIsThatOfTheSourceWhateverHappenedBefore(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	dir := folder(t, "git init -q .; git commit -q --allow-empty -m x")
	o, m := snapshot.Options{Dir: dir, Index: filepath.Join(t.TempDir(), "index")}, newMemory()
	trees, prints := map[string]forge.TreeRef{}, map[forge.TreeRef]string{}
	for round := range 25 {
		for range 1 + r.IntN(3) {
			change(t, dir, r)
		}
		ahead := time.Duration(0)
		if r.IntN(2) == 0 {
			ahead = rested
		}
		snap, _, err := snapshot.TakeLater(t.Context(), o, m, ahead)
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		print := fingerprint(t, dir)
		if known, ok := trees[print]; ok && known != snap.Tree {
			t.Fatalf("seed %d, round %d: %v, and %v before, for\n%s", seed, round, snap.Tree, known, print)
		}
		if known, ok := prints[snap.Tree]; ok && known != print {
			t.Fatalf("seed %d, round %d: the same tree for\n%s\nand\n%s", seed, round, known, print)
		}
		trees[print], prints[snap.Tree] = snap.Tree, print
		paths(t, m, snap.Tree) // all of it is there, and as it says
	}
}

// holder is a sink that has everything.
type holder struct{ *memory }

func (holder) HasTree(context.Context, forge.TreeRef) (bool, error) { return true, nil }

func TestASinkThatKnowsTheTreeIsAskedOnce(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.before = func() { t.Error("asked for single objects") }
	if _, err := snapshot.Take(t.Context(), snapshot.Options{Dir: folder(t, "printf 1 > f")}, holder{m}); err != nil {
		t.Fatal(err)
	}
}
