package terminal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
	"github.com/forgeyard/forgeyard/internal/display/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A desk is a terminal with a person before it.
type desk struct {
	*terminal.Terminal
	screen           *emulator.Emulator
	resized, resumed chan struct{}

	mu            sync.Mutex
	width, height int
	block         []string
}

func newDesk(width, height int, block ...string) *desk {
	d := &desk{
		screen: emulator.New(width, height), width: width, height: height, block: block,
		resized: make(chan struct{}, 1), resumed: make(chan struct{}, 1),
	}
	d.Terminal = terminal.New(terminal.Config{
		Out:  d.screen,
		Size: func() (int, int) { d.mu.Lock(); defer d.mu.Unlock(); return d.width, d.height },
		Block: func(width, _ int, _ time.Time) (lines []string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, line := range d.block {
				lines = append(lines, line[:min(len(line), width)])
			}
			return lines
		},
		Resized: d.resized, Resumed: d.resumed,
	})
	go d.Run()
	return d
}

func (d *desk) set(block ...string) {
	d.mu.Lock()
	d.block = block
	d.mu.Unlock()
	d.Redraw()
}

// sees waits until everything is drawn, and compares what is on the screen.
func (d *desk) sees(t *testing.T, want ...string) {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // of the test's own clock
	synctest.Wait()
	if diff := cmp.Diff(want, d.screen.Screen()); diff != "" {
		t.Error(diff)
	}
	if len(d.screen.Wrong()) > 0 {
		t.Errorf("the terminal got %q", d.screen.Wrong())
	}
}

func TestLinesStayAndTheBlockIsBelowThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(40, 6, "job a", "job b")
		d.sees(t, "job a", "job b")
		_ = d.Print("one")
		d.sees(t, "one", "job a", "job b")
		d.set("job a done")
		d.sees(t, "one", "job a done")
		_ = d.Print(strings.Repeat("long ", 10) + "end")
		d.set("job a", "job b", "job c")
		d.sees(t, "one", strings.TrimRight(strings.Repeat("long ", 8), " "), "long long end", "job a", "job b", "job c")
		for i := range 30 {
			_ = d.Print(fmt.Sprint("line ", i))
		}
		d.sees(t, "line 27", "line 28", "line 29", "job a", "job b", "job c")
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		want := []string{"one", strings.Repeat("long ", 10) + "end"}
		for i := range 30 {
			want = append(want, fmt.Sprint("line ", i))
		}
		if diff := cmp.Diff(want, d.screen.All()); diff != "" {
			t.Errorf("what stays: %s", diff)
		}
		if !d.screen.Wraps() {
			t.Error("lines of who comes next do not wrap")
		}
		if err := d.Print("more"); !errors.Is(err, terminal.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestTheBlockIsDrawnAnewForAnotherSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(40, 10, "a line that takes nearly forty columns", "short")
		_ = d.Print("one")
		d.sees(t, "one", "a line that takes nearly forty columns", "short")
		d.mu.Lock()
		d.width = 20
		d.screen.Resize(20, 10) // which has made two rows of the first
		d.mu.Unlock()
		d.resized <- struct{}{}
		d.sees(t, "one", "a line that takes ne", "short")
		d.mu.Lock()
		d.width = 60
		d.screen.Resize(60, 4)
		d.mu.Unlock()
		d.resized <- struct{}{}
		d.sees(t, "one", "a line that takes nearly forty columns", "short")
		_ = d.Close()
		if diff := cmp.Diff([]string{"one"}, d.screen.All()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAfterAStopNothingOfOthersIsErased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(40, 10, "job a", "job b")
		d.sees(t, "job a", "job b")
		_, _ = d.screen.Write([]byte("\n[1]+ Stopped\n$ fg\n"))
		d.resumed <- struct{}{}
		d.sees(t, "job a", "job b", "[1]+ Stopped", "$ fg", "job a", "job b")
		_ = d.Close()
	})
}

// A terminal that is slow makes those wait who print, and loses nothing.
func TestASlowTerminalLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := emulator.New(80, 24)
		slow := writes(func(p []byte) (int, error) {
			time.Sleep(time.Second)
			return screen.Write(p)
		})
		d := terminal.New(terminal.Config{
			Out: slow, Size: func() (int, int) { return 80, 24 }, Block: func(int, int, time.Time) []string { return []string{"job"} },
		})
		go d.Run()
		var want []string
		var printing sync.WaitGroup
		for i := range 4 {
			for k := range 3000 {
				want = append(want, fmt.Sprintf("%d %04d %s", i, k, strings.Repeat("x", 60)))
			}
			printing.Go(func() {
				for k := range 3000 {
					_ = d.Print(fmt.Sprintf("%d %04d %s", i, k, strings.Repeat("x", 60)))
				}
			})
		}
		printing.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		got := screen.All()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d lines of %d", len(got), len(want))
		}
	})
}

func TestATerminalThatIsGoneKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		d := terminal.New(terminal.Config{
			Out:  writes(func([]byte) (int, error) { return 0, gone }),
			Size: func() (int, int) { return 80, 24 }, Block: func(int, int, time.Time) []string { return []string{"job"} },
		})
		go d.Run()
		for range 20_000 {
			if err := d.Print("a line that nobody sees"); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := d.Close(); !errors.Is(err, gone) {
				t.Error(err)
			}
		}
	})
}

// writes is a writer.
type writes func(p []byte) (int, error)

func (w writes) Write(p []byte) (int, error) { return w(p) }

// What is drawn in a second is bounded however much happens.
func TestItIsDrawnAFewTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count int
		d := terminal.New(terminal.Config{
			Out:  writes(func(p []byte) (int, error) { count++; return len(p), nil }),
			Size: func() (int, int) { return 80, 24 }, Block: func(_, _ int, now time.Time) []string { return []string{now.String()} },
		})
		go d.Run()
		for range 10_000 {
			time.Sleep(time.Millisecond)
			_ = d.Print("line")
			d.Redraw()
		}
		_ = d.Close()
		if count > 10_000/40+2 || count < 100 {
			t.Errorf("drawn %d times in ten seconds", count)
		}
	})
}
