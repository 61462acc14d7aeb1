package agents

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

var errServed = errors.New("agents: a Server serves once")

// Serve takes connections until ctx ends or the listener fails, then stops in order: no new connection, a GoAway to every
// agent, the end of what is under way, a close with SHUTDOWN. It closes the listener. It returns nil after an end of ctx.
// A Server serves once.
func (s *Server) Serve(ctx context.Context, listener transport.Listener) error {
	if !s.served.CompareAndSwap(false, true) {
		return errServed
	}
	go s.loop()
	err := s.accept(ctx, listener)
	closeErr := listener.Close()
	s.halt()
	late := time.AfterFunc(ShutdownWithin, s.stopWork) // takes back what still waits for the store, and cuts connections
	s.place.Wait()
	s.call(func() { s.closing = true })
	<-s.loopEnd
	late.Stop()
	s.stopWork()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, closeErr)
}

// accept hands connections on.
func (s *Server) accept(ctx context.Context, listener transport.Listener) error {
	for {
		conn, err := listener.Accept(ctx)
		if err != nil {
			return err
		}
		select {
		case s.places <- struct{}{}:
		default:
			conn.Close(protocol.CloseCodeOf(forge.CloseOverloaded))
			continue
		}
		s.place.Go(func() {
			defer func() { <-s.places }()
			s.serve(conn)
		})
	}
}

// serve carries one connection from its handshake to its end.
func (s *Server) serve(conn transport.Conn) {
	peer := conn.Peer()
	if peer.ALPN == protocol.ALPNEnroll {
		s.enroll(conn)
		return
	}
	refuse := func(reason forge.CloseReason, why error) {
		s.cfg.Log.Warn("connection refused", telemetry.KeyPeer, addr(peer), telemetry.KeyReason, reason.String(), telemetry.KeyError, why)
		s.cfg.Metrics.refused(reason)
		conn.Close(protocol.CloseCodeOf(reason))
	}
	if peer.Certificate == nil {
		refuse(forge.CloseAuthFailed, errNoCertificate)
		return
	}
	runner, err := trust.RunnerOf(peer.Certificate, s.cfg.Cluster)
	if err != nil {
		refuse(forge.CloseAuthFailed, err)
		return
	}
	place := &seat{conn: conn}
	if !s.enter(runner, place) {
		refuse(forge.CloseOverloaded, errCrowd)
		return
	}
	defer s.leave(runner, place)
	s.cfg.Metrics.conns(1)
	defer s.cfg.Metrics.conns(-1)
	s.talk(place, runner)
}

var (
	errNoCertificate = errors.New("the peer has shown no certificate")
	errCrowd         = errors.New("the runner has too many connections")
)

func (s *Server) enroll(conn transport.Conn) {
	if s.cfg.Counter == nil {
		conn.Close(protocol.CloseCodeOf(forge.CloseUnsupported))
		return
	}
	s.cfg.Counter.Serve(s.serving, conn)
}

// seat is the place that a connection takes among those of its runner.
type seat struct {
	conn       transport.Conn
	registered atomic.Bool // RegistrationAccepted is on its way
}

// enter takes a place, that of the oldest connection which has not registered where there is no other. A clone of a runner
// cannot drive the runner out with it, nor keep it out. It reports false where there is none.
func (s *Server) enter(runner forge.RunnerID, place *seat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seats := s.seats[runner]
	if len(seats) >= MaxConnsPerRunner {
		i := slices.IndexFunc(seats, func(other *seat) bool { return !other.registered.Load() })
		if i < 0 {
			return false
		}
		seats[i].conn.Close(protocol.CloseCodeOf(forge.CloseOverloaded)) // which waits for nothing
		seats = slices.Delete(seats, i, i+1)
	}
	s.seats[runner] = append(seats, place)
	return true
}

func (s *Server) leave(runner forge.RunnerID, place *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(s.seats[runner], func(other *seat) bool { return other == place })
	if s.seats[runner] = rest; len(rest) == 0 {
		delete(s.seats, runner)
	}
}

// addr is an address for a log; a road without one has none.
func addr(p transport.Peer) string {
	if p.Addr == nil {
		return ""
	}
	return p.Addr.String()
}
