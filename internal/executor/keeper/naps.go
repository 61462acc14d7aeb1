package keeper

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Naps is an alarm that looks at the clock at least every clock.MaxNap.
type Naps struct {
	timer *time.Timer
	c     chan struct{}
}

// NewNaps returns one that is set to nothing in particular. Stop ends it.
func NewNaps() *Naps {
	n := &Naps{c: make(chan struct{}, 1)}
	n.timer = time.AfterFunc(clock.MaxNap, n.call)
	return n
}

func (n *Naps) call() {
	select {
	case n.c <- struct{}{}:
	default:
	}
}

// Set has it ring at an instant, or before.
func (n *Naps) Set(at forge.Instant) { n.timer.Reset(clock.Nap(at)) }

// Ring says when to look at the clock.
func (n *Naps) Ring() <-chan struct{} { return n.c }

// Stop ends it.
func (n *Naps) Stop() { n.timer.Stop() }

var _ Alarm = (*Naps)(nil)
