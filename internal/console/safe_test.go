package console

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// evil is output that tries something with a terminal, and what may be left of it.
var evil = []struct{ name, text, want string }{
	{"plain text", "héllo\tworld\r\n", "héllo\tworld\r\n"},
	{"colours", "\x1b[1;31mred\x1b[38;2;1;2;3mtrue\x1b[0m", "\x1b[1;31mred\x1b[38;2;1;2;3mtrue\x1b[0m"},
	{"a title", "a\x1b]0;pwned\x07b", "ab"},
	{"a title that ends otherwise", "a\x1b]0;pwned\x1b\\b", "ab"},
	{"the clipboard", "a\x1b]52;c;cm0gLXJm\x07b", "ab"},
	{"a link", "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"},
	{"a move of the cursor", "one\x1b[2A\x1b[Ktwo", "onetwo"},
	{"a question to the terminal", "a\x1b[6n\x1b[cb", "ab"},
	{"a mode", "a\x1b[?1049hb", "ab"},
	{"a private colour sequence", "a\x1b[>4;2mb", "ab"},
	{"a character set", "a\x1b(0b", "ab"},
	{"a reset of the terminal", "a\x1bcb", "ab"},
	{"a device string", "a\x1bPq#0;2;0;0;0\x1b\\b", "ab"},
	{"a one-byte sequence", "a\u009b2Ab\u009d0;x\u009cc", "abc"},
	{"bell and backspace", "a\x07\x08\x7fb", "ab"},
	{"bytes that are no text", "a\x9b\xff2Jb", "a\ufffd\ufffd2Jb"},
	{"turned writing", "a\u202egpj.exe\u2066", "agpj.exe"},
	{"a torn string does not swallow the next line", "a\x1b]0;x\nnext", "a\nnext"},
	{"a torn sequence does not swallow the next line", "a\x1b[12\nnext", "a\nnext"},
	{"an escape at the end", "a\x1b", "a"},
	{"an endless sequence", "a\x1b[" + strings.Repeat("1;", 1000) + "mb", "ab"},
	{"an escape in a sequence", "a\x1b[1\x1b[31mb", "a\x1b[31mb"},
	{"an escape in a string", "a\x1b]0;\x1b[31mx\x07b", "ab"},
	{"twice escape", "a\x1b\x1b[2Jb", "ab"},
	{"a wide character in a sequence", "a\x1b[1é;31mb", "ab"},
}

// Rule S21.
func TestATerminalGetsTextAndColoursOnly(t *testing.T) {
	for _, c := range evil {
		for piece := 1; piece <= len(c.text); piece++ { // however it is cut
			var out bytes.Buffer
			w := Safe(&out)
			for at := 0; at < len(c.text); at += piece {
				if n, err := w.Write([]byte(c.text[at:min(at+piece, len(c.text))])); err != nil || n == 0 {
					t.Fatal(n, err)
				}
			}
			if out.String() != c.want {
				t.Errorf("%s in pieces of %d: %q, want %q", c.name, piece, out.String(), c.want)
			}
		}
	}
}

func TestWhoWantsNoColoursGetsNone(t *testing.T) {
	for _, c := range evil {
		var out bytes.Buffer
		w := Colourless(&out)
		_, _ = w.Write([]byte(c.text))
		_ = w.Close()
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: %q", c.name, out.String())
		}
	}
}

func TestColoursEndWithTheOutput(t *testing.T) {
	var out bytes.Buffer
	w := Safe(&out)
	_, _ = w.Write([]byte("\x1b[31mred"))
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "\x1b[31mred\x1b[0m" {
		t.Errorf("%q", out.String())
	}
}

func TestTextOfOthersIsOneSafeLine(t *testing.T) {
	for _, c := range evil {
		got := Cell(c.text)
		if strings.ContainsAny(got, "\x1b\n\r\x07\x08\u009b") || !utf8.ValidString(got) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, c := range evil {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		w := Safe(&out)
		_, _ = w.Write(text)
		_ = w.Close()
		rest := out.String()
		for {
			i := strings.IndexByte(rest, 0x1b)
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			end := strings.TrimLeft(rest, "[0123456789;:")
			if !strings.HasPrefix(rest, "[") || !strings.HasPrefix(end, "m") {
				t.Fatalf("%q became %q", text, out.String())
			}
		}
	})
}
