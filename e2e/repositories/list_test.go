//go:build linux

package repositories_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var repositories = []repository{
	{
		name: "go-module", tools: []string{"go", "git"},
		history: func(x *tree) {
			x.commit("the first release")
			x.git("tag", "-a", "-m", "1.2.0", "v1.2.0")
			x.write("docs/history.md", "Nothing yet.\n")
			x.commit("a page about what was")
		},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("build", "", "greeter")
			head, err := exec.CommandContext(t.Context(), filepath.Join(dir, "out/greeter"), "-version").Output()
			if err != nil || !strings.HasPrefix(string(head), "v1.2.0-1-g") {
				t.Errorf("the version is %q; %v", head, err)
			}
			says(t, string(head), dir, "out/version.txt")
			says(t, "Good day, Ada.\nGood day, Grace.\n", dir, "out/greeting.txt")
			printed(t, "Good day, Linus.\n", filepath.Join(dir, "out/greeter"), "Linus")
		},
		again: func(t *testing.T, first, second *run) {
			if log := first.log("test", ""); !strings.Contains(log, "downloading golang.org/x/sync") {
				t.Errorf("the first run has loaded no module: %s", log)
			}
			if log := second.log("test", ""); strings.Contains(log, "downloading") || !strings.Contains(log, "internal/greet\t(cached)") {
				t.Errorf("the second run has found no cache: %s", log)
			}
		},
	},
	{
		name: "npm", tools: []string{"node", "npm", "git"},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("page", "", "page")
			says(t, "<!doctype html>\n<title>Yards</title>\n<ul>\n<li>forge</li>\n<li>ship</li>\n<li>&lt;b&gt;</li>\n</ul>\n", dir, "dist/index.html")
		},
		again: func(t *testing.T, first, second *run) {
			if log := first.log("page", ""); !strings.Contains(log, "mustache-4.2.0.tgz") || !strings.Contains(log, "(cache miss)") {
				t.Errorf("the first run has loaded no package: %s", log)
			}
			// Npm says the same of a package that it has kept, also with --offline.
			if log := second.log("page", ""); !strings.Contains(log, "mustache-4.2.0.tgz") || strings.Contains(log, "(cache miss)") {
				t.Errorf("the second run has found no cache: %s", log)
			}
		},
	},
	{
		name: "cmake", tools: []string{"cmake", "ninja", "cc", "git"},
		kept: func(t *testing.T, r *run) {
			for _, kind := range []string{"Debug", "Release"} {
				dir := r.artifact("build", kind, "tally")
				says(t, "tally 2.3.1\n4 to be or not\n", dir, "installed/version.txt")
				printed(t, "3 a b c\n", filepath.Join(dir, "installed/bin/tally"), "a b c")
			}
		},
	},
	{
		name: "autotools", tools: []string{"autoreconf", "automake", "make", "cc", "git"},
		kept: func(t *testing.T, r *run) {
			if found := files(t, r.artifact("dist", "", "source")); !slices.Equal(found, []string{"rot-0.9.2.tar.gz"}) {
				t.Errorf("the sources are in %v", found)
			}
			printed(t, "rot 0.9.2\n", filepath.Join(r.artifact("build", "", "rot"), "installed/bin/rot"), "--version")
			if found := files(t, r.artifact("build", "", "tests")); !slices.Equal(found, []string{"tests/twice.sh.log"}) {
				t.Errorf("what the tests said is in %v", found)
			}
		},
	},
	{
		name: "python", tools: []string{"python3", "git"},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("test", "", "ledger")
			says(t, "10.25\n", dir, "balance.txt")
			if log := r.log("test", ""); !strings.Contains(log, "in an environment: True") || !strings.Contains(log, "Ran 2 tests") {
				t.Errorf("the log is %s", log)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "ledger.pyz"))
			cmd.Stdin = strings.NewReader("1.10 a\n\n2.20 b\n")
			if got, err := cmd.CombinedOutput(); err != nil || string(got) != "3.30\n" {
				t.Errorf("it prints %q; %v", got, err)
			}
		},
	},
	{
		name: "java", tools: []string{"javac", "jar", "java", "git"},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("jar", "", "words")
			says(t, "2 be\n1 not\n1 or\n2 to\n", dir, "words.txt")
			printed(t, "1 a\n2 b\n", "java", "-jar", filepath.Join(dir, "words.jar"), "b", "a", "B")
			list, err := exec.CommandContext(t.Context(), "jar", "--list", "--file", filepath.Join(dir, "words.jar")).Output()
			if err != nil || !strings.Contains(string(list), "org/example/words/Words.class\n") || strings.Contains(string(list), "Test") {
				t.Errorf("the archive has %s; %v", list, err)
			}
		},
	},
	{
		name: "monorepo", tools: []string{"git", "tar"},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("deploy", "", "all")
			says(t, "012\nname=api\nplain\nname=api\nstrict\nname=api\nplain\nname=mail\n", dir, "all/services.txt")
			says(t, "web/check-clean.sh\nweb/check-name.sh\nweb/check-size.sh\n", dir, "all/checks.txt")
			var legs []string
			for _, job := range r.run.Jobs {
				legs = append(legs, job.Key+" "+job.State)
			}
			if want := strings.Split("services Succeeded,services Succeeded,services Succeeded,services Succeeded,web Succeeded,web Succeeded,deploy Succeeded,apologise Skipped", ","); !slices.Equal(legs, want) {
				t.Errorf("the jobs are %v", legs)
			}
		},
	},
	{
		// Case B76: submodules by relative addresses, one within another.
		name: "submodules", tools: []string{"git"},
		history: nested,
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("run", "", "said")
			says(t, "[deep] Ada uses app\n", dir, "said.txt")
			says(t, "deep='[deep]'\n", dir, "lib/say/deep/words.sh")
			for name, want := range map[string]string{"current": "lib/say", "lib/say/deep/up": "../say.sh"} {
				if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != want {
					t.Errorf("%s leads to %q, want %q; %v", name, got, want, err)
				}
			}
		},
	},
	{
		name: "release", tools: []string{"git", "sha256sum"},
		history: func(x *tree) {
			x.commit("a tool")
			x.git("tag", "-a", "-m", "two", "v2.0.0")
		},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("publish", "", "release")
			var sums strings.Builder
			says(t, "- One file for each system.\n- Checksums beside them.\n", dir, "release/NOTES.md")
			names := []string{"NOTES.md", "tool_2.0.0_darwin", "tool_2.0.0_linux", "tool_2.0.0_windows"}
			for _, name := range names {
				content, err := os.ReadFile(filepath.Join(dir, "release", name))
				if err != nil {
					t.Error(err)
				}
				fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
			}
			says(t, sums.String(), dir, "release/SHA256SUMS")
			printed(t, "tool 2.0.0 for linux\n", filepath.Join(dir, "release/tool_2.0.0_linux"))
			if job := r.job("nightly", ""); job.State != "Skipped" {
				t.Errorf("what is not for releases is %s", job.State)
			}
		},
	},
	{
		name: "large", tools: []string{"git"},
		history: func(x *tree) {
			for i := range largeFiles {
				x.write(largeName(i), largeContent(i))
			}
			if err := os.Chmod(filepath.Join(x.dir, largeName(7)), 0o755); err != nil {
				x.t.Fatal(err)
			}
			x.commit("what a program has written")
		},
		kept: func(t *testing.T, r *run) {
			dir := r.artifact("sum", "", "sums")
			says(t, fmt.Sprintf("%d\n1\n%d\n", largeFiles, largePages), dir, "count.txt")
			names := make([]int, largeFiles)
			for i := range names {
				names[i] = i
			}
			slices.SortFunc(names, func(a, b int) int { return strings.Compare(largeName(a), largeName(b)) })
			tree, pages := sha256.New(), sha256.New()
			for _, i := range names {
				fmt.Fprint(tree, largeContent(i))
			}
			for i := range largePages {
				fmt.Fprintf(pages, "page %d\n", i+1)
			}
			says(t, fmt.Sprintf("%x  -\n%x  -\n", tree.Sum(nil), pages.Sum(nil)), dir, "sum.txt")
		},
	},
}

