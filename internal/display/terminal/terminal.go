// Package terminal shows lines that stay and, below them, a few that are drawn anew: the lines scroll up into what the terminal
// remembers, and the block stands at the bottom until it is closed.
//
//	Print ──lines──▶ Run ── one Write: the block is erased, the lines come, the block comes again
//	Redraw ─dirty──▶  │
//	        clock ────┘      at most once in minPause
//
// Nothing of the terminal is taken over: its modes, its keys and its other screen stay alone, so a program that is killed
// leaves nothing to repair. The block is never higher than what is drawn for it and none of its lines may wrap, so that it can be
// erased; what is echoed of keys in between may stay behind as it is.
//
// The lines that it is given must be safe for a terminal (package display); it looks into none of them.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/display"
)

// Bounds.
const (
	minPause   = 40 * time.Millisecond // between two drawings
	clock      = time.Second           // between two drawings where nothing happens but time
	maxPending = 256 << 10             // bytes of lines that wait for a drawing; who prints more waits
)

// Config is what a Terminal needs.
type Config struct {
	Out io.Writer
	// Size returns how wide and how high the terminal is now.
	Size func() (width, height int)
	// Block draws what stands at the bottom. It is called by Run.
	Block func(width, height int, now time.Time) []string
	// Resized may be nil. What comes from it makes the block be drawn anew.
	Resized <-chan struct{}
	// Resumed may be nil. What comes from it says that others have written to the terminal: the block is not there any more.
	Resumed <-chan struct{}
}

// A Terminal is one terminal under way. Its methods may be called from several goroutines, besides Run.
type Terminal struct {
	cfg     Config
	lines   chan string
	dirty   chan struct{}
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once

	// of Run
	pending strings.Builder
	drawn   []string // the block that stands there
	width   int      // when it was drawn
	err     error    // of the first Write that failed; read when ended is closed
}

// New returns a terminal, for which Run must be called.
func New(cfg Config) *Terminal {
	return &Terminal{
		cfg: cfg, lines: make(chan string), dirty: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
	}
}

// ErrClosed means that a terminal shows nothing any more.
var ErrClosed = errors.New("the terminal is closed")

// Print shows a line above the block. It waits where the terminal is slow. After Close it returns ErrClosed.
func (t *Terminal) Print(line string) error {
	select {
	case t.lines <- line:
		return nil
	case <-t.ended:
		return errors.Join(ErrClosed, t.err)
	}
}

// Redraw says that the block has changed. It never waits.
func (t *Terminal) Redraw() {
	select {
	case t.dirty <- struct{}{}:
	default:
	}
}

// Close takes the block away, and returns once Run has ended. The error is that of the first write that failed.
func (t *Terminal) Close() error {
	t.once.Do(func() { close(t.closing) })
	<-t.ended
	return t.err
}

// Run draws until Close. Where the terminal is gone it goes on taking lines, so that nobody waits for it.
func (t *Terminal) Run() {
	defer close(t.ended)
	tick := time.NewTicker(clock)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	due, resting := true, true // something is to be drawn; something was drawn just now
	for {
		lines := t.lines
		if t.pending.Len() > maxPending {
			lines = nil
		}
		select {
		case line := <-lines:
			t.pending.WriteString(line)
			t.pending.WriteByte('\n')
			due = true
		case <-t.dirty:
			due = true
		case <-tick.C:
			due = true
		case <-t.cfg.Resized:
			due = true
		case <-t.cfg.Resumed:
			t.drawn, due = nil, true
		case <-pause.C:
			resting = false
		case <-t.closing:
			t.drain()
			t.draw(nil)
			return
		}
		if due && !resting {
			width, height := t.cfg.Size()
			t.resize(width)
			t.draw(t.cfg.Block(width, height, time.Now()))
			due, resting = false, true
			pause.Reset(minPause)
		}
	}
}

// drain takes the lines of those who wait.
func (t *Terminal) drain() {
	for {
		select {
		case line := <-t.lines:
			t.pending.WriteString(line)
			t.pending.WriteByte('\n')
		default:
			return
		}
	}
}

// resize makes up for what the terminal has done to the block: most wrap lines that have become too long, so that it is higher
// than it was. (One that cuts them instead shows fewer of the lines above for it; they are in its memory.)
func (t *Terminal) resize(width int) {
	if width < 1 || t.width <= width {
		t.width = width
		return
	}
	t.width = width
	var rows []string
	for _, line := range t.drawn {
		for range max(1, (display.Width(line)+width-1)/width) {
			rows = append(rows, "")
		}
	}
	t.drawn = rows
}

// Sequences for the terminal.
const (
	eraseBelow = "\x1b[J"
	wrapOff    = "\x1b[?7l"
	wrapOn     = "\x1b[?7h"
)

// draw writes the lines that wait and a block, instead of the one that stands there.
func (t *Terminal) draw(block []string) {
	if t.pending.Len() == 0 && same(block, t.drawn) {
		return
	}
	var out strings.Builder
	if n := len(t.drawn); n > 0 {
		out.WriteByte('\r')
		if n > 1 {
			fmt.Fprintf(&out, "\x1b[%dA", n-1)
		}
		out.WriteString(eraseBelow)
	}
	out.WriteString(t.pending.String())
	if len(block) > 0 {
		out.WriteString(wrapOff + strings.Join(block, "\n") + wrapOn)
	}
	t.pending.Reset()
	t.drawn = block
	if t.err != nil {
		return // it is gone
	}
	if _, err := io.WriteString(t.cfg.Out, out.String()); err != nil {
		t.err = err
	}
}

func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
