package agents

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
)

// loop is the goroutine that owns the core and the fields of the Server that say so. It never waits for anything but the
// next event and the core's next tick.
func (s *Server) loop() {
	defer close(s.loopEnd)
	s.step(core.Tick{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !s.closing || s.running > 0 || len(s.waiting) > 0 {
		timer.Reset(clock.Nap(s.core.Wake()))
		select {
		case do := <-s.events:
			do()
		case <-timer.C:
			if s.boot() >= s.core.Wake() && !s.closing {
				s.step(core.Tick{})
			}
		}
	}
}

// step feeds one event to the core and carries out what it says.
func (s *Server) step(e core.Event) { s.stepFor(nil, e) }

// stepFor is step for an event of one connection, which may be nil. What the core has answered makes room for the
// connection's next frames.
func (s *Server) stepFor(c *conn, e core.Event) {
	s.origin = c
	for _, effect := range s.core.Step(s.boot(), e) {
		s.carryOut(effect)
	}
	s.origin = nil
	if c != nil {
		s.settle(c)
	}
}

// post hands something to do to the loop. It reports false where the loop has ended.
func (s *Server) post(do func()) bool {
	select {
	case s.events <- do:
		return true
	case <-s.loopEnd:
		return false
	}
}

// call runs a function in the loop and waits for its end. It reports false where the loop has ended. It must not be called
// from the loop.
func (s *Server) call(do func()) bool {
	done := make(chan struct{})
	if !s.post(func() { do(); close(done) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-s.loopEnd:
		return false
	}
}

// Place asks for a job to be offered to a runner. Whether that happens is decided by the core and the store; where it
// does not, the job is still ready. It may wait a moment for the loop.
func (s *Server) Place(p core.Place) {
	if s.served.Load() {
		s.post(func() {
			if s.serving.Err() == nil {
				s.step(p)
			}
		})
	}
}

// launch runs work that may wait, in a goroutine of its own, at most MaxWork at once and in order. What work returns goes
// to the core, if there is anything. It is called by the loop, which outlives the work.
func (s *Server) launch(work func() core.Event) {
	from := s.origin
	run := func() {
		s.running++
		go func() {
			e := work()
			s.post(func() {
				s.finished()
				if e != nil {
					s.stepFor(from, e)
				}
			})
		}()
	}
	if s.running < MaxWork {
		run()
		return
	}
	s.waiting = append(s.waiting, run)
	s.cfg.Metrics.waiting(len(s.waiting))
}

// finished makes room for the work that waits.
func (s *Server) finished() {
	s.running--
	if len(s.waiting) > 0 && s.running < MaxWork {
		next := s.waiting[0]
		s.waiting[0], s.waiting = nil, s.waiting[1:]
		next()
		s.cfg.Metrics.waiting(len(s.waiting))
	}
}

// settle gives a connection as many places for frames back as the core has answered. It is called by the loop.
func (s *Server) settle(c *conn) {
	for waiting := s.core.Waiting(c.id); c.held > waiting; c.held-- {
		<-c.slots
	}
	if c.held == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}
