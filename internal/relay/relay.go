// Package relay passes datagrams between clients and one server and treats them as a bad network would: it loses, doubles,
// delays and reorders them, holds them to a rate, drops those that are too long, and cuts either direction. It stands
// between real processes, which take it for the network.
//
// What happens to a datagram follows from the seed, the client's number, the direction and the datagram's number in that
// direction, and from nothing else: the same traffic meets the same fate. When it happens is up to the machine.
//
// Each client gets a socket of its own towards the server, as behind a NAT, so the server can tell them apart; Rebind
// gives all of them new ones. The relay reads no datagram's content and changes none.
//
// Run owns all goroutines: one that reads from clients, one for each client that reads from the server, one that sends
// what was delayed. Clients, and datagrams under way, are bounded; what is too much is dropped, as a network does.
package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Bounds.
const (
	MaxClients   = 1024    // at a time; the one that was silent for longest makes room
	MaxQueued    = 16384   // datagrams that wait for their time, in all
	maxDatagram  = 65535   // bytes
	socketBuffer = 4 << 20 // bytes asked of the system, which may give less
)

// A Direction is the way of a datagram.
type Direction uint8

// The directions.
const (
	Up   Direction = 0 // from a client to the server
	Down Direction = 1 // from the server to a client
)

// String names the direction.
func (d Direction) String() string {
	if d == Up {
		return "up"
	}
	return "down"
}

// Config is what a relay is made of.
type Config struct {
	Listen   string // host:port for clients; port 0 takes a free one
	To       string // host:port of the server
	Seed     uint64
	Settings Settings
	Cuts     []Cut // relative to the start of Run

	changed chan<- struct{} // for tests, with room for one: a figure or a cut is another one. Nil: nobody wants to know
}

// A Relay is open from Open to the end of Run. Its methods may be called by many goroutines.
type Relay struct {
	cfg    Config
	front  *net.UDPConn
	server *net.UDPAddr
	wake   chan struct{} // with room for one: the queue has a new first
	joined sync.WaitGroup

	mu       sync.Mutex
	settings Settings
	cut      [2]bool
	clients  map[netip.AddrPort]*client
	made     uint64 // clients, so far
	queue    queue
	free     [2]time.Time // when the rate lets the next datagram go
	stats    Stats
	closed   bool
}

// A client is one address that sends to the relay.
type client struct {
	number uint64
	addr   netip.AddrPort
	back   *net.UDPConn // towards the server
	seen   time.Time
	count  [2]uint64 // datagrams so far
}

// Open takes the port for clients. Run must be called after it, and closes it.
func Open(cfg Config) (*Relay, error) {
	if err := cfg.Settings.Validate(); err != nil {
		return nil, err
	}
	server, err := net.ResolveUDPAddr("udp", cfg.To)
	if err != nil {
		return nil, fmt.Errorf("relay: server: %w", err)
	}
	listen, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("relay: listen: %w", err)
	}
	front, err := net.ListenUDP("udp", listen)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	enlarge(front)
	return &Relay{
		cfg: cfg, front: front, server: server, wake: make(chan struct{}, 1), settings: cfg.Settings,
		clients: map[netip.AddrPort]*client{},
	}, nil
}

// enlarge asks for larger buffers, so that bursts are lost on purpose only. A system may say no.
func enlarge(c *net.UDPConn) {
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
}

// Addr is where clients send to.
func (r *Relay) Addr() string { return r.front.LocalAddr().String() }

// Run passes datagrams on until ctx ends. It returns nil then, when all its goroutines have ended.
func (r *Relay) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.joined.Go(func() { r.sendQueued(ctx) })
	r.joined.Go(func() { r.schedule(ctx) })
	stop := context.AfterFunc(ctx, func() { _ = r.front.Close() })
	err := r.readClients()
	stop()
	cancel()
	r.close()
	r.joined.Wait()
	return err
}

// readClients reads what clients send until the socket is closed.
func (r *Relay) readClients() error {
	buffer := make([]byte, maxDatagram)
	for {
		n, from, err := r.front.ReadFromUDPAddrPort(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			continue // what the system heard of an earlier datagram, for instance that a port is closed
		}
		c, err := r.client(from)
		if err != nil {
			return err
		}
		if c != nil {
			r.pass(c, Up, buffer[:n])
		}
	}
}

// readServer reads what the server sends to one client until the client's socket is closed.
func (r *Relay) readServer(c *client, back *net.UDPConn) {
	buffer := make([]byte, maxDatagram)
	for {
		n, err := back.Read(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // as above: the server's port may be closed for a while
		}
		r.pass(c, Down, buffer[:n])
	}
}

// client returns the client of an address, a new one if need be, and nil once the relay is closed.
func (r *Relay) client(from netip.AddrPort) (*client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil
	}
	if c := r.clients[from]; c != nil {
		c.seen = time.Now()
		return c, nil
	}
	if len(r.clients) == MaxClients {
		r.evictLocked()
	}
	c := &client{number: r.made, addr: from, seen: time.Now()}
	if err := r.bindLocked(c); err != nil {
		return nil, err
	}
	r.made++
	r.clients[from] = c
	return c, nil
}

// bindLocked gives a client a socket towards the server.
func (r *Relay) bindLocked(c *client) error {
	back, err := net.DialUDP("udp", nil, r.server)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	enlarge(back)
	c.back = back
	r.joined.Go(func() { r.readServer(c, back) })
	return nil
}

// evictLocked forgets the client that was silent for longest.
func (r *Relay) evictLocked() {
	var oldest *client
	for _, c := range r.clients {
		if oldest == nil || c.seen.Before(oldest.seen) {
			oldest = c
		}
	}
	delete(r.clients, oldest.addr)
	_ = oldest.back.Close() // its reader ends
}

// Rebind gives every client a new socket towards the server, as a NAT does that forgot them: the server sees their
// datagrams come from new addresses.
func (r *Relay) Rebind() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	for _, c := range r.clients {
		old := c.back
		if err := r.bindLocked(c); err != nil {
			return err
		}
		_ = old.Close() // its reader ends
	}
	return nil
}

func (r *Relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	_ = r.front.Close()
	for _, c := range r.clients {
		_ = c.back.Close()
	}
}
