package inmem_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var agent = inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent}}

func TestTheRoadKeepsItsContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Ends {
		n := inmem.New(inmem.Limits{Streams: transporttest.Streams, SendStreams: transporttest.Streams})
		l, err := n.Listen("daemon:1", agent)
		if err != nil {
			t.Fatal(err)
		}
		dialled, err := n.Dialer(agent).Dial(t.Context(), "daemon:1")
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			dialled.Close(0)
			_ = l.Close() // it never fails
		})
		return transporttest.Ends{Dialled: dialled, Accepted: accepted}
	})
}

func reason(err error) forge.CloseReason {
	var closed *transport.CloseError
	if !errors.As(err, &closed) {
		return 0
	}
	return closed.Reason
}

func TestADialSaysWhyItFailed(t *testing.T) {
	n := inmem.New(inmem.Limits{})
	ctx := t.Context()
	if _, err := n.Dialer(agent).Dial(ctx, "daemon:1"); reason(err) != forge.CloseLost {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := n.Listen("daemon:1", agent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("daemon:1", agent); err == nil {
		t.Error("two listen on one endpoint")
	}
	other := inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNDevice}}
	if _, err := n.Dialer(other).Dial(ctx, "daemon:1"); reason(err) != forge.CloseVersionMismatch {
		t.Errorf("no common protocol: %v", err)
	}
	var waiting []transport.Conn
	for {
		c, err := n.Dialer(agent).Dial(ctx, "daemon:1")
		if err != nil {
			if reason(err) != forge.CloseOverloaded || len(waiting) != 32 {
				t.Errorf("after %d: %v", len(waiting), err)
			}
			break
		}
		waiting = append(waiting, c)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range waiting {
		<-c.Context().Done()
		if r := reason(context.Cause(c.Context())); r != forge.CloseShutdown {
			t.Errorf("a connection that nobody accepted ends with %v", r)
		}
	}
	if _, err := l.Accept(ctx); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

func TestABrokenConnectionEndsWithoutAReason(t *testing.T) {
	a, b := inmem.Pair(inmem.Limits{}, transport.Peer{}, transport.Peer{})
	a.Break()
	for _, c := range []*inmem.Conn{a, b} {
		if r := reason(context.Cause(c.Context())); r != forge.CloseLost {
			t.Errorf("it ends with %v", r)
		}
	}
}

func TestWhatIsUnreadIsBoundedByBothWindows(t *testing.T) {
	a, b := inmem.Pair(inmem.Limits{StreamWindow: 60, ConnWindow: 100}, transport.Peer{}, transport.Peer{})
	defer a.Close(0)
	for i, want := range []int{60, 40, 0} {
		s, err := a.OpenSendStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Write(make([]byte, 1000)); n != want || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("stream %d takes %d bytes, %v", i, n, err)
		}
	}
	r, err := b.AcceptReceiveStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 30)); err != nil {
		t.Fatal(err)
	}
	s, err := a.OpenSendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(make([]byte, 30)); n != 30 || err != nil {
		t.Errorf("after a read of 30 bytes a stream takes %d, %v", n, err)
	}
}
