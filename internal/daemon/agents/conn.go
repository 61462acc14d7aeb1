package agents

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// rejectWithin is how long a peer has to take the reason for which it is not registered.
const rejectWithin = time.Second

// conn is one connection.
type conn struct {
	id        core.ConnID
	runner    forge.RunnerID
	transport forge.TransportSessionID
	link      *link.Link
	out       *outbox
	opened    time.Time
	slots     chan struct{}  // a token for each frame that is on its way through the core, and one for the reader
	gone      chan struct{}  // closed when the loop has forgotten the connection
	accepted  chan struct{}  // closed when no more streams are taken
	streams   sync.WaitGroup // those that were
	logs      atomic.Int32   // streams of logs
	objects   *remote.Connection

	*seat
	renewing atomic.Bool // a certificate is being made

	// Of the loop.
	held      int // frames that the core has and did not answer
	register  *forge.Register
	beat      *forge.Heartbeat
	heard     time.Time     // when the latest was answered
	snapshot  digest.Digest // of the capabilities that it has sent
	asked     digest.Digest // of those that it was asked for
	pending   reports
	reporting bool                  // some are being written down
	load      forge.ResourceSummary // that was written down last, and when
	loadAt    forge.Instant
	health    forge.HealthStatus // likewise
	healthAt  forge.Instant
	idle      chan struct{} // closed when held is zero; nil while nobody asks

	mu      sync.Mutex
	session forge.AgentSessionID // once it has asked to register
	probes  map[forge.MessageID]chan<- probed
}

func (c *conn) sessionID() forge.AgentSessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// talk negotiates and then carries a connection to its end.
func (s *Server) talk(place *seat, runner forge.RunnerID) {
	conn := place.conn
	began := s.boot()
	l, err := link.Answer(s.serving, conn, s.cfg.Link)
	if err != nil {
		var closed *transport.CloseError
		if errors.As(err, &closed) {
			s.cfg.Metrics.refused(closed.Reason)
		}
		var mismatch *protocol.Mismatch
		if errors.As(err, &mismatch) {
			s.post(func() { s.cfg.Control.Refused(runner, mismatch.Reason(), mismatch.Error()) })
		}
		s.cfg.Log.Info("no link with an agent", telemetry.KeyPeer, addr(conn.Peer()), telemetry.KeyRunner, runner.String(), telemetry.KeyError, err)
		return
	}
	s.cfg.Metrics.handshake(s.boot().Sub(began))
	l.Bind(runner, forge.AgentSessionID{})
	c := newConn(l, place, runner)
	c.objects = s.objects.Connection(l)
	s.post(func() {
		s.last++
		c.id = s.last
		s.conns[c.id] = c
		s.stepFor(c, core.Opened{Conn: c.id, Runner: runner})
	})
	s.run(c)
	s.post(func() {
		delete(s.conns, c.id)
		s.outOfStep(c)
		s.stepFor(c, core.Closed{Conn: c.id})
		close(c.gone)
	})
	<-c.gone // the loop outlives every connection
}

func newConn(l *link.Link, place *seat, runner forge.RunnerID) *conn {
	return &conn{
		seat: place, runner: runner, transport: ident.New[forge.TransportSessionID](), link: l, out: newOutbox(), opened: clock.Wall(),
		slots: make(chan struct{}, MaxFrames+1), gone: make(chan struct{}), accepted: make(chan struct{}),
		probes: map[forge.MessageID]chan<- probed{},
	}
}

// run carries a connection to its end and joins all its goroutines.
func (s *Server) run(c *conn) {
	var tasks sync.WaitGroup
	tasks.Go(func() { s.write(c) })
	tasks.Go(func() { s.takeStreams(c); close(c.accepted) })
	s.read(c)
	if s.serving.Err() != nil {
		s.windDown(c)
	}
	<-c.link.Context().Done()
	c.link.Close(ended(c.link)) // which joins what the link has started
	tasks.Wait()
	c.streams.Wait()
	c.failProbes()
}

// ended returns why a link has ended.
func ended(l *link.Link) forge.CloseReason {
	var closed *transport.CloseError
	if errors.As(context.Cause(l.Context()), &closed) {
		return closed.Reason
	}
	return forge.CloseInternal
}

// read hands what comes on the control stream on, as fast as the core answers. It returns when the connection has ended, or
// is to be wound down.
func (s *Server) read(c *conn) {
	for {
		select {
		case c.slots <- struct{}{}:
		case <-s.serving.Done():
			return
		case <-c.link.Context().Done():
			return
		}
		m, err := c.link.Receive(s.serving)
		if err != nil {
			return
		}
		if m.Wire != nil {
			<-c.slots
			s.aside(c, m)
			continue
		}
		if !s.receive(c, m.Frame()) {
			return
		}
	}
}

