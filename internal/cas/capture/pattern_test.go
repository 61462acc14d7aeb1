package capture_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func compile(t *testing.T, patterns ...string) *capture.Patterns {
	t.Helper()
	p, err := capture.Compile(forge.Output{Name: "o", Base: forge.SourceDir, Patterns: patterns})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheLastPatternThatMatchesDecides(t *testing.T) {
	for _, c := range []struct{ patterns, taken, left string }{
		{"dist", "dist dist/a dist/b/c", "dist2 a/dist distant/a"},
		{"dist/", "dist/a dist/b/c", "dist"}, // a file of that name
		{"dist/**", "dist/a dist/b/c", "a b/dist"},
		{"dist/*", "dist/a dist/b/c", "dist a"},
		{"**", "a a/b/c .hidden -rf", ""},
		{"*", "a a/b/c .hidden", ""},
		{"**/*.xml", "a.xml a/b/c.xml a.xml/b", "a.xmlx a/xml"},
		{"a/**/z", "a/z a/b/z a/b/c/z a/z/b", "z a/b b/a/z"},
		{"**/a/**/b", "a/b x/a/b a/x/b a/a/y/b", "b a ab"},
		{"*.{c,h}", "x.c x.h", "x.o y/x.c"},
		{"{src,lib/gen}/*.go", "src/a.go lib/gen/a.go", "lib/a.go gen/a.go"},
		{"{a,b{c,d/e}}", "a bc bd/e a/x", "b bd d/e"},
		{"x*{,.exe}", "x xa x.exe", "y"},
		{"x[{,}]y", "x{y x,y", "xy x{,}y"},
		{"[a-c]?", "ax bß", "dx a abc"},
		{"**/*.o/", "d.o/x a/d.o/x", "x.o a/x.o"},
		{"dist !dist/cache !**/*.tmp", "dist/a dist/cached", "dist/cache/a dist/a.tmp dist/b/c.tmp/d"},
		{"dist !dist/cache dist/cache/keep", "dist/a dist/cache/keep dist/cache/keep/x", "dist/cache/a"},
		{"dist !** dist/a", "dist/a", "dist/b"},
		{"dist/a !dist", "", "dist/a dist/b"},
		{"/work/source/dist", "dist/a", "work/source/dist"},
	} {
		p := compile(t, strings.Fields(c.patterns)...)
		for _, path := range strings.Fields(c.taken) {
			if takes, reached := p.Follow(path); !takes || !reached {
				t.Errorf("%s: %s is not taken (%v, reached %v)", c.patterns, path, takes, reached)
			}
		}
		for _, path := range strings.Fields(c.left) {
			if takes, _ := p.Follow(path); takes {
				t.Errorf("%s: %s is taken", c.patterns, path)
			}
		}
	}
}

func TestAFolderThatNoPatternReachesIsNotEntered(t *testing.T) {
	for patterns, paths := range map[string]string{
		"dist/**":                  "node_modules/x a/dist/x",
		"a/b/*.c":                  "a/x/y b/b/c a/b/x/y",
		"dist !dist/cache":         "dist/cache/x",
		"** !**/node_modules":      "a/node_modules/b/c",
		"a/** !a/b a/b/c/d a/b/*x": "a/b/d/e",
	} {
		for path := range strings.FieldsSeq(paths) {
			if _, reached := compile(t, strings.Fields(patterns)...).Follow(path); reached {
				t.Errorf("%s: the folder of %s is entered", patterns, path)
			}
		}
	}
}

// Case B83: ../x is refused before anything is looked at.
func TestPatternsThatCannotMatchAreRefusedByName(t *testing.T) {
	for _, pattern := range []string{
		"../x", "a/../x", "..", ".", "./a", "", "/", "/etc/passwd", "/work/elsewhere/x", "/work/source/../x", "a//b", "[a", "[]", "{a",
		"a}", "[a/b]", "{a,../b}", "{,a}", "a/{b/..,c}", `a\*`, strings.Repeat("{a,b}", 11), strings.Repeat("{a,b/", 40) + strings.Repeat("}", 40) + "}",
	} {
		_, err := capture.Compile(forge.Output{Name: "app", Base: forge.SourceDir, Patterns: []string{"ok", pattern}})
		if !errors.Is(err, capture.ErrPattern) || !strings.Contains(err.Error(), "output app") {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = strings.Repeat("{a,b}", 4) // 16 each
	}
	if _, err := capture.Compile(forge.Output{Base: forge.SourceDir, Patterns: many}); !errors.Is(err, capture.ErrPattern) {
		t.Errorf("%d alternatives: %v", 65*16, err)
	}
	if _, err := capture.Compile(forge.Output{Base: forge.SourceDir, Patterns: many[:64]}); err != nil {
		t.Errorf("%d alternatives: %v", 64*16, err)
	}
}

// FuzzPatterns compares what a walk takes with what the patterns say of the whole path and of each folder above it.
func FuzzPatterns(f *testing.F) {
	for _, s := range [][3]string{
		{"dist/**", "!dist/c", "dist/c/d"},
		{"**/*.xml", "!a", "a/b.xml"},
		{"{a,b/c}/**/d", "!**/e/**", "b/c/x/d/e/y"},
		{"a/**/**/b", "!a*/[!b]", "a/b/c"},
		{"**/a/", "!a/a/", "a/a/a/a"},
		{"?**", "!{?,??}", "ab/c"},
		{"0", "#*{}", "#"},
		{"[{,}]{a,{b,[}],]}*}", "!{*}{,}", "{b"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, one, two, path string) {
		if len(one)+len(two)+len(path) > 100 { // the reference goes back and forth without end
			return
		}
		if strings.HasPrefix(one, "!") || strings.HasPrefix(one, "/") || strings.HasPrefix(strings.TrimPrefix(two, "!"), "/") {
			return
		}
		p, err := capture.Compile(forge.Output{Base: forge.SourceDir, Patterns: []string{one, two}})
		if err != nil || path == "" || strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
			return
		}
		want := false
		for _, pattern := range []string{one, two} {
			if matchesSome(pattern, path) {
				want = !strings.HasPrefix(pattern, "!")
			}
		}
		takes, reached := p.Follow(path)
		if takes != want || want && !reached {
			t.Errorf("%q, %q of %q: %v, reached %v; want %v", one, two, path, takes, reached, want)
		}
	})
}

// matchesSome reports whether a pattern matches a path or a folder above it, by trying all there is. The library is asked about
// single names only: of whole paths it does not see that *{} and **/** match nothing, too.
func matchesSome(pattern, path string) bool {
	pattern = strings.TrimPrefix(pattern, "!")
	words, parts := strings.TrimSuffix(pattern, "/"), strings.Split(path, "/")
	return slices.ContainsFunc(writtenOut(words), func(one string) bool {
		names := strings.Split(one, "/")
		for end := range parts { // 0 is the base itself
			if matchesAll(names, parts[:end]) {
				return true
			}
		}
		return words == pattern && matchesAll(names, parts)
	})
}

func matchesAll(names, parts []string) bool {
	switch {
	case len(names) == 0:
		return len(parts) == 0
	case names[0] != "**":
		return len(parts) > 0 && doublestar.MatchUnvalidated(names[0], parts[0]) && matchesAll(names[1:], parts[1:])
	case len(names) > 1 && names[1] == "**":
		return matchesAll(names[1:], parts)
	}
	return matchesAll(names[1:], parts) || len(parts) > 0 && matchesAll(names, parts[1:])
}

var (
	class     = regexp.MustCompile(`\[[^\]]*\]`)
	innermost = regexp.MustCompile(`\{([^{}]*)\}`)
)

// writtenOut writes {this,that} out, innermost first: the other way round than the code it is compared with.
func writtenOut(pattern string) []string {
	const mask = '\uE000' // private runes stand for the classes meanwhile, which may hold braces
	var masks []string
	done, todo := []string(nil), []string{class.ReplaceAllStringFunc(pattern, func(class string) string {
		r := string(mask + rune(len(masks)/2))
		masks = append(masks, r, class)
		return r
	})}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		at := innermost.FindStringSubmatchIndex(p)
		if at == nil {
			done = append(done, strings.NewReplacer(masks...).Replace(p))
			continue
		}
		for choice := range strings.SplitSeq(p[at[2]:at[3]], ",") {
			todo = append(todo, p[:at[0]]+choice+p[at[1]:])
		}
	}
	return done
}
