package quic

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
)

// How a socket treats errors of reading.
const (
	firstReadPause = time.Millisecond
	mostReadPause  = time.Second
	readErrorEvery = 10 * time.Second // a line in the log
)

// patience is the way of a socket with errors of reading. quic-go gives a socket up for most of them and asks again without
// a pause for the others; but what an ICMP message or a busy system cause passes.
type patience struct {
	log  *slog.Logger
	addr net.Addr

	stopped chan struct{}
	once    sync.Once

	// Of the one goroutine that reads.
	pause  time.Duration
	logged time.Time
}

func newPatience(log *slog.Logger, addr net.Addr) *patience {
	return &patience{log: log, addr: addr, stopped: make(chan struct{})}
}

// stop lets the next error through.
func (p *patience) stop() { p.once.Do(func() { close(p.stopped) }) }

// again reports whether to read again after an error, once it has waited.
func (p *patience) again(err error) bool {
	if err == nil {
		p.pause = 0
		return false
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if now := time.Now(); p.logged.IsZero() || now.Sub(p.logged) >= readErrorEvery {
		p.logged = now
		p.log.Warn("reading from a UDP socket fails", slog.Any("addr", p.addr), slog.Any("error", err))
	}
	p.pause = min(max(2*p.pause, firstReadPause), mostReadPause)
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.stopped:
		return false
	}
}

// socket is a UDP socket with patience. It keeps what quic-go uses of one: batches, ECN, segmentation.
type socket struct {
	*net.UDPConn
	batch    *ipv4.PacketConn // for IPv6 as well: the two differ in name only
	patience *patience
}

// ReadBatch is how quic-go reads where the system has batches.
func (s *socket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		n, err := s.batch.ReadBatch(ms, flags)
		if !s.patience.again(err) {
			return n, err
		}
	}
}

// ReadFrom is how it reads elsewhere.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, addr, err := s.UDPConn.ReadFrom(b)
		if !s.patience.again(err) {
			return n, addr, err
		}
	}
}

// given is a net.PacketConn that is no UDP socket, with patience.
type given struct {
	net.PacketConn
	patience *patience
}

// ReadFrom implements net.PacketConn.
func (g *given) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, addr, err := g.PacketConn.ReadFrom(b)
		if !g.patience.again(err) {
			return n, addr, err
		}
	}
}

// SetReadBuffer and SetWriteBuffer stop quic-go from asking the system for larger buffers.
func (g *given) SetReadBuffer(int) error  { return nil }
func (g *given) SetWriteBuffer(int) error { return nil }

// road is a socket with the quic-go transport on it.
type road struct {
	*quic.Transport
	patience *patience
}

func newRoad(c net.PacketConn, log *slog.Logger) *road {
	p := newPatience(log, c.LocalAddr())
	var conn net.PacketConn = &given{PacketConn: c, patience: p}
	if udp, ok := c.(*net.UDPConn); ok {
		conn = &socket{UDPConn: udp, batch: ipv4.NewPacketConn(udp), patience: p}
	}
	return &road{Transport: &quic.Transport{Conn: conn}, patience: p}
}

// shut drops every connection without a word and closes the socket.
func (r *road) shut() error {
	r.patience.stop()
	return errors.Join(r.Close(), r.Conn.Close())
}