// receive hands a frame to the core. It reports false for a registration that is not even looked at.
func (s *Server) receive(c *conn, f forge.Frame) bool {
	switch m := f.Body.(type) {
	case *forge.Register:
		if !s.prove(c) {
			return false
		}
		c.mu.Lock()
		c.session = m.Session
		c.mu.Unlock()
		c.link.Bind(c.runner, m.Session)
	case *forge.Error:
		c.probeRefused(f.Re)
	}
	s.post(func() {
		switch m := f.Body.(type) {
		case *forge.Register:
			c.register = m
		case *forge.Heartbeat:
			c.beat = m
		}
		c.held++
		s.stepFor(c, core.Received{Conn: c.id, Frame: f})
	})
	return true
}

// prove notes the use of the certificate of a connection that registers. It reports false, and the connection is closed,
// where the certificate is good no more.
func (s *Server) prove(c *conn) bool {
	_, err := s.cfg.Desk.Use(s.work, c.link.Peer().Certificate)
	if err == nil {
		return true
	}
	reason, _ := enroll.Refuse(err)
	s.cfg.Log.Warn("registration refused", telemetry.KeyRunner, c.runner.String(), telemetry.KeyReason, reason.String(), telemetry.KeyError, err)
	s.post(func() { s.drop(c, reason) })
	return false
}

// write sends what is in the outbox until the connection ends.
func (s *Server) write(c *conn) {
	defer c.out.close()
	ctx := c.link.Context()
	for {
		out, ok := c.out.pop()
		if !ok {
			select {
			case <-c.out.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		var err error
		if out.wire != nil {
			err = c.link.SendWire(ctx, out.frame.ID, out.frame.Re, out.wire)
		} else {
			err = c.link.Send(ctx, out.frame)
		}
		if err != nil {
			s.unsent(c, out, err)
			return
		}
	}
}

// unsent ends a connection on which something cannot be said.
func (s *Server) unsent(c *conn, out outgoing, err error) {
	var closed *transport.CloseError
	if errors.As(err, &closed) {
		return
	}
	s.cfg.Log.Error("a message cannot be sent", telemetry.KeyRunner, c.runner.String(), telemetry.KeyMessageID, out.frame.ID.String(),
		telemetry.KeyError, err)
	s.post(func() { s.drop(c, forge.CloseInternal) })
}

// drop ends a connection that the core still believes in. It is called by the loop, between two steps.
func (s *Server) drop(c *conn, reason forge.CloseReason) {
	s.shut(c, reason)
	s.stepFor(c, core.Closed{Conn: c.id})
}

// shut ends a connection for a reason and forgets it, once. It is called by the loop and does not wait. A peer that is not
// registered yet is told why before: a close may be lost.
func (s *Server) shut(c *conn, reason forge.CloseReason) {
	if s.conns[c.id] != c {
		return
	}
	delete(s.conns, c.id)
	s.outOfStep(c)
	s.cfg.Metrics.closed(reason, c.registered.Load())
	s.cfg.Log.Info("connection closed", telemetry.KeyRunner, c.runner.String(), telemetry.KeyPeer, addr(c.link.Peer()),
		telemetry.KeyReason, reason.String())
	s.place.Go(func() { // the connection is still counted, so nobody has waited for the last one yet
		if c.registered.Load() {
			c.link.Close(reason)
			return
		}
		ctx, cancel := context.WithTimeout(c.link.Context(), rejectWithin)
		defer cancel()
		rejected := forge.Frame{ID: newMessageID(), Body: &forge.RegistrationRejected{Reason: reason}}
		if err := c.link.Send(ctx, rejected); err != nil {
			c.link.Close(reason)
			return
		}
		c.link.Finish(reason)
	})
}

// windDown ends a connection of a server that stops: what the agent has asked is answered, then it is told to go.
func (s *Server) windDown(c *conn) {
	<-c.accepted
	c.streams.Wait() // they have seen that the server stops
	idle := make(chan struct{})
	s.call(func() {
		if c.registered.Load() && s.conns[c.id] == c {
			s.push(c, outgoing{frame: forge.Frame{ID: newMessageID(), Body: &forge.GoAway{Spread: s.cfg.Spread}}})
		}
		c.idle = idle
		s.settle(c)
	})
	for _, done := range []<-chan struct{}{idle, c.out.flushed()} {
		select {
		case <-done:
		case <-s.work.Done():
		case <-c.link.Context().Done():
		}
	}
	if s.work.Err() == nil {
		c.link.Finish(forge.CloseShutdown)
	}
	c.link.Close(forge.CloseShutdown)
}
