package enroll

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Defaults and bounds of a Counter.
const (
	defaultConnections = 32
	defaultPerSecond   = 50
	defaultBurst       = 200
	defaultPrefixRate  = 5
	defaultPrefixBurst = 30
	maxPrefixes        = 4096
	prefixIdle         = time.Minute

	// serveWithin bounds what one connection may take, from its hello to the last byte of the answer.
	serveWithin = protocol.RegisterWithin
)

// CounterConfig is how a Counter behaves. Zero values of the bounds stand for defaults.
type CounterConfig struct {
	Link        link.Config
	Log         *slog.Logger // nil: silence
	Connections int          // served at once, half of them from one network
	PerSecond   float64      // new connections, from everywhere
	Burst       int
	PrefixRate  float64 // new connections a second, from one network: /24 or /56
	PrefixBurst int
}

// Counter serves connections with the ALPN of enrolment: anybody may stand before it, so it takes few at once, little of
// each, and not often from one place.
type Counter struct {
	desk   *Desk
	cfg    CounterConfig
	places chan struct{}
	all    *rate.Limiter

	mu       sync.Mutex
	prefixes map[netip.Prefix]*source
	served   map[netip.Prefix]int // places that each has taken
	others   *rate.Limiter        // shared by prefixes for which there is no room
}

type source struct {
	limit *rate.Limiter
	last  time.Time
}

// NewCounter returns a counter in front of a desk.
func NewCounter(desk *Desk, cfg CounterConfig) *Counter {
	if cfg.Connections == 0 {
		cfg.Connections = defaultConnections
	}
	if cfg.PerSecond == 0 {
		cfg.PerSecond, cfg.Burst = defaultPerSecond, defaultBurst
	}
	if cfg.PrefixRate == 0 {
		cfg.PrefixRate, cfg.PrefixBurst = defaultPrefixRate, defaultPrefixBurst
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Link.Streams = map[protocol.StreamKind]int{} // none but the control stream
	return &Counter{
		desk: desk, cfg: cfg,
		places:   make(chan struct{}, cfg.Connections),
		all:      rate.NewLimiter(rate.Limit(cfg.PerSecond), cfg.Burst),
		prefixes: map[netip.Prefix]*source{},
		served:   map[netip.Prefix]int{},
		others:   rate.NewLimiter(rate.Limit(cfg.PrefixRate), cfg.PrefixBurst),
	}
}

// Serve serves one connection and closes it. It returns within about serveWithin, or when ctx ends. The caller runs it
// in a goroutine of its own.
func (c *Counter) Serve(ctx context.Context, conn transport.Conn) {
	addr := conn.Peer().Addr
	if conn.Peer().ALPN != protocol.ALPNEnroll {
		conn.Close(protocol.CloseCodeOf(forge.CloseProtocol))
		return
	}
	if !c.allow(prefixOf(addr), time.Now()) {
		conn.Close(protocol.CloseCodeOf(forge.CloseRate))
		return
	}
	if !c.enter(prefixOf(addr)) {
		conn.Close(protocol.CloseCodeOf(forge.CloseOverloaded))
		return
	}
	defer c.leave(prefixOf(addr))
	ctx, cancel := context.WithTimeout(ctx, serveWithin)
	defer cancel()
	if addr != nil {
		ctx = WithAddr(ctx, addr.String())
	}
	c.serve(ctx, conn)
}

func (c *Counter) serve(ctx context.Context, conn transport.Conn) {
	l, err := link.Answer(ctx, conn, c.cfg.Link)
	if err != nil {
		c.cfg.Log.Debug("an enrolment said no hello", "peer", AddrOf(ctx), "error", err)
		return
	}
	m, err := l.Receive(ctx)
	if err != nil {
		l.Close(forge.CloseRegisterTimeout)
		return
	}
	w, ok := m.Wire.(*agentv1.EnrollV1)
	if !ok {
		l.Close(forge.CloseBadState)
		return
	}
	defer w.Token.Wipe()
	answer, err := c.desk.Enroll(ctx, w)
	if err != nil {
		reason, text := Refuse(err)
		c.cfg.Log.Warn("an enrolment was refused", "peer", AddrOf(ctx), "reason", reason.String(), "error", err)
		if l.Send(ctx, forge.Frame{ID: ident.New[forge.MessageID](), Re: m.ID, Body: text}) != nil {
			l.Close(reason) // the code alone must do
			return
		}
		l.Finish(reason)
		return
	}
	if err := l.SendWire(ctx, ident.New[forge.MessageID](), m.ID, answer); err != nil {
		c.cfg.Log.Warn("an enrolment got no answer; the agent will ask again", "peer", AddrOf(ctx), "error", err)
		l.Close(forge.CloseInternal)
		return
	}
	l.Finish(forge.CloseNormal)
}

// enter takes a place. One network never has all of them: silent connections hold theirs for serveWithin.
func (c *Counter) enter(prefix netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served[prefix] >= max(1, cap(c.places)/2) {
		return false
	}
	select {
	case c.places <- struct{}{}:
		c.served[prefix]++
		return true
	default:
		return false
	}
}

func (c *Counter) leave(prefix netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	<-c.places
	if c.served[prefix]--; c.served[prefix] == 0 {
		delete(c.served, prefix)
	}
}

// allow takes one from the budgets of a network and of all. The network's is asked first, so that one that is out of
// budget takes nothing from the others.
func (c *Counter) allow(prefix netip.Prefix, now time.Time) bool {
	return c.budget(prefix, now).AllowN(now, 1) && c.all.AllowN(now, 1)
}

func (c *Counter) budget(prefix netip.Prefix, now time.Time) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.prefixes[prefix]
	if !ok {
		if len(c.prefixes) >= maxPrefixes {
			c.sweepLocked(now)
		}
		if len(c.prefixes) >= maxPrefixes {
			return c.others
		}
		s = &source{limit: rate.NewLimiter(rate.Limit(c.cfg.PrefixRate), c.cfg.PrefixBurst)}
		c.prefixes[prefix] = s
	}
	s.last = now
	return s.limit
}

func (c *Counter) sweepLocked(now time.Time) {
	for prefix, s := range c.prefixes {
		if now.Sub(s.last) >= prefixIdle {
			delete(c.prefixes, prefix)
		}
	}
}

// prefixOf is the network of an address: what one party usually has. Whatever has no address is one network.
func prefixOf(addr net.Addr) netip.Prefix {
	if addr == nil {
		return netip.Prefix{}
	}
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 56
	if ip.Is4() {
		bits = 24
	}
	prefix, _ := ip.Prefix(bits) // bits are right for either
	return prefix
}
