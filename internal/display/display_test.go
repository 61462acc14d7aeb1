package display

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var begun = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }

// four is a run under way.
func four() *Run {
	return &Run{Begun: begun, Hint: "Ctrl-C cancels", Jobs: []Job{
		{Title: "lint", State: Succeeded, Begun: at(0), Ended: at(3.25)},
		{Title: "test (1.25)", State: Running, Begun: at(4), Step: "2/3 unit", Said: "ok 17/40"},
		{Title: "test (1.26)", State: Failed, Begun: at(4), Ended: at(70), Why: "it ended with exit code 3, in step 1"},
		{Title: "release", State: Waiting, Why: "needs test"},
	}}
}

func block(t *testing.T, s Style, r *Run, width, height int, want string) {
	t.Helper()
	got := s.Block(r, width, height, at(90))
	for _, line := range got {
		if Width(line) > width-margin {
			t.Errorf("%q is too wide for %d", line, width)
		}
	}
	if len(got) > height/2 {
		t.Errorf("%d lines of a terminal of %d", len(got), height)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.Join(got, "\n")+"\n"); diff != "" {
		t.Errorf("%dx%d: %s", width, height, diff)
	}
}

func TestABlockShowsEachJobWithItsTime(t *testing.T) {
	block(t, Style{}, four(), 80, 24, `
✓ lint          3.2s
● test (1.25)  1m26s  2/3 unit: ok 17/40
✗ test (1.26)  1m06s  it ended with exit code 3, in step 1
○ release             needs test
4 jobs: 1 failed, 1 running, 1 waiting, 1 succeeded · 1m30s · Ctrl-C cancels
`)
	block(t, Style{ASCII: true}, four(), 40, 24, `
+ lint          3.2s
* test (1.25)  1m26s  2/3 unit: ok 1~
x test (1.26)  1m06s  it ended with ~
. release             needs test
4 jobs: 1 failed, 1 running, 1 waiti~
`)
}

func TestWhereThereIsLittleRoomWhatMattersIsShown(t *testing.T) {
	block(t, Style{}, four(), 80, 8, `
● test (1.25)  1m26s  2/3 unit: ok 17/40
✗ test (1.26)  1m06s  it ended with exit code 3, in step 1
… 2 more: 1 waiting, 1 succeeded
4 jobs: 1 failed, 1 running, 1 waiting, 1 succeeded · 1m30s · Ctrl-C cancels
`)
	block(t, Style{}, four(), 80, 4, "4 jobs: 1 failed, 1 running, 1 waiting, 1 succeeded · 1m30s · Ctrl-C cancels\n")
	block(t, Style{}, four(), 16, 24, "4 jobs: 1 fa…\n")
	for _, size := range [][2]int{{12, 24}, {80, 1}, {0, 0}} {
		if got := (Style{}).Block(four(), size[0], size[1], at(90)); got != nil {
			t.Errorf("%v: %q", size, got)
		}
	}
}

func TestManyLegsAreCounted(t *testing.T) {
	r := &Run{Begun: begun}
	for i := range 256 {
		j := Job{Title: fmt.Sprintf("test (leg %d)", i), State: Waiting, Why: "needs lint"}
		switch {
		case i < 100:
			j = Job{Title: j.Title, State: Succeeded, Begun: at(0), Ended: at(9)}
		case i == 101 || i == 200:
			j.State, j.Begun, j.Why = Running, at(60), ""
		case i == 150:
			j.State, j.Why = Failed, "exit code 1"
		}
		r.Jobs = append(r.Jobs, j)
	}
	block(t, Style{}, r, 60, 12, `
○ test (leg 100)         needs lint
● test (leg 101)    30s
✗ test (leg 150)         exit code 1
● test (leg 200)    30s
… 252 more: 152 waiting, 100 succeeded
256 jobs: 1 failed, 2 running, 153 waiting, 100 succeede…
`)
}

func TestASingleJobShowsItsLineUnderWay(t *testing.T) {
	r := &Run{Begun: begun, Hint: "Ctrl-C cancels", Jobs: []Job{{State: Running, Begun: at(80), Step: "make test", Said: "compiling 3%"}}}
	block(t, Style{}, r, 80, 24, "compiling 3%\n● 10s · make test · Ctrl-C cancels\n")
	block(t, Style{}, r, 30, 3, "● 10s · make test · Ctrl-C…\n")
	r.Jobs[0] = Job{Title: "a", State: Ready, Why: "no runner has the label gpu"}
	block(t, Style{}, r, 80, 24, "○ a · no runner has the label gpu · Ctrl-C cancels\n")
}

func TestWideCharactersTakeTwoColumns(t *testing.T) {
	for text, want := range map[string]int{"abc": 3, "日本": 4, "e\u0301": 1, "\x1b[1;31mred\x1b[0m": 3, "✓ ok": 4, "👍": 2} {
		if got := Width(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
	if got := (Style{}).cut("日本語テスト", 6); got != "日本…" {
		t.Errorf("%q", got)
	}
}

func TestColoursAreForTerminalsAndWhoForcesThem(t *testing.T) {
	for _, c := range []struct {
		env      string
		terminal bool
		want     Style
	}{
		{"", true, Style{Colour: true}},
		{"", false, Style{}},
		{"NO_COLOR=1", true, Style{}},
		{"NO_COLOR=1 CLICOLOR_FORCE=1", true, Style{}},
		{"CLICOLOR_FORCE=1", false, Style{Colour: true}},
		{"CLICOLOR_FORCE=0", false, Style{}},
		{"CLICOLOR=0", true, Style{}},
		{"TERM=dumb", true, Style{}},
		{"TERM=linux", true, Style{Colour: true, ASCII: true}},
		{"LANG=C", true, Style{Colour: true, ASCII: true}},
		{"LC_ALL=C LANG=de_DE.UTF-8", true, Style{Colour: true, ASCII: true}},
		{"LANG=de_DE.utf8", true, Style{Colour: true}},
	} {
		env := map[string]string{}
		for _, word := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(word, "=")
			env[name] = value
		}
		if got := StyleOf(func(name string) string { return env[name] }, c.terminal); got != c.want {
			t.Errorf("%q, terminal %t: %+v, want %+v", c.env, c.terminal, got, c.want)
		}
	}
}

func TestTimesAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 1249 * time.Millisecond: "1.2s", 9999 * time.Millisecond: "9.9s", 12 * time.Second: "12s", 59999 * time.Millisecond: "59s",
		125 * time.Second: "2m05s", 3*time.Hour + 90*time.Second: "3h01m",
	} {
		if got := Took(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
