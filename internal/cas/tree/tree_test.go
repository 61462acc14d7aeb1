package tree_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/postcard"
)

var update = flag.Bool("update", false, "write the golden files anew")

func file(name, content string) tree.Entry {
	return tree.Entry{Name: name, Kind: tree.File, Ref: digest.RefOf([]byte(content))}
}

func program(name, content string) tree.Entry {
	e := file(name, content)
	e.Executable = true
	return e
}

func link(name, target string) tree.Entry {
	return tree.Entry{Name: name, Kind: tree.Link, Target: target}
}

// folder is an entry for a folder with these entries.
func folder(t testing.TB, name string, entries ...tree.Entry) tree.Entry {
	t.Helper()
	data := encoded(t, entries...)
	decoded, err := tree.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Entry{Name: name, Kind: tree.Folder, Ref: digest.RefOf(data), Totals: tree.TotalsOf(decoded)}
}

func encoded(t testing.TB, entries ...tree.Entry) []byte {
	t.Helper()
	data, err := tree.Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The vectors are what a reader in another language has to agree with. A change of any is another format.
func TestTheEncodingIsFrozen(t *testing.T) {
	vectors := []struct {
		name    string
		entries []tree.Entry
	}{
		{"empty", nil},
		{"one file", []tree.Entry{file("a", "hello")}},
		{"one program", []tree.Entry{program("run.sh", "#!/bin/sh\n")}},
		{"one link", []tree.Entry{link("l", "../b/c")}},
		{"an empty folder", []tree.Entry{folder(t, "d")}},
		{"all kinds", []tree.Entry{
			folder(t, "src", file("main.go", "package main\n"), folder(t, "empty"), link("up", "../Makefile")),
			file("Makefile", "all:\n"), program("build", "x"), link("latest", "src/main.go"),
		}},
		{"every hazard", []tree.Entry{
			file("README", "1"), file("readme", "2"), file("nul.txt", "3"), file("\u00e9", "4"), file("e\u0301", "5"),
		}},
		{"a long varint", []tree.Entry{{Name: "big", Kind: tree.File, Ref: digest.Ref{Digest: digest.Of(nil), Bytes: 1 << 40}}}},
	}
	var got strings.Builder
	for _, v := range vectors {
		data := encoded(t, v.entries...)
		fmt.Fprintf(&got, "%s\n  %x\n  %v\n", v.name, data, digest.RefOf(data))
	}
	schema, err := postcard.Schema(typeOfTree)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&got, "schema\n  %s\n", schema)
	golden(t, "trees.golden", got.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Fatalf("%s differs (-want +got):\n%s", path, diff)
	}
}

// One vector by hand, so that the golden file and the encoder cannot be wrong together.
func TestAFolderByHand(t *testing.T) {
	hello := digest.RefOf([]byte("hello"))
	by := "01" + "02" + // version, two entries
		"01" + "61" + "00" + hex.EncodeToString(hello.Digest[:]) + "05" + "01" + // "a", a file, five bytes, executable
		"02" + "6c6e" + "02" + "01" + "61" // "ln", a link, "a"
	if got := hex.EncodeToString(encoded(t, link("ln", "a"), program("a", "hello"))); got != by {
		t.Fatalf("encoded %s, want %s", got, by)
	}
}

