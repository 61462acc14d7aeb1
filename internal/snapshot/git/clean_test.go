package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

const lots = 1 << 30

// history is a repository with tags of all kinds on a history with a merge.
const history = `
git init -q .
mkdir d; printf 1 > d/a; printf '#!/bin/sh\n' > run; chmod +x run; ln -s d/a link; : > empty
git add . ; git commit -qm one; git tag light
printf 2 > d/a; git commit -qam two; git tag -a -m 'release' v1.0
git tag -a -m nested outer v1.0 2>/dev/null
git checkout -qb side HEAD~1; printf s > s; git add s; git commit -qm side
git checkout -q main; git merge -q -m merge side
printf 3 > d/a; git commit -qam three
git branch other; git tag unreached "$(git commit-tree -m x 'HEAD^{tree}')"
git remote add origin https://user:hunter2token@example.org/o/r.git
`

// workspace is a folder with the files of a commit under other stamps, and a clean repository in .git.
func workspace(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	sh(t, from, "git archive HEAD | tar -x -C '"+dir+"'")
	if err := open(t, from).Clean(t.Context(), filepath.Join(dir, ".git"), lots); err != nil {
		t.Fatal(err)
	}
	long := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	for path := range contents(t, dir) {
		if info, err := os.Lstat(filepath.Join(dir, path)); err == nil && info.Mode().IsRegular() {
			if err := os.Chtimes(filepath.Join(dir, path), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// Case B75.
func TestGitFindsNothingChangedInAWorkspaceWithOtherStamps(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sh(t, src, history)
	dir := workspace(t, src)
	for _, command := range []string{
		"git describe", "git describe --tags --dirty", "git describe --all --match light", "git rev-parse HEAD 'HEAD^{tree}' v1.0 'v1.0^{}' outer",
		"git log --oneline --graph", "git rev-list --count HEAD", "git tag --merged HEAD", "git ls-files -s", "git diff --stat --exit-code",
		"git show HEAD:d/a", "git cat-file -p v1.0", "git diff-index --cached HEAD",
	} {
		if want, got := sh(t, src, command), sh(t, dir, command); want != got {
			t.Errorf("%s: %q in the clone, %q in the workspace", command, want, got)
		}
	}
	if got := sh(t, dir, "git status --porcelain"); got != "" {
		t.Errorf("git status: %q", got)
	}
	if got := sh(t, dir, "git fsck --full --strict 2>&1; git gc -q 2>&1; git status --porcelain; git describe"); got != sh(t, src, "git describe") {
		t.Errorf("after fsck and gc: %q", got)
	}
}

func TestAChangeShowsInTheWorkspaceAlsoWhenSizeAndTimeAreThoseOfTheCommit(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sh(t, src, history)
	dir := workspace(t, src)
	sh(t, dir, "touch -r d/a /tmp/.; printf 4 > d/a; touch -d 1980-01-01T00:00:00Z d/a .git/index; rm empty")
	if got := sh(t, dir, "git status --porcelain"); got != "M d/a\n D empty" {
		t.Errorf("git status: %q", got)
	}
}

func TestTheCleanRepositoryIsTheSameHoweverACloneKeepsItsObjects(t *testing.T) {
	t.Parallel()
	src, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	sh(t, src, history)
	sh(t, src, "git tag -d unreached; git clone -q --no-local . '"+other+"'; git gc -q")
	sh(t, other, "git checkout -q --detach; git branch -D main; git config core.autocrlf true; git config user.email x@example.org; git repack -qadf --depth=3")
	var got [2]map[string]string
	for i, from := range []string{src, other} {
		dir := t.TempDir()
		if err := open(t, from).Clean(t.Context(), dir, lots); err != nil {
			t.Fatal(err)
		}
		got[i] = contents(t, dir)
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Error(diff)
	}
}

// Case B71.
func TestTheCleanRepositoryHasNoAddressNoHookAndNoLog(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sh(t, src, history+"printf '#!/bin/sh\\n' > .git/hooks/pre-commit; git config http.extraHeader 'Authorization: hunter2token'")
	dir := t.TempDir()
	if err := open(t, src).Clean(t.Context(), dir, lots); err != nil {
		t.Fatal(err)
	}
	for path, data := range contents(t, dir) {
		if strings.Contains(data, "hunter2token") || strings.Contains(data, src) || strings.Contains(data, "example.org/o/r") {
			t.Errorf("%s tells of the clone: %q", path, data)
		}
		switch top, _, _ := strings.Cut(path, "/"); top {
		case "HEAD", "config", "packed-refs", "index", "objects":
		default:
			t.Errorf("there is %s", path)
		}
	}
}

func TestAShallowCloneGivesAShallowRepository(t *testing.T) {
	t.Parallel()
	src, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	sh(t, src, history)
	sh(t, src, "git clone -q --depth 1 'file://"+src+"' '"+clone+"'")
	dir := workspace(t, clone)
	if got := sh(t, dir, "git rev-list --count HEAD; git status --porcelain; git describe --always; git fsck 2>&1"); got != "1\n"+sh(t, src, "git rev-parse --short HEAD") {
		t.Errorf("%q", got)
	}
	if got := sh(t, dir, "git remote"); got != "" {
		t.Errorf("nothing is promised, but there is %q", got)
	}
}

func TestRepositoriesWithSHA256Work(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sh(t, src, strings.Replace(history, "git init -q .", "git init -q --object-format=sha256 .", 1))
	dir := workspace(t, src)
	if got := sh(t, dir, "git status --porcelain; git fsck 2>&1; git describe"); got != sh(t, src, "git describe") {
		t.Errorf("%q", got)
	}
}

func TestALargeSourceIsSpreadOverPacksOfWhichAChangeTouchesFew(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sh(t, src, "git init -q .; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 2000000 /dev/zero | tr '\\0' $i > f$i; echo $i >> f$i; done; git add .; git commit -qm one")
	packs := func() map[string]string {
		dir := t.TempDir()
		if err := open(t, src).Clean(t.Context(), dir, lots); err != nil {
			t.Fatal(err)
		}
		found := contents(t, filepath.Join(dir, "objects", "pack"))
		for name := range found {
			if filepath.Ext(name) != ".pack" {
				delete(found, name)
			}
		}
		return found
	}
	before := packs()
	sh(t, src, "echo more >> f1; git commit -qam two")
	kept, after := 0, packs()
	for name := range after {
		if _, ok := before[name]; ok {
			kept++
		}
	}
	if len(before) < 5 || kept < len(after)-5 { // commits, folders, the file's old pack and its new one
		t.Errorf("%d packs, then %d, %d of them the same", len(before), len(after), kept)
	}
	if got := sh(t, workspace(t, src), "git status --porcelain; git fsck 2>&1"); got != "" {
		t.Error(got)
	}
}

func TestWhatCannotBeMadeIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	unborn, src, partial := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "partial")
	sh(t, unborn, "git init -q .")
	if err := open(t, unborn).Clean(t.Context(), t.TempDir(), lots); !errors.Is(err, git.ErrNoCommit) {
		t.Errorf("no commit: %v", err)
	}
	sh(t, src, history)
	if err := open(t, src).Clean(t.Context(), t.TempDir(), 3); err == nil || !strings.Contains(err.Error(), "of at most 3") {
		t.Errorf("too large: %v", err)
	}
	sh(t, src, "git config uploadpack.allowFilter true; git clone -q --no-checkout --filter=blob:none 'file://"+src+"' '"+partial+"'")
	if err := open(t, partial).Clean(t.Context(), t.TempDir(), lots); err == nil || !strings.Contains(err.Error(), "not in this clone") {
		t.Errorf("partial clone: %v", err)
	}
}
