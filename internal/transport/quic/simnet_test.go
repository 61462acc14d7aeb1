package quic_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

// weather is a network that loses, repeats and overtakes, as its seed says.
type weather struct {
	loss, repeat float64
	jitter       time.Duration
	largest      int // bytes of a packet; 0: any

	mu    sync.Mutex
	dice  *rand.Rand
	nodes map[string]simnet.PacketReceiver
	cut   bool
}

func newWeather(seed uint64) *weather {
	return &weather{dice: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]simnet.PacketReceiver{}, jitter: time.Millisecond}
}

func (w *weather) AddNode(addr net.Addr, r simnet.PacketReceiver) { w.nodes[addr.String()] = r }

func (w *weather) SendPacket(p simnet.Packet) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	to := w.nodes[p.To.String()]
	if to == nil || w.cut || w.largest > 0 && len(p.Data) > w.largest {
		return nil // nobody tells
	}
	for copies := 1; copies > 0; copies-- {
		if w.dice.Float64() < w.repeat {
			copies++
		}
		if w.dice.Float64() >= w.loss {
			time.AfterFunc(time.Duration(w.dice.Int64N(int64(w.jitter))), func() { to.RecvPacket(p) })
		}
	}
	return nil
}

func (w *weather) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

const daemonAt = "10.0.0.1:443"

// under runs a test with one connection in some weather. It ends both sockets, and with that everything that quic-go has
// started.
func under(t *testing.T, w *weather, test func(t *testing.T, ends transporttest.Ends)) {
	synctest.Test(t, func(t *testing.T) {
		socket := func(addr string) *simnet.SimConn {
			return simnet.NewSimConn(net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)), w)
		}
		l, err := quic.Listen("", ca.Server(protocol.ALPNAgent), quic.Options{PacketConn: socket(daemonAt)})
		if err != nil {
			t.Fatal(err)
		}
		d := quic.NewDialer(agent("runner"), quic.Options{PacketConn: socket("10.0.0.2:9")})
		var ends transporttest.Ends
		if ends.Dialled, err = d.Dial(t.Context(), daemonAt); err != nil {
			t.Fatal(err)
		}
		if ends.Accepted, err = l.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, ends)
		ends.Dialled.Close(0)
		ends.Accepted.Close(0)
		if err := l.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // on the clock of the bubble: the last packets have landed
	})
}

// carry sends bytes over one stream and says whether they arrived.
func carry(t *testing.T, from, to transport.Conn, bytes []byte) error {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		s, err := from.OpenSendStream(t.Context())
		if err == nil {
			_, err = s.Write(bytes)
		}
		if err == nil {
			err = s.Close()
		}
		sent <- err
	}()
	r, err := to.AcceptReceiveStream(t.Context())
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, r)
	if err == nil {
		err = <-sent
	}
	if want := sha256.Sum256(bytes); err == nil && [32]byte(h.Sum(nil)) != want {
		err = fmt.Errorf("%d bytes arrived that are not the %d that were sent", n, len(bytes))
	}
	return err
}

func TestBytesAreWholeThroughLossRepetitionAndOvertaking(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWeather(seed)
			w.loss, w.repeat, w.jitter = 0.1, 0.05, 40*time.Millisecond
			under(t, w, func(t *testing.T, ends transporttest.Ends) {
				data := bytes.Repeat([]byte("forgeyard"), 60_000)
				if err := carry(t, ends.Dialled, ends.Accepted, data); err != nil {
					t.Error(err)
				}
				if err := carry(t, ends.Accepted, ends.Dialled, data); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Case T36, at one 500th: a path that loses all large packets slows a transfer and does not stop it.
func TestATransferSurvivesAPathThatLosesLargePackets(t *testing.T) {
	w := newWeather(1)
	under(t, w, func(t *testing.T, ends transporttest.Ends) {
		w.mu.Lock()
		w.largest = 1300 // from here on: what was found out about the path is wrong
		w.mu.Unlock()
		if err := carry(t, ends.Dialled, ends.Accepted, make([]byte, 2<<20)); err != nil {
			t.Error(err)
		}
	})
}

// Case T14, T34: a dead path is noticed within the idle time, though nobody says a word.
func TestADeadPathIsNoticed(t *testing.T) {
	w := newWeather(1)
	under(t, w, func(t *testing.T, ends transporttest.Ends) {
		w.setCut(true)
		begun := time.Now()
		for _, c := range []transport.Conn{ends.Dialled, ends.Accepted} {
			<-c.Context().Done()
			if took := time.Since(begun); took > 21*time.Second {
				t.Errorf("it took %v", took)
			}
			if got := closeReason(t, context.Cause(c.Context())); got != forge.CloseLost {
				t.Errorf("it ends with %v", got)
			}
		}
	})
}

// Case T40: a short blackout costs no connection.
func TestAConnectionSurvivesAShortBlackout(t *testing.T) {
	w := newWeather(1)
	under(t, w, func(t *testing.T, ends transporttest.Ends) {
		w.setCut(true)
		time.Sleep(6 * time.Second)
		w.setCut(false)
		if err := carry(t, ends.Dialled, ends.Accepted, []byte("still here")); err != nil {
			t.Error(err)
		}
	})
}
