package emulator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

func TestAPersonSeesWhatWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want []string
	}{
		"lines":                 {"one\ntwo", []string{"one", "two"}},
		"a return":              {"one\rtwo", []string{"two"}},
		"a line that wraps":     {"0123456789abc", []string{"0123456789", "abc"}},
		"a full line":           {"0123456789\nabc", []string{"0123456789", "abc"}},
		"a line that is cut":    {"\x1b[?7l0123456789abc\x1b[?7h", []string{"012345678c"}},
		"a move up":             {"one\ntwo\x1b[1A\rX", []string{"Xne", "two"}},
		"erasing below":         {"one\ntwo\nthree\x1b[2A\r\x1b[J", []string{}},
		"scrolling":             {"1\n2\n3\n4\n5\n6", []string{"3", "4", "5", "6"}},
		"no move above the top": {"1\n2\n3\n4\n5\x1b[9A\rX", []string{"X", "3", "4", "5"}},
		"wide characters":       {"日本語テスト", []string{"日本語テス", "ト"}},
		"a tab":                 {"a\tb", []string{"a       b"}},
	} {
		e := emulator.New(10, 4)
		for _, b := range []byte(c.sent) {
			_, _ = e.Write([]byte{b})
		}
		if diff := cmp.Diff(c.want, e.Screen()); diff != "" || len(e.Wrong()) > 0 {
			t.Errorf("%s: %s %q", name, diff, e.Wrong())
		}
	}
}

func TestWhatShouldNotBeSentIsNoticed(t *testing.T) {
	for _, sent := range []string{"\x1b]0;x\x07", "\x1b[2J", "\x1b[H", "\x1b[?1049h", "\x1b[?25l", "\x1bc", "\x07", "\u202e", "\u009b2A", "\x1b[>4;2m", "\x1b(0", "\x08"} {
		e := emulator.New(10, 4)
		if _, _ = e.Write([]byte(sent)); len(e.Wrong()) == 0 {
			t.Errorf("%q passed", sent)
		}
	}
}

func TestLinesWrapAnewInAnotherSize(t *testing.T) {
	e := emulator.New(10, 4)
	_, _ = e.Write([]byte("0123456789abcdef\nnext"))
	e.Resize(6, 4)
	if diff := cmp.Diff([]string{"012345", "6789ab", "cdef", "next"}, e.Screen()); diff != "" {
		t.Error(diff)
	}
	e.Resize(20, 2)
	if diff := cmp.Diff([]string{"0123456789abcdef", "next"}, e.Screen()); diff != "" {
		t.Error(diff)
	}
	_, _ = e.Write([]byte("!\x1b[1A\r\x1b[J"))
	if len(e.All()) > 0 {
		t.Errorf("%q", e.All())
	}
}
