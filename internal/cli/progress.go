package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/display"
	"github.com/forgeyard/forgeyard/internal/display/terminal"
	"github.com/forgeyard/forgeyard/internal/snapshot"
)

// When the capture of a source is told of.
const (
	shownAfter = 500 * time.Millisecond // on a terminal, while it goes on
	toldAfter  = 3 * time.Second        // elsewhere, once it has ended
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
	_, closeScreen := a.openScreen(out, terminal.Config{Block: func(width, _ int, now time.Time) []string {
		if now.Sub(begun) < shownAfter {
			return nil
		}
		return a.styleOf(out).Line(progressLine(p, now.Sub(begun)), width)
	}})
	return p, func() { _ = closeScreen() } // a terminal that is gone shows no more
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
