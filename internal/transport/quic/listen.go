package quic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Listener is a transport.Listener. Its socket is open until the last connection that it accepted has ended.
type Listener struct {
	road *road
	quic *quic.Listener

	mu      sync.Mutex
	closed  bool
	swept   bool               // closed, and nothing new can come
	conns   map[*Conn]struct{} // accepted, not ended
	drained chan struct{}      // closed when swept is set and conns is empty
	done    chan struct{}      // closed when the socket is
	err     error              // of closing it; set before done is closed
}

// Listen listens on host:port. The tls.Config names the protocols and asks for client certificates, by itself or in
// GetConfigForClient.
func Listen(addr string, cfg *tls.Config, o Options) (*Listener, error) {
	o = o.withDefaults()
	conn := o.PacketConn
	if conn == nil {
		udp, err := net.ResolveUDPAddr("udp", addr)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
		if conn, err = net.ListenUDP("udp", udp); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	}
	l := &Listener{
		road: newRoad(conn, o.Log), conns: map[*Conn]struct{}{}, drained: make(chan struct{}), done: make(chan struct{}),
	}
	budget := newAdmission(o.Admission)
	l.road.VerifySourceAddress = budget.verify
	l.road.StatelessResetKey = (*quic.StatelessResetKey)(o.StatelessReset)
	l.road.TokenGeneratorKey = (*quic.TokenGeneratorKey)(o.Token)
	config := o.config()
	accepted := config.Clone()
	config.GetConfigForClient = func(info *quic.ClientInfo) (*quic.Config, error) { return accepted, budget.admit(info) }
	var err error
	if l.quic, err = l.road.Listen(withoutResumption(cfg), config); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", addr, err), l.road.shut())
	}
	return l, nil
}

// Accept implements transport.Listener. Only 32 connections wait for it; the next ones are refused.
func (l *Listener) Accept(ctx context.Context) (transport.Conn, error) {
	for {
		q, err := l.quic.Accept(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, fmt.Errorf("accept connection: %w", err) // it wraps net.ErrClosed after Close
		}
		c := newConn(q)
		if l.take(c) {
			return c, nil
		}
		c.Close(protocol.CloseCodeOf(forge.CloseShutdown))
	}
}

// take notes an accepted connection, unless the listener is closed.
func (l *Listener) take(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.conns[c] = struct{}{}
	context.AfterFunc(c.ctx, func() { l.release(c) })
	return true
}

func (l *Listener) release(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	l.drainedLocked()
}

func (l *Listener) drainedLocked() {
	if l.swept && len(l.conns) == 0 {
		close(l.drained)
	}
}

// Addr implements transport.Listener.
func (l *Listener) Addr() net.Addr { return l.quic.Addr() }

// Close implements transport.Listener. Handshakes that are on their way end, and connections that nobody has accepted are
// closed with SHUTDOWN. The socket follows once the connections that were accepted have ended.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	err := l.quic.Close()
	l.refuseWaiting()
	go func() { // ends with the last connection; Shutdown joins it
		<-l.drained
		l.err = l.road.shut()
		close(l.done)
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.swept = true
	l.drainedLocked()
	return err
}

// refuseWaiting closes what was in the queue when the listener closed.
func (l *Listener) refuseWaiting() {
	for {
		q, err := l.quic.Accept(context.Background())
		if err != nil {
			return
		}
		newConn(q).Close(protocol.CloseCodeOf(forge.CloseShutdown))
	}
}

// Shutdown closes the listener and waits until every connection that it accepted has ended and the socket is closed. Who
// owns the connections closes them, each with its reason; those that are left when ctx ends are closed with SHUTDOWN.
func (l *Listener) Shutdown(ctx context.Context) error {
	err := l.Close()
	select {
	case <-l.done:
	case <-ctx.Done():
		for _, c := range l.left() {
			c.Close(protocol.CloseCodeOf(forge.CloseShutdown))
		}
		<-l.done
	}
	return errors.Join(err, l.err)
}

func (l *Listener) left() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		left = append(left, c)
	}
	return left
}
