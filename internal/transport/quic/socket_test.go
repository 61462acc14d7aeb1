package quic_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
)

// deaf is a socket that can be muted: what it is given to send vanishes. It counts the Retry packets among that.
type deaf struct {
	*net.UDPConn
	muted   atomic.Bool
	retries atomic.Int64
}

func (d *deaf) mute() { d.muted.Store(true) }

func (d *deaf) WriteTo(b []byte, addr net.Addr) (int, error) {
	if b[0]&0xf0 == 0xf0 { // a long header of the kind Retry
		d.retries.Add(1)
	}
	if d.muted.Load() {
		return len(b), nil
	}
	return d.UDPConn.WriteTo(b, addr)
}

// sick is a socket whose reads fail for a while, as after an ICMP message.
type sick struct {
	*net.UDPConn
	left  atomic.Int64
	tries atomic.Int64
}

func (s *sick) ReadFrom(b []byte) (int, net.Addr, error) {
	if s.left.Add(-1) >= 0 {
		s.tries.Add(1)
		return 0, nil, &net.OpError{Op: "read", Net: "udp", Err: syscall.ECONNREFUSED}
	}
	return s.UDPConn.ReadFrom(b)
}

// lines counts lines of a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), "\n")
}

// Case T42.
func TestErrorsOfReadingNeitherKillAListenerNorFillItsLog(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	socket, log := &sick{UDPConn: udp}, &lines{}
	socket.left.Store(6)
	l := listen(t, "", ca.Server(protocol.ALPNAgent), quic.Options{
		PacketConn: socket, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	d := dialer(t, agent("runner"), quic.Options{})
	ends := connect(t, l, d)
	socket.left.Store(6)
	s, err := ends.Dialled.OpenSendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := ends.Accepted.AcceptReceiveStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect(t, l, d)
	if socket.tries.Load() != 12 {
		t.Errorf("%d reads failed", socket.tries.Load())
	}
	if log.count() != 1 {
		t.Errorf("%d lines in the log", log.count())
	}
}
