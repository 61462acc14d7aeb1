package launch

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// maxFailures is how many sandboxes in a row may fail to be built ahead before that waits for the next order.
const maxFailures = 3

// refillPause is how long after an order the pool is filled again, so that building does not take the processor away
// from what was ordered.
const refillPause = 20 * time.Millisecond

// newCell begins to build a sandbox, or returns nil where there is no slot: those that are ending have them.
func (l *launcher) newCell(network forge.Network, shm forge.Bytes) *cell {
	slot, ok := l.slots.take()
	if !ok {
		return nil
	}
	l.serial++
	c := &cell{
		l: l, slot: slot, serial: l.serial, network: network, shm: shm, age: l.setups.age, setup: l.setups.of(network, shm),
		orders: make(chan *errand, 1), moved: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}
	l.cells[c] = struct{}{}
	go c.run()
	return c
}

// fits reports whether a cell that waits can be given to an order.
func (c *cell) fits(network forge.Network, shm forge.Bytes) bool {
	return c.errand == nil && !c.wasKilled() && c.age == c.l.setups.age && c.network == network && c.shm == shm
}

func (c *cell) wasKilled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// waiting returns a cell for an order, one that is ready before one that is being built.
func (l *launcher) waiting(network forge.Network, shm forge.Bytes) *cell {
	var found *cell
	for c := range l.cells {
		if c.fits(network, shm) && (found == nil || c.ready && !found.ready) {
			found = c
		}
	}
	return found
}

// refill keeps as many cells waiting as there are to be, and no others.
func (l *launcher) refill() {
	waiting := 0
	for c := range l.cells {
		switch {
		case c.errand != nil || c.wasKilled():
		case l.opened && (waiting == l.cfg.Pool || !c.fits(forge.NetworkNone, sandbox.DefaultShm)):
			c.kill()
		default:
			waiting++
		}
	}
	for waiting < l.cfg.Pool && l.opened && !l.ending && l.failures < maxFailures {
		if l.newCell(forge.NetworkNone, sandbox.DefaultShm) == nil {
			return // the end of another cell comes here again
		}
		waiting++
	}
}

// refillSoon fills the pool when what was just ordered has had its turn.
func (l *launcher) refillSoon() {
	if !l.filling {
		l.filling = true
		l.calm.Reset(refillPause)
	}
}

// renew builds the pool anew, for a view that has changed.
func (l *launcher) renew() {
	next, err := newSetups(&l.cfg)
	if err != nil {
		l.notice("the view stays as it was: %v", err)
		return
	}
	next.age = l.setups.age + 1
	l.setups = next
	l.failures = 0
	l.refill()
}

// readied is told that a cell waits for its order.
func (l *launcher) readied(c *cell, hidden bool) {
	c.ready = true
	l.failures = 0
	if !l.opened {
		l.opened = true
		l.report = l.levels(c, hidden)
		report := l.report
		l.out.put(sandbox.Answer{Ready: &report}, nil)
		l.refill()
	}
}
