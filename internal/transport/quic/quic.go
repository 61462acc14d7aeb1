// Package quic is the road over QUIC with mutual TLS. No other package but its benchmarks imports quic-go.
//
// What it adds to quic-go: close codes and TLS alerts as reasons, streams that may be used from several goroutines and
// whose directions both end, admission of handshakes before any cryptography, names that are resolved and tried one after
// another, and a socket that outlives errors of reading.
//
// What it refuses: session tickets and 0-RTT, since a resumed session skips what has changed about a certificate, and
// connections whose handshake is not over. Which certificates are good is said by the tls.Config that is handed in; it may
// choose by ALPN in GetConfigForClient.
//
// quic-go owns the goroutines of sockets and connections. A Listener has one of its own while it closes; Shutdown joins
// it. Dial joins all that it has started.
package quic

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"
)

// Defaults of Options.
const (
	defaultIdle         = 15 * time.Second
	defaultKeepAlive    = 5 * time.Second
	defaultStreams      = 64
	defaultStreamWindow = 1 << 20
	defaultConnWindow   = 8 << 20

	// initialStreamWindow is what a stream begins with; its window grows while its reader keeps up. The connection has its
	// whole window from the start, so that 63 streams on which nobody reads hold up no other. Four that had grown to their
	// bound before would: a reader that cannot go on resets its stream rather than let it rest.
	initialStreamWindow = 128 << 10
)

// Options say how a road behaves. Zero values stand for defaults.
type Options struct {
	Log *slog.Logger // nil: silence

	// PacketConn is used instead of sockets of our own, by a Listener or by a Dialer for all addresses. It is closed with
	// whoever was given it.
	PacketConn net.PacketConn

	// StatelessReset and Token are the keys of a listener. With the same keys a restarted daemon tells its agents that
	// their connections are gone, and addresses that were verified stay so. nil: new ones.
	StatelessReset, Token *[32]byte

	Idle      time.Duration // a connection on which nothing arrives for so long is lost; at least 5 s
	KeepAlive time.Duration // at most half of Idle

	Streams, SendStreams     int    // of the peer, open at once, with two directions and with one
	StreamWindow, ConnWindow uint64 // bytes that the peer may send ahead of the reader
	DisableMTUDiscovery      bool   // on paths that lose large packets

	Admission Admission // of a Listener

	// Resolve finds the addresses of a host for a Dialer; nil: the resolver of the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Idle == 0 {
		o.Idle = defaultIdle
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = defaultKeepAlive
	}
	if o.Streams == 0 {
		o.Streams = defaultStreams
	}
	if o.SendStreams == 0 {
		o.SendStreams = defaultStreams
	}
	if o.StreamWindow == 0 {
		o.StreamWindow = defaultStreamWindow
	}
	if o.ConnWindow == 0 {
		o.ConnWindow = defaultConnWindow
	}
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	o.Admission = o.Admission.withDefaults()
	return o
}

// config is what quic-go is told about every connection.
func (o Options) config() *quic.Config {
	return &quic.Config{
		MaxIdleTimeout:                 o.Idle,
		KeepAlivePeriod:                o.KeepAlive,
		MaxIncomingStreams:             int64(o.Streams),
		MaxIncomingUniStreams:          int64(o.SendStreams),
		InitialStreamReceiveWindow:     min(initialStreamWindow, o.StreamWindow),
		MaxStreamReceiveWindow:         o.StreamWindow,
		InitialConnectionReceiveWindow: o.ConnWindow,
		MaxConnectionReceiveWindow:     o.ConnWindow,
		DisablePathMTUDiscovery:        o.DisableMTUDiscovery,
	}
}

// withoutResumption returns a copy of a tls.Config under which no session is ever resumed.
func withoutResumption(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.SessionTicketsDisabled = true
	c.ClientSessionCache = nil
	if choose := c.GetConfigForClient; choose != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen == nil || err != nil {
				return nil, err
			}
			return withoutResumption(chosen), nil
		}
	}
	return c
}
