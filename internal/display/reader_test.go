package display

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// show reads a log in pieces of some size, and draws it.
func show(text string, piece int) string {
	var r Reader
	var out strings.Builder
	draw := func(items []Item) {
		for _, i := range items {
			if line, ok := (Style{}).Item("", i); ok {
				out.WriteString(line + "\n")
			}
		}
	}
	for len(text) > 0 {
		n := min(piece, len(text))
		draw(r.Read(false, []byte(text[:n]), begun))
		text = text[n:]
	}
	draw(r.Flush(begun))
	return out.String()
}

// shows are logs, and what a person sees of them.
var shows = []struct{ name, text, want string }{
	{"lines", "one\ntwo\r\nthree", "one\ntwo\nthree\n"},
	{"progress", "\r1%\r50%\r100%\nnext\n", "100%\nnext\n"}, // case B53
	{"progress that erases", "10%\r\x1b[K20%\r\x1b[K\rdone\n", "done\n"},
	{"progress that ends with a return", "10%\r20%\r\n", "20%\n"},
	{"signs of formats", "%s%n %d <script>alert(1)</script>\n", "%s%n %d <script>alert(1)</script>\n"}, // case B54
	{"colours over lines", "\x1b[31mred\nstill\x1b[0m\nnot\n", "\x1b[31mred\x1b[0m\n\x1b[31mstill\x1b[0m\nnot\n"},
	{"colours that are replaced", "\x1b[31m\x1b[0;32mgreen\nstill\x1b[m\n", "\x1b[31m\x1b[0;32mgreen\x1b[0m\n\x1b[0;32mstill\x1b[m\n"},
	{"a title and a link", "\x1b]0;pwned\x07a \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "a link\n"},
	{"a clear screen", "\x1b[2J\x1b[1;1Hhi\x1b[5A\n", "hi\n"},
	{"an other screen", "\x1b[?1049h\x1b[?25lhi\x1bc\n", "hi\n"},
	{"turned writing", "a\u202eb\n", "ab\n"},
	{"groups", "::group::Set up\nin\n::group::deep\nx\n::endgroup::\n::endgroup::\nout\n::endgroup::\n", "▾ Set up\n  in\n  ▾ deep\n    x\nout\n"},
	{
		"sections", "\x1b[0Ksection_start:1560896352:my_first[collapsed=true]\r\x1b[0K\x1b[36mHeader\x1b[0m\nin\n" +
			"\x1b[0Ksection_end:1560896353:my_first\r\x1b[0K\nout\n", "▾ Header\n  in\nout\n",
	},
	{"a section without a header", "section_start:1560896352:prepare[collapsed=true]\r\x1b[0K\n", "▾ prepare\n"},
	{
		"remarks", "::error file=app.js,line=10,col=15,title=Oh%3A no::a%25b%0Ac\n::warning::hm\n  ::notice file=a%2Cb.go::see\n",
		"error: app.js:10:15: Oh: no: a%b c\nwarning: hm\nnotice: a,b.go: see\n",
	},
	{"a remark that hides something", "::error file=\x1b[2Ja\u202e.go,line=x::\x1b]0;t\x07b%0D%1B[2J\n", "error: a.go: b %1B[2J\n"},
	{"what is no mark", "a::error::b\n::unknown::c\n::error\n::set-output name=x::y\n::add-mask::z\n", "a::error::b\n::unknown::c\n::error\n::set-output name=x::y\n::add-mask::z\n"},
}

func TestALogIsShownAsLinesThatAreSafe(t *testing.T) {
	for _, c := range shows {
		for piece := 1; piece <= len(c.text); piece++ {
			if diff := cmp.Diff(c.want, show(c.text, piece)); diff != "" {
				t.Errorf("%s in pieces of %d: %s", c.name, piece, diff)
				break
			}
		}
	}
}

func TestLongLinesAreShownInPieces(t *testing.T) {
	long := strings.Repeat("x", 2*maxLine+10)
	want := long[:maxLine] + "\n" + long[:maxLine] + "\n" + long[:10] + "\n"
	for _, piece := range []int{1000, maxLine - 1, maxLine, maxLine + 1, len(long) + 1} {
		if got := show(long+"\n", piece); got != want {
			t.Errorf("in pieces of %d: lines of %d", piece, strings.IndexByte(got, '\n'))
		}
	}
}

// Case B53: however long a progress is, it is one line, and only its last state is kept.
func TestALongProgressIsOneLine(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "\r%04d of 5000", i)
	}
	for _, piece := range []int{7, 4096, maxLine, 1 << 20} {
		if got := show(text.String()+"\rdone\n", piece); got != "done\n" {
			t.Errorf("in pieces of %d: %.80q", piece, got)
		}
	}
	var r Reader
	r.Read(true, []byte(text.String()), begun)
	if got := r.Said(true); got != "4999 of 5000" || r.Said(false) != "" {
		t.Errorf("under way: %q", got)
	}
	if n := len(r.streams[1].rest); n > maxLine {
		t.Errorf("%d bytes are kept", n)
	}
}

func TestAGroupSaysHowLongItTook(t *testing.T) {
	var r Reader
	r.Read(false, []byte("::group::a\n"), begun)
	items := r.Read(true, []byte("::endgroup::\n"), begun.Add(83*time.Second))
	if line, ok := (Style{}).Item("job | ", items[0]); !ok || line != "job | └ 1m23s" {
		t.Errorf("%q", line)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	text := strings.Repeat("::group::a\n", 1000) + "x\n" + strings.Repeat("::endgroup::\n", 1000) + "y\n"
	if got := show(text, 100); !strings.Contains(got, "\n"+strings.Repeat("  ", maxGroup)+"x\ny\n") {
		t.Errorf("%q", got[len(got)-60:])
	}
}

// Rule S21: whatever is in a log, what is shown of it is text and colours.
func FuzzReader(f *testing.F) {
	for _, c := range shows {
		f.Add([]byte(c.text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		if piece < 1 {
			piece = 1
		}
		var r Reader
		var items []Item
		for left := text; len(left) > 0; {
			n := min(piece, len(left))
			items = append(items, r.Read(false, left[:n], begun)...)
			left = left[n:]
			clean(t, text, r.Said(false))
		}
		for _, i := range append(items, r.Flush(begun)...) {
			line, _ := Style{Colour: true}.Item("p ", i)
			clean(t, text, line)
		}
	})
}

// clean fails unless a line is text and colours.
func clean(t *testing.T, text []byte, line string) {
	t.Helper()
	if !utf8.ValidString(line) {
		t.Fatalf("%q: %q is no text", text, line)
	}
	for i := 0; i < len(line); i++ {
		if c := line[i]; c == 0x1b {
			end := strings.TrimLeft(line[i+1:], "[0123456789;:")
			if !strings.HasPrefix(line[i+1:], "[") || !strings.HasPrefix(end, "m") {
				t.Fatalf("%q became %q", text, line)
			}
		} else if c < ' ' && c != '\t' || c == 0x7f {
			t.Fatalf("%q became %q", text, line)
		}
	}
	for _, r := range line {
		if r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Fatalf("%q became %q", text, line)
		}
	}
}
