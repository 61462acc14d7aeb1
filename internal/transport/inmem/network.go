// Package inmem is the road without a network: connections between goroutines of one process with the meaning of
// transport, and with the same limits as QUIC. Windows bound what is unread, the peer bounds the streams, a stream is seen
// at its first byte, and a close throws away what was not read.
//
// It does no I/O and starts no goroutine, so it works inside testing/synctest. Nothing is lost, late or out of order
// here: transporttest has roads for that.
package inmem

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// backlog is how many connections may wait to be accepted, as many as with QUIC.
const backlog = 32

// Limits bound one connection. Zero values stand for those of QUIC.
type Limits struct {
	Streams      int // with two directions, that each end may have open at the other
	SendStreams  int // with one
	StreamWindow int // bytes of one direction of a stream that the reader has not read
	ConnWindow   int // bytes of all streams of one direction
}

func (l Limits) withDefaults() Limits {
	or := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	or(&l.Streams, 64)
	or(&l.SendStreams, 64)
	or(&l.StreamWindow, 64<<10) // as QUIC begins
	or(&l.ConnWindow, 4<<20)
	return l
}

// Network is where endpoints are found.
type Network struct {
	limits Limits

	mu        sync.Mutex
	listeners map[string]*Listener
}

// New returns a network on which every connection has the same limits.
func New(limits Limits) *Network {
	return &Network{limits: limits.withDefaults(), listeners: map[string]*Listener{}}
}

// Identity is what an end shows of itself.
type Identity struct {
	ALPN        []protocol.ALPN   // names that it knows; a dialler's first is its wish
	Certificate *x509.Certificate // nil: none
}

// Listen listens on an endpoint, any text that nobody else listens on.
func (n *Network) Listen(endpoint string, own Identity) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[endpoint] != nil {
		return nil, fmt.Errorf("listen on %s: somebody listens there already", endpoint)
	}
	l := &Listener{
		network: n, endpoint: endpoint, own: own, queue: make(chan *Conn, backlog), closed: make(chan struct{}),
	}
	n.listeners[endpoint] = l
	return l, nil
}

// Dialer returns a dialler with an identity.
func (n *Network) Dialer(own Identity) *Dialer { return &Dialer{network: n, own: own} }

// Dialer is a transport.Dialer.
type Dialer struct {
	network *Network
	own     Identity
}

// Dial implements transport.Dialer.
func (d *Dialer) Dial(ctx context.Context, endpoint string) (transport.Conn, error) {
	if ctx.Err() != nil {
		return nil, &transport.CloseError{Reason: forge.CloseLost, Err: context.Cause(ctx)}
	}
	d.network.mu.Lock()
	defer d.network.mu.Unlock()
	l := d.network.listeners[endpoint]
	if l == nil {
		return nil, &transport.CloseError{Reason: forge.CloseLost, Err: fmt.Errorf("nobody listens on %s", endpoint)}
	}
	i := slices.IndexFunc(d.own.ALPN, func(a protocol.ALPN) bool { return slices.Contains(l.own.ALPN, a) })
	if i < 0 {
		return nil, &transport.CloseError{Reason: forge.CloseVersionMismatch, Remote: true, Err: errALPN}
	}
	here, there := Pair(d.network.limits,
		transport.Peer{ALPN: d.own.ALPN[i], Certificate: l.own.Certificate, Addr: Addr(endpoint)},
		transport.Peer{ALPN: d.own.ALPN[i], Certificate: d.own.Certificate, Addr: Addr("dialler")})
	select {
	case l.queue <- there:
		return here, nil
	default:
		return nil, &transport.CloseError{Reason: forge.CloseOverloaded, Remote: true, Err: errBacklog}
	}
}

var (
	errALPN    = errors.New("the peer knows no such protocol")
	errBacklog = errors.New("too many connections wait to be accepted")
)

// Addr is an endpoint as an address.
type Addr string

// Network implements net.Addr.
func (Addr) Network() string  { return "inmem" }
func (a Addr) String() string { return string(a) }

// Listener is a transport.Listener.
type Listener struct {
	network  *Network
	endpoint string
	own      Identity
	queue    chan *Conn
	once     sync.Once
	closed   chan struct{}
}

// Accept implements transport.Listener.
func (l *Listener) Accept(ctx context.Context) (transport.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements transport.Listener.
func (l *Listener) Addr() net.Addr { return Addr(l.endpoint) }

// Close implements transport.Listener. Connections that nobody has accepted are closed with SHUTDOWN.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, l.endpoint)
		l.network.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.queue:
				c.Close(protocol.CloseCodeOf(forge.CloseShutdown))
			default:
				return
			}
		}
	})
	return nil
}
