package cli

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/display"
	"github.com/forgeyard/forgeyard/internal/display/terminal"
	"github.com/forgeyard/forgeyard/internal/snapshot"
)

// When a person who waits is told what for.
const (
	shownAfter = 500 * time.Millisecond // on a terminal, while it goes on
	toldAfter  = 3 * time.Second        // elsewhere, once a source was captured
)

// progress shows how far the capture of a source is, until done is called.
func (a *app) progress() (p *snapshot.Progress, done func()) {
	p = &snapshot.Progress{}
	begun := time.Now()
	var once sync.Once
	out, ok := a.live()
	if !ok {
		return p, func() {
			once.Do(func() {
				if took := time.Since(begun); took >= toldAfter && a.output != "json" {
					a.note("%s", progressLine(p, took))
				}
			})
		}
	}
	return p, a.show(out, func(took time.Duration) string { return progressLine(p, took) })
}

// starting says on a terminal that a daemon and an agent start in this process, until done is called.
func (a *app) starting() (done func()) {
	out, ok := a.live()
	if !ok {
		return func() {}
	}
	return a.show(out, func(took time.Duration) string {
		return "starting a daemon and an agent in this process (" + display.Took(took) + ")"
	})
}

// show shows a line of what takes long on a terminal, until done is called.
func (a *app) show(out *os.File, line func(took time.Duration) string) (done func()) {
	begun := time.Now()
	t, closeScreen := a.openScreen(out, terminal.Config{Block: func(width, _ int, now time.Time) []string {
		if took := now.Sub(begun); took >= shownAfter {
			return a.styleOf(out).Line(line(took), width)
		}
		return nil
	}})
	first := time.AfterFunc(shownAfter, t.Redraw) // the terminal's own clock is slower
	return func() {
		first.Stop()
		_ = closeScreen() // a terminal that is gone shows no more
	}
}

// progressLine says how far a capture is.
func progressLine(p *snapshot.Progress, took time.Duration) string {
	return fmt.Sprintf("source: %d files, %s read, %d new files of %s sent (%s)", p.Looked.Load(), soFar(p.Read.Load()), p.Sent.Load(),
		soFar(p.Bytes.Load()), display.Took(took))
}

// soFar writes bytes as people read them while they grow.
func soFar(n uint64) string {
	for _, unit := range []struct {
		bytes uint64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
