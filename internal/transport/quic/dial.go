package quic

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Bounds of a Dial.
const (
	// dialStagger is how long one address has to itself before the next one is tried beside it.
	dialStagger = 250 * time.Millisecond
	// maxAddresses is how many addresses of a name are tried.
	maxAddresses = 8
)

// Dialer is a transport.Dialer. It has one socket for IPv4 and one for IPv6, opened when they are needed.
type Dialer struct {
	tls *tls.Config
	o   Options

	mu     sync.Mutex
	closed bool
	v4, v6 *road
}

// NewDialer returns a dialler. The tls.Config names the protocols and shows the certificate of this end; without a
// ServerName, the host that is dialled is expected.
func NewDialer(cfg *tls.Config, o Options) *Dialer {
	return &Dialer{tls: withoutResumption(cfg), o: o.withDefaults()}
}

// Close closes the sockets. Connections that stand are dropped without a word: close them before. Idempotent.
func (d *Dialer) Close() error {
	d.mu.Lock()
	d.closed = true
	roads := []*road{d.v4, d.v6}
	d.v4, d.v6 = nil, nil
	d.mu.Unlock()
	var errs []error
	for i, r := range roads {
		if r != nil && (i == 0 || r != roads[0]) {
			errs = append(errs, r.shut())
		}
	}
	return errors.Join(errs...)
}

// Dial implements transport.Dialer. The error is a *transport.CloseError. The addresses of a name are tried one after
// another, each with a short lead, IPv6 and IPv4 by turns; the first that answers wins.
func (d *Dialer) Dial(ctx context.Context, endpoint string) (transport.Conn, error) {
	host, addrs, err := d.resolve(ctx, endpoint)
	if err != nil {
		return nil, &transport.CloseError{Reason: forge.CloseLost, Err: fmt.Errorf("dial %s: %w", endpoint, err)}
	}
	cfg := d.tls.Clone()
	cfg.ServerName = cmp.Or(cfg.ServerName, host)
	q, err := race(ctx, addrs, func(ctx context.Context, addr netip.AddrPort) (*quic.Conn, error) {
		return d.dial(ctx, addr, cfg)
	})
	if err != nil {
		closed := dialError(ctx, err)
		closed.Err = fmt.Errorf("dial %s: %w", endpoint, err)
		return nil, closed
	}
	return newConn(q), nil
}

// resolve returns the host of an endpoint and its addresses in the order in which they are tried.
func (d *Dialer) resolve(ctx context.Context, endpoint string) (string, []netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(endpoint)
	if err != nil {
		return "", nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return "", nil, fmt.Errorf("port %q is no number up to 65535", service)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return host, []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), uint16(port))}, nil
	}
	ips, err := d.o.Resolve(ctx, host)
	if err != nil {
		return "", nil, err
	}
	var addrs []netip.AddrPort
	for _, ip := range byTurns(ips) {
		addrs = append(addrs, netip.AddrPortFrom(ip, uint16(port)))
	}
	if len(addrs) == 0 {
		return "", nil, fmt.Errorf("%s has no address", host)
	}
	return host, addrs, nil
}

// byTurns orders addresses so that the families take turns, IPv6 first.
func byTurns(ips []netip.Addr) []netip.Addr {
	var v4, v6, order []netip.Addr
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			v4 = append(v4, ip)
		} else {
			v6 = append(v6, ip)
		}
	}
	for i := range max(len(v4), len(v6)) {
		if i < len(v6) {
			order = append(order, v6[i])
		}
		if i < len(v4) {
			order = append(order, v4[i])
		}
	}
	return order[:min(len(order), maxAddresses)]
}

// attempt is how one address answered.
type attempt struct {
	conn *quic.Conn
	err  error
}

// race dials addresses until one answers. When it returns, nothing that it has started goes on.
func race(
	ctx context.Context, addrs []netip.AddrPort, dial func(context.Context, netip.AddrPort) (*quic.Conn, error),
) (*quic.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt, len(addrs))
	next, running := 0, 0
	start := func() {
		addr := addrs[next]
		next, running = next+1, running+1
		go func() { // ends with ctx at the latest; gather joins it
			conn, err := dial(ctx, addr)
			results <- attempt{conn, err}
		}()
	}
	var errs []error
	for start(); running > 0; {
		var lead <-chan time.Time
		var timer *time.Timer
		if next < len(addrs) {
			timer = time.NewTimer(dialStagger)
			lead = timer.C
		}
		select {
		case r := <-results:
			running--
			if r.err == nil {
				cancel()
				gather(results, running)
				return r.conn, nil
			}
			if errs = append(errs, r.err); next < len(addrs) && ctx.Err() == nil {
				start()
			}
		case <-lead:
			start()
		}
		if timer != nil {
			timer.Stop()
		}
	}
	return nil, telling(errs)
}

// gather waits for those that lost the race.
func gather(results <-chan attempt, running int) {
	for range running {
		if r := <-results; r.err == nil {
			_ = r.conn.CloseWithError(quic.ApplicationErrorCode(protocol.CloseCodeOf(forge.CloseNormal)), "") // never fails
		}
	}
}

// telling returns the error that says most: what a peer said, else the first.
func telling(errs []error) error {
	for _, err := range errs {
		if closeError(err).Reason != forge.CloseLost {
			return err
		}
	}
	return errs[0]
}

// dial dials one address. A socket that has died is replaced for the next one.
func (d *Dialer) dial(ctx context.Context, addr netip.AddrPort, cfg *tls.Config) (*quic.Conn, error) {
	r, err := d.road(addr.Addr())
	if err != nil {
		return nil, err
	}
	conn, err := r.Dial(ctx, net.UDPAddrFromAddrPort(addr), cfg, d.o.config())
	if errors.Is(err, quic.ErrTransportClosed) {
		d.forget(r)
	}
	return conn, err
}

// road returns the socket for a family.
func (d *Dialer) road(ip netip.Addr) (*road, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, net.ErrClosed
	}
	mine, family := &d.v6, "udp6"
	if ip.Is4() {
		mine, family = &d.v4, "udp4"
	}
	if *mine != nil {
		return *mine, nil
	}
	if d.o.PacketConn != nil {
		d.v4 = newRoad(d.o.PacketConn, d.o.Log)
		d.v6 = d.v4
		return d.v4, nil
	}
	conn, err := net.ListenUDP(family, nil)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	*mine = newRoad(conn, d.o.Log)
	return *mine, nil
}

// forget drops a socket that has died, so that the next Dial opens another.
func (d *Dialer) forget(dead *road) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.o.PacketConn != nil || d.closed {
		return
	}
	for _, mine := range []**road{&d.v4, &d.v6} {
		if *mine == dead {
			*mine = nil
			_ = dead.shut() // it is closed already
		}
	}
}