// The large tree: as many files as a middling project has, most of them small.
const (
	largeFiles = 3000
	largePages = 1500
)

func largeName(i int) string { return fmt.Sprintf("tree/%d/%d/%d.txt", i%60, i%11, i) }

func largeContent(i int) string {
	return strings.Repeat(fmt.Sprintf("file %d has a line\n", i), 1+i%97)
}

// nested makes a repository with a submodule by a relative address, which has another one of its own, and links into them.
func nested(x *tree) {
	origin := func(name string) *tree {
		o := &tree{t: x.t, dir: filepath.Join(filepath.Dir(x.dir), name), at: x.at}
		if err := os.MkdirAll(o.dir, 0o755); err != nil {
			x.t.Fatal(err)
		}
		o.git("init", "-q", "-b", "main")
		return o
	}
	deep := origin("deep")
	deep.write("words.sh", "deep='[deep]'\n")
	deep.link("../say.sh", "up") // out of this module, into the one around it
	deep.commit("words")

	say := origin("say")
	say.write("say.sh", ". ./current/deep/words.sh\nsay() { echo \"$deep Ada uses $1\"; }\n")
	say.commit("a function")
	say.module("../deep", "deep")
	say.commit("with words of another")

	x.write("app/name", "app\n")
	if err := os.MkdirAll(filepath.Join(x.dir, "lib"), 0o755); err != nil {
		x.t.Fatal(err)
	}
	x.link("lib/say", "current") // a folder, by a link
	x.commit("the program")
	x.git("remote", "add", "origin", filepath.Join(filepath.Dir(x.dir), "app.git")) // what relative addresses are relative to
	x.module("../say", "lib/say")
	x.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	x.commit("with a library")
}

// module adds a submodule.
func (x *tree) module(address, at string) {
	x.t.Helper()
	x.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", address, at)
}