func TestWhatDecodesEncodesToTheSameBytes(t *testing.T) {
	entries := []tree.Entry{
		file("a", "1"), program("b", "2"), folder(t, "c", file("x", "3"), file("y", "44")), link("d", "c/x"), folder(t, "e"),
	}
	got, err := tree.Decode(encoded(t, entries...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	want := tree.Totals{Files: 6, Bytes: 5, Depth: 2}
	if totals := tree.TotalsOf(got); totals != want {
		t.Fatalf("totals %+v, want %+v", totals, want)
	}
}

func TestTheOrderOfAddingDoesNotShow(t *testing.T) {
	a, b, c := file("a", "1"), file("B", "2"), file("ü", "3")
	if x, y := encoded(t, a, b, c), encoded(t, c, a, b); !slices.Equal(x, y) {
		t.Fatalf("%x and %x", x, y)
	}
}

// Case B83. Threat S18: names.
func TestNamesThatNoPathCanHoldAreRefused(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "a/b", "/", "a\x00", "\xff", "a\xc0\xaf", strings.Repeat("n", tree.MaxName+1),
	} {
		_, err := tree.Encode([]tree.Entry{file(name, "x")})
		var entry *tree.EntryError
		if !errors.As(err, &entry) {
			t.Errorf("a file %q: %v, want an EntryError", name, err)
		}
	}
	for _, name := range []string{"...", " ", "-rf", "a\\b", "\n", strings.Repeat("n", tree.MaxName), "\u202e"} {
		if _, err := tree.Encode([]tree.Entry{file(name, "x")}); err != nil {
			t.Errorf("a file %q: %v", name, err)
		}
	}
}

// Case B77. Threat S18: links.
func TestLinksThatMayLeadOutAreRefused(t *testing.T) {
	for _, target := range []string{
		"", "/etc/passwd", "/", "//x", "a\x00b", "\xff", "a/..", "a/../../b", "./a/..", "a//../b",
		strings.Repeat("a/", 2048), strings.Repeat("n", tree.MaxName+1),
	} {
		_, err := tree.Encode([]tree.Entry{link("l", target)})
		var l *tree.LinkError
		if !errors.As(err, &l) {
			t.Errorf("a link to %q: %v, want a LinkError", target, err)
		}
	}
	for _, target := range []string{"a", "./a", "..", "../..", "../a/b", ".", "a/", "..a", "a/..b", "l"} {
		if _, err := tree.Encode([]tree.Entry{link("l", target)}); err != nil {
			t.Errorf("a link to %q: %v", target, err)
		}
	}
}

func TestOnlyOneSpellingOfATreeIsAccepted(t *testing.T) {
	one, two := file("a", "1"), file("b", "2")
	good := encoded(t, one, two)
	wire := func(entries ...tree.Entry) []byte { // in any order and of any content
		w := tree.TreeV1{Version: tree.Version}
		for _, e := range entries {
			w.Entries = append(w.Entries, tree.EntryV1{Name: e.Name, Node: tree.NodeV1{
				File: &tree.FileV1{Digest: e.Ref.Digest, Bytes: e.Ref.Bytes, Executable: e.Executable},
			}})
		}
		data, err := postcard.Marshal(&w)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !slices.Equal(wire(one, two), good) {
		t.Fatal("the test spells trees differently")
	}
	bool2 := slices.Clone(good)
	bool2[len(bool2)-1] = 2
	for name, data := range map[string][]byte{
		"nothing":              nil,
		"another version":      append([]byte{2}, good[1:]...),
		"cut":                  good[:len(good)-1],
		"more behind it":       append(slices.Clone(good), 0),
		"unsorted":             wire(two, one),
		"a name twice":         wire(one, one),
		"a long varint":        append([]byte{1, 0x82, 0x00}, good[2:]...),
		"a bool of two":        bool2,
		"a file with no bytes": wire(tree.Entry{Name: "a"}),
		"entries by the billion": {
			1, 0xff, 0xff, 0xff, 0xff, 0x0f,
		},
	} {
		if entries, err := tree.Decode(data); err == nil {
			t.Errorf("%s: decoded to %v", name, entries)
		}
	}
}

func TestTotalsThatNoFolderCanHaveAreRefused(t *testing.T) {
	good := folder(t, "d", file("x", "1"))
	empty := folder(t, "d")
	for name, change := range map[string]func(e *tree.Entry){
		"no files but a depth":       func(e *tree.Entry) { e.Totals.Files = 0 },
		"no depth":                   func(e *tree.Entry) { e.Totals.Depth = 0 },
		"too deep":                   func(e *tree.Entry) { e.Totals.Depth = forge.MaxTreeDepth },
		"deeper than can be counted": func(e *tree.Entry) { e.Totals.Depth = 1<<16 - 1 },
		"too many files":             func(e *tree.Entry) { e.Totals.Files = forge.MaxTreeFiles + 1 },
		"too many bytes":             func(e *tree.Entry) { e.Totals.Bytes = forge.MaxTreeBytes + 1 },
		"an unknown hazard":          func(e *tree.Entry) { e.Totals.Hazards = 8 },
		"an object of one byte":      func(e *tree.Entry) { e.Ref.Bytes = 1 },
		"an object too large":        func(e *tree.Entry) { e.Ref.Bytes = tree.MaxEncoded + 1 },
		"no object":                  func(e *tree.Entry) { e.Ref = digest.Ref{} },
		"the empty object":           func(e *tree.Entry) { e.Ref = empty.Ref },
		"a target":                   func(e *tree.Entry) { e.Target = "x" },
		"an executable bit":          func(e *tree.Entry) { e.Executable = true },
		"another kind":               func(e *tree.Entry) { e.Kind = 4 },
	} {
		e := good
		change(&e)
		if _, err := tree.Encode([]tree.Entry{e}); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
	big := good
	big.Totals.Bytes = forge.MaxTreeBytes
	if _, err := tree.Encode([]tree.Entry{big}); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	other := big
	other.Name = "e"
	if _, err := tree.Encode([]tree.Entry{big, other}); err == nil {
		t.Error("two folders over the bound together were encoded")
	}
}

func TestHazardsAreThoseOfThePlatformsThatHaveThem(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  tree.Hazards
	}{
		{[]string{"a", "b"}, 0},
		{[]string{"README", "readme"}, tree.CaseConflict},
		{[]string{"README", "readme.md"}, 0},
		{[]string{"Straße", "STRASSE"}, tree.CaseConflict},
		{[]string{"É", "é"}, tree.CaseConflict},
		{[]string{"\u00e9", "e\u0301"}, tree.NFCConflict},
		{[]string{"\u00c9", "e\u0301"}, tree.CaseConflict},
		{[]string{"\u00e9", "e\u0301", "\u00c9"}, tree.CaseConflict | tree.NFCConflict},
		{[]string{"\u03c3", "\u03c2"}, tree.CaseConflict},
		{[]string{"é", "e"}, 0},
		{[]string{"con"}, tree.WindowsIllegal},
		{[]string{"Nul.tar.gz"}, tree.WindowsIllegal},
		{[]string{"com1 .txt"}, tree.WindowsIllegal},
		{[]string{"LPT¹"}, tree.WindowsIllegal},
		{[]string{"conin$"}, tree.WindowsIllegal},
		{[]string{"console", "com", "com10", "xnul", "a.con"}, 0},
		{[]string{"a."}, tree.WindowsIllegal},
		{[]string{"a "}, tree.WindowsIllegal},
		{[]string{"a:b"}, tree.WindowsIllegal},
		{[]string{"a\\b"}, tree.WindowsIllegal},
		{[]string{"a\x1f"}, tree.WindowsIllegal},
		{[]string{".a", " a", "a.b"}, 0},
	} {
		var entries []tree.Entry
		for _, name := range c.names {
			entries = append(entries, file(name, name))
		}
		decoded, err := tree.Decode(encoded(t, entries...))
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.TotalsOf(decoded).Hazards; got != c.want {
			t.Errorf("%q: %v, want %v", c.names, got, c.want)
		}
	}
	if got := tree.TotalsOf([]tree.Entry{link("l", "../aux/x")}).Hazards; got != tree.WindowsIllegal {
		t.Errorf("a link into a device: %v", got)
	}
	if got := folder(t, "d", folder(t, "e", file("con", ""))).Totals.Hazards; got != tree.WindowsIllegal {
		t.Errorf("two folders up: %v", got)
	}
}

func TestErrorsStayShortWhateverTheName(t *testing.T) {
	_, err := tree.Encode([]tree.Entry{link("l", "/"+strings.Repeat("x", 1<<20))})
	if err == nil || len(err.Error()) > 1000 {
		t.Fatalf("an error of %d bytes", len(err.Error()))
	}
}

func TestAFolderOfTheMostEntriesIsTheLargest(t *testing.T) {
	entries := make([]tree.Entry, tree.MaxEntries+1)
	for i := range entries {
		entries[i] = link(fmt.Sprintf("%06d", i), "x")
	}
	data := encoded(t, entries[:tree.MaxEntries]...)
	if got, err := tree.Decode(data); err != nil || len(got) != tree.MaxEntries {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	if _, err := tree.Encode(entries); !errors.Is(err, tree.ErrForm) {
		t.Fatalf("one entry more: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f))
	f.Add(encoded(f, file("a", "x"), program("b", "y"), folder(f, "c", file("README", ""), file("readme", "")), link("d", "../a")))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := tree.Decode(data)
		if err != nil {
			return
		}
		if again := encoded(t, entries...); !slices.Equal(again, data) {
			t.Fatalf("%x decodes and encodes to %x", data, again)
		}
		if totals := tree.TotalsOf(entries); totals.Depth > forge.MaxTreeDepth {
			t.Fatalf("totals %+v", totals)
		}
	})
}

func TestAnyFolderComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, 60), 0, 20, func(s string) string { return s }).Draw(t, "names")
		var entries []tree.Entry
		for _, name := range names {
			e := file(name, rapid.String().Draw(t, "content"))
			e.Executable = rapid.Bool().Draw(t, "executable")
			entries = append(entries, e)
		}
		data, err := tree.Encode(entries)
		if err != nil {
			return
		}
		got, err := tree.Decode(data)
		if err != nil {
			t.Fatalf("what was encoded does not decode: %v", err)
		}
		slices.SortFunc(entries, func(a, b tree.Entry) int { return strings.Compare(a.Name, b.Name) })
		if len(entries) > 0 && !slices.Equal(got, entries) {
			t.Fatalf("%v became %v", entries, got)
		}
	})
}
