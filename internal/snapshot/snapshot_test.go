package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/snapshot"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// project is a repository in which everything occurs that a source may hold.
const project = `
git init -q .
mkdir -p src/deep ignored forced empty
printf '*.o\nignored/\nforced/\n' > .gitignore
printf '#!/bin/sh\n' > run; chmod 755 run
printf code > src/code; printf obj > src/code.o; printf deep > src/deep/file
printf gone > gone; printf old > changed
printf x > ignored/x; printf y > forced/y; printf z > forced/z
ln -s src/code link; ln -s ../run src/up; ln -s nowhere dangling
git add .; git add -f forced/y; git commit -qm 'first of all'
rm gone; printf new > changed; printf fresh > src/fresh; printf 'a b' > "$(printf 'odd \\name\n')"
`

func TestASourceIsWhatGitTracksAndWhatItDoesNotIgnore(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, project), newMemory()
	snap := take(t, snapshot.Options{Dir: dir}, m)
	want := map[string]string{
		".gitignore": "*.o\nignored/\nforced/\n", "run": "* #!/bin/sh\n", "src/": "", "src/code": "code", "src/deep/": "",
		"src/deep/file": "deep", "changed": "new", "forced/": "", "forced/y": "y", "link": "-> src/code", "src/up": "-> ../run",
		"dangling": "-> nowhere", "src/fresh": "fresh", "odd \\name": "a b",
	}
	if diff := cmp.Diff(want, paths(t, m, snap.Tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if snap.Root != dir || snap.Within != "" || len(snap.Warnings.Named) != 0 || snap.Tree.Files != snap.Totals.Files {
		t.Errorf("%+v", snap)
	}
}

func TestEqualSourcesAreEqualTreesOnAnyMachine(t *testing.T) {
	one := folder(t, project)
	other := folder(t, "umask 077; git clone -q '"+one+"' x; cd x; git checkout -q --detach; git config core.autocrlf input; rm gone; umask 000;"+
		"printf new > changed; printf fresh > src/fresh; printf 'a b' > \"$(printf 'odd \\\\name\\n')\"; touch -d 2001-01-01 run src; mkdir more more/empty")
	want := take(t, snapshot.Options{Dir: one}, nil)
	home := folder(t, "printf '[core]\\n\\texcludesFile = ~/ignore\\n' > .gitconfig; printf 'fresh\\n' > ignore; mkdir git; printf 'changed\\n' > git/ignore")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("LC_ALL", "tr_TR.UTF-8")
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_INDEX_FILE", "/nonexistent")
	for _, o := range []snapshot.Options{
		{Dir: one},
		{Dir: filepath.Join(other, "x")},
		{Dir: filepath.Join(other, "x", "src", "deep")},
		{Dir: filepath.Join(other, "x"), Index: filepath.Join(t.TempDir(), "index")},
	} {
		got := take(t, o, nil)
		if got.Tree != want.Tree {
			t.Errorf("%+v: %v, want %v", o, got.Tree, want.Tree)
		}
	}
	if got := take(t, snapshot.Options{Dir: filepath.Join(one, "src", "deep")}, nil); got.Root != one || got.Within != "src/deep" {
		t.Errorf("root %q, within %q", got.Root, got.Within)
	}
}

func TestAPlainFolderIsAllThatIsInIt(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, "mkdir -p a/b empty repo; printf 1 > a/b/1; printf '*\\n' > .gitignore; cd repo; git init -q .; printf f > f"), newMemory()
	snap := take(t, snapshot.Options{Dir: dir}, m)
	want := map[string]string{"a/": "", "a/b/": "", "a/b/1": "1", ".gitignore": "*\n", "empty/": "", "repo/": "", "repo/f": "f"}
	if diff := cmp.Diff(want, paths(t, m, snap.Tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if snap.Facts != nil || snap.Repository != nil || len(snap.Warnings.Named) != 1 || snap.Warnings.Named[0].Path != "repo/.git" {
		t.Errorf("%+v", snap)
	}
	if _, err := snapshot.Take(t.Context(), snapshot.Options{Dir: dir, Git: true}, m); !errors.Is(err, git.ErrNone) {
		t.Errorf("asked for its repository: %v", err)
	}
}

func TestACaptureCountsWhatItDoes(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, "mkdir a; printf 12345 > a/1; printf 12345 > a/same; printf 123 > b; ln -s b link; touch -d '1 hour ago' a/* b a ."), newMemory()
	var first, second snapshot.Progress
	take(t, snapshot.Options{Dir: dir, Progress: &first}, m)
	if l, r, s, b := first.Looked.Load(), first.Read.Load(), first.Sent.Load(), first.Bytes.Load(); l != 4 || r != 13 || s != 2 || b != 8 {
		t.Errorf("looked at %d, read %d, sent %d of %d", l, r, s, b)
	}
	take(t, snapshot.Options{Dir: dir, Progress: &second}, m)
	if s, b := second.Sent.Load(), second.Bytes.Load(); s != 0 || b != 0 {
		t.Errorf("sent %d of %d again", s, b)
	}
}

// Case B76: what is checked out of submodules, nested ones too, is in the tree as it lies there; what is not is named.
func TestSubmodulesAreFiles(t *testing.T) {
	t.Parallel()
	inner := folder(t, "git init -q .; printf i > inner; git add .; git commit -qm i")
	middle := folder(t, "git init -q .; printf m > middle; git submodule --quiet add '"+inner+"' sub; git add .; git commit -qm m; printf '*.tmp\\n' > .gitignore; git add .; git commit -qm ig")
	dir := folder(t, "git init -q .; git submodule --quiet add '"+middle+"' lib; git submodule --quiet add '"+inner+"' away; git submodule --quiet update --init --recursive;"+
		"git commit -qm o; git submodule --quiet deinit -f away; printf changed > lib/middle; printf t > lib/x.tmp; printf n > lib/new; mkdir nested; cd nested; git init -q .; printf f > f")
	m := newMemory()
	snap := take(t, snapshot.Options{Dir: dir}, m)
	got := paths(t, m, snap.Tree)
	delete(got, ".gitmodules")
	delete(got, "lib/.gitmodules")
	want := map[string]string{"lib/": "", "lib/middle": "changed", "lib/new": "n", "lib/.gitignore": "*.tmp\n", "lib/sub/": "", "lib/sub/inner": "i"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sh(t, dir, "rm lib/new; rm -r nested; git submodule --quiet update --init away")
	for _, step := range []struct {
		script string
		dirty  bool
	}{{"true", true}, {"git -C lib checkout -q middle", false}} {
		sh(t, dir, step.script)
		if got := take(t, snapshot.Options{Dir: dir}, nil).Facts.Dirty; got != step.dirty {
			t.Errorf("a changed file of a submodule, after %s: dirty %v", step.script, got)
		}
	}
	if kinds := kindsOf(snap.Warnings); kinds["away"] != snapshot.MissingSubmodule || kinds["nested"] != snapshot.NestedRepository || len(kinds) != 2 {
		t.Errorf("%+v", snap.Warnings)
	}
}

func kindsOf(w snapshot.Warnings) map[string]snapshot.WarningKind {
	kinds := map[string]snapshot.WarningKind{}
	for _, one := range w.Named {
		kinds[one.Path] = one.Kind
	}
	return kinds
}

func TestWhatNoTreeCanHoldIsLeftOutByName(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{"plain": "", "repository": "git init -q .;"} {
		dir, m := folder(t, start+"mkdir d; printf k > d/kept; ln -s kept d/link; ln -s /etc/hostname absolute; ln -s ../outside d/near; ln -s ../../outside d/far; ln -s d/../d/kept winding"), newMemory()
		if name == "plain" {
			sh(t, dir, "mkfifo fifo")
		}
		snap := take(t, snapshot.Options{Dir: dir}, m)
		want := map[string]string{"d/": "", "d/kept": "k", "d/link": "-> kept", "d/near": "-> ../outside"}
		if diff := cmp.Diff(want, paths(t, m, snap.Tree)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		kinds := kindsOf(snap.Warnings)
		if kinds["absolute"] != snapshot.OutsideLink || kinds["d/far"] != snapshot.OutsideLink || kinds["winding"] != snapshot.OutsideLink {
			t.Errorf("%s: %+v", name, snap.Warnings)
		}
		if name == "plain" && kinds["fifo"] != snapshot.SpecialFile {
			t.Errorf("%+v", snap.Warnings)
		}
		if text := snap.Warnings.Named[0].String(); !strings.Contains(text, `"absolute": a link to "/etc/hostname", which is absolute`) {
			t.Error(text)
		}
	}
}

func TestTrackedFilesThatBecameSomethingElseAreWhatTheyAreNow(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, "git init -q .; mkdir d e; printf 1 > d/f; printf 2 > e/f; printf 3 > p; printf 4 > q; git add .; git commit -qm 1;"+
		"mv d kept; ln -s kept d; rm p q; mkdir p; printf 5 > p/inner; mkfifo q; rm -r e; printf 6 > e"), newMemory()
	snap := take(t, snapshot.Options{Dir: dir}, m)
	want := map[string]string{"d": "-> kept", "kept/": "", "kept/f": "1", "p/": "", "p/inner": "5", "e": "6"}
	if diff := cmp.Diff(want, paths(t, m, snap.Tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if kindsOf(snap.Warnings)["q"] != snapshot.SpecialFile || !snap.Facts.Dirty {
		t.Errorf("%+v %+v", snap.Warnings, snap.Facts)
	}
}

func TestRefusalsNameWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	plain := folder(t, "printf '12345' > a; printf '123' > b; mkdir many; touch many/1 many/2 many/3 many/4 many/5")
	repo := folder(t, "git init -q .; touch a")
	odd := "odd\xff"
	for _, dir := range []string{plain, repo} {
		if err := os.WriteFile(filepath.Join(dir, odd), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := snapshot.Take(t.Context(), snapshot.Options{Dir: dir}, newMemory())
		var refused *snapshot.RefusedError
		if !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != odd || !strings.Contains(err.Error(), `"odd\xff" has a name that is not UTF-8`) {
			t.Errorf("%s: %v", dir, err)
		}
		if err := os.Remove(filepath.Join(dir, odd)); err != nil {
			t.Fatal(err)
		}
	}
	for want, o := range map[string]snapshot.Options{
		`more than 6 files: 4 of the first ones are below "./many"`: {Dir: plain, MaxFiles: 6},
		"more than 7 B of files":                                    {Dir: plain, MaxBytes: 7},
	} {
		index := filepath.Join(t.TempDir(), "index")
		for range 2 { // with what is known, too
			o.Index = index
			_, err := snapshot.Take(t.Context(), o, newMemory())
			var refused *snapshot.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", want, err)
			}
			take(t, snapshot.Options{Dir: plain, Index: index}, nil)
		}
	}
	take(t, snapshot.Options{Dir: plain, MaxFiles: 7, MaxBytes: 8}, nil)
	if os.Geteuid() != 0 {
		sh(t, plain, "chmod 000 a many")
		_, err := snapshot.Take(t.Context(), snapshot.Options{Dir: plain}, newMemory())
		if err == nil || !strings.Contains(err.Error(), `"many" cannot be read: permission denied`) {
			t.Error(err)
		}
		sh(t, plain, "chmod 700 a many")
	}
}

func TestRepositoriesComeInManyShapes(t *testing.T) {
	t.Parallel()
	dir := folder(t, project)
	worktree := folder(t, "git -C '"+dir+"' worktree add -q --detach \"$PWD/tree\" HEAD")
	bare := folder(t, "git clone -q --bare '"+dir+"' x.git")
	unborn := folder(t, "git init -q .; printf 1 > a; git add a; printf 2 > b")
	broken := folder(t, "mkdir .git sub; printf 1 > .git/HEAD")
	sparse := folder(t, "git clone -q '"+dir+"' x; cd x; git sparse-checkout set --cone src")

	got := take(t, snapshot.Options{Dir: filepath.Join(worktree, "tree"), Git: true}, nil)
	want := take(t, snapshot.Options{Dir: folder(t, "git clone -q '"+dir+"' x; mv x/* x/.g* ."), Git: true}, nil)
	if got.Tree != want.Tree || *got.Repository != *want.Repository || got.Facts.Dirty {
		t.Errorf("a linked worktree: %+v, a clone: %+v", got, want)
	}
	for _, at := range []string{filepath.Join(bare, "x.git"), filepath.Join(bare, "x.git", "hooks"), filepath.Join(dir, ".git"), filepath.Join(dir, ".git", "refs")} {
		if _, err := snapshot.Take(t.Context(), snapshot.Options{Dir: at}, newMemory()); !errors.Is(err, git.ErrBare) {
			t.Errorf("%s: %v", at, err)
		}
	}
	m := newMemory()
	snap := take(t, snapshot.Options{Dir: unborn}, m)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, paths(t, m, snap.Tree)); diff != "" || snap.Facts.SHA != "" || snap.Facts.Branch() != "main" || !snap.Facts.Dirty {
		t.Errorf("no commit: %+v\n%s", snap.Facts, diff)
	}
	if _, err := snapshot.Take(t.Context(), snapshot.Options{Dir: unborn, Git: true}, m); !errors.Is(err, git.ErrNoCommit) {
		t.Errorf("no commit, and its repository: %v", err)
	}
	var failed *git.Error
	if _, err := snapshot.Take(t.Context(), snapshot.Options{Dir: filepath.Join(broken, "sub")}, m); !errors.As(err, &failed) {
		t.Errorf("a broken repository: %v", err)
	}
	snap = take(t, snapshot.Options{Dir: filepath.Join(sparse, "x")}, m)
	if list := paths(t, m, snap.Tree); list["src/code"] != "code" || list["forced/y"] != "" || len(snap.Warnings.Named) != 1 || snap.Warnings.Named[0].Kind != snapshot.SparseFiles {
		t.Errorf("a sparse checkout: %+v %+v", list, snap.Warnings)
	}
}

func TestExecutableBitsAreThoseOfTheIndexWhereTheDiskCannotHoldThem(t *testing.T) {
	t.Parallel()
	dir, m := folder(t, "git init -q .; printf 1 > a; printf 2 > b; chmod +x a; git add .; git config core.fileMode false; chmod -x a; chmod +x b; printf 3 > c; chmod +x c"), newMemory()
	snap := take(t, snapshot.Options{Dir: dir}, m)
	if diff := cmp.Diff(map[string]string{"a": "* 1", "b": "2", "c": "3"}, paths(t, m, snap.Tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFactsAreThoseOfTheCommit(t *testing.T) {
	t.Parallel()
	dir := folder(t, project+"git stash -qu; git tag v2; git tag -a -m x v1; git remote add origin 'https://ann:hunter2token@example.org/o/r.git?token=hunter2token'")
	facts := take(t, snapshot.Options{Dir: dir}, nil).Facts
	if facts.SHA != sh(t, dir, "git rev-parse HEAD") || facts.Ref != "refs/heads/main" || facts.Branch() != "main" || !slices.Equal(facts.Tags, []string{"v1", "v2"}) ||
		facts.Dirty || facts.Committed.Format("2006-01-02T15:04:05Z07:00") != "2026-01-02T03:04:05Z" || facts.Author != "Ann" ||
		facts.Email != "ann@example.org" || facts.Subject != "first of all" || facts.Remote != "https://example.org/o/r.git" {
		t.Errorf("%+v", facts)
	}
	sh(t, dir, "git checkout -q --detach; git tag -d v1 v2")
	if facts := take(t, snapshot.Options{Dir: dir}, nil).Facts; facts.Ref != "" || len(facts.Tags) != 0 {
		t.Errorf("detached: %+v", facts)
	}
	index := filepath.Join(t.TempDir(), "index")
	for _, step := range []struct {
		script string
		dirty  bool
	}{
		{"true", false},
		{"printf x > new", true},
		{"rm new", false},
		{"printf other > changed", true},
		{"git commit -qam other", false},
		{"chmod +x changed", true},
		{"git add changed", true},
		{"git reset -q --hard", false},
		{"rm changed", true},
		{"git checkout -q .", false},
		{"git reset -q --soft HEAD~1", true},
	} {
		sh(t, dir, step.script)
		for range 2 {
			if got := take(t, snapshot.Options{Dir: dir, Index: index}, nil).Facts.Dirty; got != step.dirty {
				t.Errorf("after %s: dirty %v", step.script, got)
			}
		}
	}
}

// Case B75: what a job finds is clean for git, wherever it was captured. Case B71: and tells nothing of the clone.
func TestAWorkspaceOfTreeAndRepositoryIsClean(t *testing.T) {
	t.Parallel()
	inner := folder(t, "git init -q .; printf i > inner; git add .; git commit -qm i")
	dir := folder(t, project+"git stash -qu; git submodule --quiet add '"+inner+"' lib; git commit -qm sub; git tag -a -m x v1; git commit -q --allow-empty -m more;"+
		"git remote add origin https://ann:hunter2token@example.org/o/r.git")
	m, index := newMemory(), filepath.Join(t.TempDir(), "index")
	snap := take(t, snapshot.Options{Dir: dir, Git: true, Index: index}, m)
	work := t.TempDir()
	materialise(t, m, snap.Tree, work)
	if err := os.Mkdir(filepath.Join(work, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	materialise(t, m, *snap.Repository, filepath.Join(work, ".git"))
	if got := sh(t, work, "git status --porcelain; git describe --dirty; git rev-parse HEAD"); got != sh(t, dir, "git describe; git rev-parse HEAD") {
		t.Errorf("git says %q", got)
	}
	for ref, data := range m.objects {
		if strings.Contains(string(data), "hunter2") || strings.Contains(string(data), dir) {
			t.Errorf("%v: %q", ref, data)
		}
	}
	sh(t, dir, "printf more > changed; git checkout -q -b elsewhere")
	puts := m.puts
	again, effort, err := snapshot.TakeLater(t.Context(), snapshot.Options{Dir: dir, Git: true, Index: index}, m, 0)
	if err != nil || *again.Repository != *snap.Repository || again.Tree == snap.Tree || effort.Cleans != 0 || m.puts != puts+2 {
		t.Errorf("%+v, %+v, %v, %d objects more", again, effort, err, m.puts-puts)
	}
	delete(m.objects, snap.Repository.Root)
	if take(t, snapshot.Options{Dir: dir, Git: true, Index: index}, m); m.objects[snap.Repository.Root] == nil {
		t.Error("the repository is not there, and was not made again")
	}
	other := folder(t, "git clone -q '"+dir+"' x; cd x; git checkout -q main")
	if got := take(t, snapshot.Options{Dir: filepath.Join(other, "x"), Git: true}, nil); *got.Repository != *snap.Repository {
		t.Errorf("another clone gives %v, this one %v", *got.Repository, *snap.Repository)
	}
}

func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	t.Parallel()
	dir := folder(t, project)
	ran := filepath.Join(t.TempDir(), "ran")
	sh(t, dir, "printf '#!/bin/sh\\ntouch "+ran+"\\n' > .git/prog; chmod +x .git/prog; cp .git/prog .git/hooks/post-index-change;"+
		"git config core.fsmonitor \"$PWD/.git/prog\"; git config core.sshCommand \"$PWD/.git/prog\"; git config core.pager \"$PWD/.git/prog\";"+
		"git config gpg.program \"$PWD/.git/prog\"; git config log.showSignature true; git config diff.external \"$PWD/.git/prog\"; touch changed")
	take(t, snapshot.Options{Dir: dir, Git: true}, nil)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository ran")
	}
	if os.Geteuid() != 0 {
		return
	}
	// A repository of somebody else does not run the programs either by which its owner converts files.
	sh(t, dir, "git config filter.evil.clean \"$PWD/.git/prog\"; printf '* filter=evil\\n' > .git/info/attributes; touch src/code; chown -R 1234 .")
	take(t, snapshot.Options{Dir: dir, Git: true}, nil)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a filter of somebody else's repository ran")
	}
}

func TestNothingIsWrittenIntoTheSource(t *testing.T) {
	t.Parallel()
	dir := folder(t, project)
	before := sh(t, dir, "find . -printf '%p %T@ %C@ %s\\n' | sort")
	take(t, snapshot.Options{Dir: dir, Git: true}, nil)
	if after := sh(t, dir, "find . -printf '%p %T@ %C@ %s\\n' | sort"); after != before {
		t.Error(cmp.Diff(before, after))
	}
}
