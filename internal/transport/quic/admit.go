package quic

import (
	"errors"
	"hash/maphash"
	"net"
	"net/netip"
	"sync"

	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// Admission bounds the handshakes that a listener takes on. A handshake over a bound is refused before any cryptography;
// the client sees OVERLOADED and comes back later. Zero values stand for defaults.
type Admission struct {
	PerSecond, Burst             int // in all
	PrefixPerSecond, PrefixBurst int // from one network: an IPv4 /24 or an IPv6 /48
}

// Defaults of Admission. Two cores take about 450 handshakes a second.
const (
	defaultHandshakes       = 200
	defaultHandshakeBurst   = 400
	defaultPrefixHandshakes = 50
	defaultPrefixBurst      = 200
)

func (a Admission) withDefaults() Admission {
	or := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	or(&a.PerSecond, defaultHandshakes)
	or(&a.Burst, defaultHandshakeBurst)
	or(&a.PrefixPerSecond, defaultPrefixHandshakes)
	or(&a.PrefixBurst, defaultPrefixBurst)
	return a
}

// prefixSlots is how many budgets there are for networks. Networks that fall into one slot share its budget, so that
// made-up addresses cost no memory.
const prefixSlots = 4096

// admission is the budget of one listener.
type admission struct {
	cfg  Admission
	all  *rate.Limiter
	seed maphash.Seed

	mu    sync.Mutex
	slots map[uint64]*rate.Limiter // at most prefixSlots
}

func newAdmission(cfg Admission) *admission {
	return &admission{
		cfg: cfg, all: rate.NewLimiter(rate.Limit(cfg.PerSecond), cfg.Burst),
		seed: maphash.MakeSeed(), slots: map[uint64]*rate.Limiter{},
	}
}

var errBudget = errors.New("too many handshakes")

// verify reports whether a client has to show first that its address is its own: when half of the budget is gone, so that
// made-up addresses cannot spend the rest.
func (a *admission) verify(net.Addr) bool { return a.all.Tokens() < float64(a.cfg.Burst)/2 }

// admit spends from the budget of a network, then from that of all.
func (a *admission) admit(info *quic.ClientInfo) error {
	if !a.slot(info.RemoteAddr).Allow() || !a.all.Allow() {
		return errBudget
	}
	return nil
}

func (a *admission) slot(addr net.Addr) *rate.Limiter {
	slot := maphash.Comparable(a.seed, network(addr)) % prefixSlots
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slots[slot] == nil {
		a.slots[slot] = rate.NewLimiter(rate.Limit(a.cfg.PrefixPerSecond), a.cfg.PrefixBurst)
	}
	return a.slots[slot]
}

// network is the part of an address that one site has to itself.
func network(addr net.Addr) netip.Prefix {
	udp, ok := addr.(*net.UDPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := udp.AddrPort().Addr().Unmap().WithZone("")
	bits := 48
	if ip.Is4() {
		bits = 24
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
