package capture_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// evilNames are names that something has tripped over.
var evilNames = []string{
	"-rf", "--", "-", "--help", "*", "?", "[a]", "{a,b}", "!", "!important", "#x", "~", "~root", "$HOME", "$(reboot)", "`id`", "a;b", "a&b", "a|b",
	"a>b", "<a", `"`, "'", `\`, `a\b`, `C:\x`, "C:", "a:b", "con", "CON", "nul.txt", "COM1", "LPT9.x", "aux", "prn ", "trailing.", "trailing ", " leading",
	"...", "....", "..a", ".a", ".git", ".forgeyard", "new\nline", "\n", "carriage\rreturn", "tab\t", "\x01", "\x1b[2J", "\x7f", "bell\a", " ", "  ",
	"%s%n", "%2e%2e%2f", "..%2f", "a b", "\u00e9", "e\u0301", "Straße", "STRASSE", "İ", "i̇", "ﬁ", "fi", "\u202egnp.exe", "\u200b", "\ufeffbom", "\ufffd",
	"日本語", "🏗️", "𝔘𝔫𝔦", "Readme", "README", "readme", "COPYING.", "x.tar.gz", "Thumbs.db", ".DS_Store", "lost+found", "0", "null", "true",
	strings.Repeat("n", 255), strings.Repeat("é", 127), strings.Repeat("🏗", 63), "." + strings.Repeat("h", 254),
}

// evil makes a folder of n entries of every kind that can be kept, from a seed.
func evil(t *testing.T, root *os.Root, n int, rng *rand.Rand) {
	folders := []string{"."}
	var files []string
	for i := 0; i < n; {
		dir := folders[rng.IntN(len(folders))]
		name := evilNames[rng.IntN(len(evilNames))]
		at := path.Join(dir, name)
		if _, err := root.Lstat(at); err == nil || strings.Count(at, "/") > 12 {
			continue
		}
		i++
		switch kind := rng.IntN(8); kind {
		case 0, 1:
			must(t, root.Mkdir(at, 0o700))
			folders = append(folders, at)
		case 2:
			must(t, root.Symlink(evilTarget(rng, strings.Count(at, "/")), at))
		case 3:
			if len(files) > 0 {
				must(t, root.Link(files[rng.IntN(len(files))], at))
				continue
			}
			fallthrough
		default:
			must(t, root.WriteFile(at, []byte(strings.Repeat(name, rng.IntN(3))), 0o600))
			must(t, root.Chmod(at, []fs.FileMode{0o600, 0o644, 0o755, 0o700 | fs.ModeSetuid, 0o444}[kind-3]))
			files = append(files, at)
		}
	}
}

// evilTarget is a link's target that stays inside, from something with depth folders above it.
func evilTarget(rng *rand.Rand, depth int) string {
	target := strings.Repeat("../", rng.IntN(depth+1)) + evilNames[rng.IntN(len(evilNames))]
	return strings.TrimPrefix(target, "/")
}

// picture describes all that a folder holds and a tree keeps.
func picture(t *testing.T, root *os.Root) []string {
	t.Helper()
	var lines []string
	var walk func(in *os.Root, at string)
	walk = func(in *os.Root, at string) {
		entries, err := fs.ReadDir(in.FS(), ".")
		must(t, err)
		for _, e := range entries {
			info, err := in.Lstat(e.Name())
			must(t, err)
			line := fmt.Sprintf("%q %v %v", path.Join(at, e.Name()), info.Mode().Type(), info.Mode().IsRegular() && info.Mode()&0o111 != 0)
			switch {
			case info.IsDir():
				sub, err := in.OpenRoot(e.Name())
				must(t, err)
				walk(sub, path.Join(at, e.Name()))
				must(t, sub.Close())
			case info.Mode().IsRegular():
				b, err := in.ReadFile(e.Name())
				must(t, err)
				line += fmt.Sprintf(" %q", b)
			default:
				target, err := in.Readlink(e.Name())
				must(t, err)
				line += fmt.Sprintf(" -> %q", target)
			}
			lines = append(lines, line)
		}
	}
	walk(root, "")
	slices.Sort(lines)
	return lines
}

// Threat S18, cases B77 and B78: what cannot be kept is refused by name; all else goes in and out, exactly.
func TestAnEvilCorpusGoesInAndOutExactly(t *testing.T) {
	for seed := range uint64(4) {
		t.Logf("seed %d", seed)
		j := newJob(t, "**")
		root, err := os.OpenRoot(j.source)
		must(t, err)
		evil(t, root, 300, rand.New(rand.NewPCG(seed, 18)))
		bad := []string{"zz-absolute", "zz-escape", "zz-pipe", "zz-\xff", "zz-through"}
		for i, leave := range []func(at string) error{
			func(at string) error { return root.Symlink("/etc/shadow", at) },
			func(at string) error { return root.Symlink("../../../etc/shadow", at) },
			func(at string) error { return unix.Mkfifo(filepath.Join(j.source, at), 0o600) },
			func(at string) error { return root.WriteFile(at, nil, 0o600) },
			func(at string) error { return root.Symlink("x/../..", at) },
		} {
			must(t, leave(bad[i]))
		}
		j.refused(forge.OutputRefused, "zz-absolute", "zz-escape", "zz-pipe", `zz-\xff`, "zz-through")
		for _, name := range bad {
			must(t, root.Remove(name))
		}

		first, err := j.take()
		must(t, err)
		if first.Totals.Hazards&tree.WindowsIllegal == 0 || len(first.Warnings) == 0 {
			t.Errorf("nobody is warned: hazards %b, %q", first.Totals.Hazards, first.Warnings)
		}
		out, err := os.OpenRoot(t.TempDir())
		must(t, err)
		must(t, out.Mkdir(forge.SourceDir, 0o700))
		again, err := out.OpenRoot(forge.SourceDir)
		must(t, err)
		j.sink.materialise(t, first.Tree.Root, again)
		if got, want := picture(t, again), picture(t, root); !slices.Equal(got, want) || len(got) != 300 {
			t.Errorf("%d entries came out, not as the %d that went in", len(got), len(want))
		}
		second, err := capture.Take(t.Context(), out, j.out, &j.sink, j.limits)
		if err != nil || second.Tree != first.Tree {
			t.Errorf("what came out is %v, %v; what went in was %v", second.Tree, err, first.Tree)
		}
		must(t, errors.Join(root.Close(), again.Close(), out.Close()))
	}
}
