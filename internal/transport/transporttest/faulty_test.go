package transporttest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

// A road without faults is still a road.
func TestTheWrapperKeepsTheContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Ends {
		limits := inmem.Limits{Streams: transporttest.Streams, SendStreams: transporttest.Streams}
		a, b := inmem.Pair(limits, transport.Peer{}, transport.Peer{})
		t.Cleanup(func() { a.Close(0) })
		return transporttest.Ends{
			Dialled: transporttest.Wrap(a, transporttest.Faults{}), Accepted: transporttest.Wrap(b, transporttest.Faults{}),
		}
	})
}

// faulty runs a test with one end that has faults.
func faulty(t *testing.T, f transporttest.Faults, test func(t *testing.T, here *transporttest.Faulty, there transport.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		a, b := inmem.Pair(inmem.Limits{}, transport.Peer{}, transport.Peer{})
		defer a.Close(0)
		test(t, transporttest.Wrap(a, f), b)
	})
}

// write opens a stream and writes n bytes on it.
func write(t *testing.T, c transport.Conn, n int) transport.SendStream {
	t.Helper()
	s, err := c.OpenSendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestANarrowRoadTakesItsTime(t *testing.T) {
	f := transporttest.Faults{
		BytesPerSecond: 1000, Latency: 100 * time.Millisecond,
		Skew: func(n int) time.Duration { return time.Duration(n) * time.Second },
	}
	faulty(t, f, func(t *testing.T, here *transporttest.Faulty, there transport.Conn) {
		for n, want := range []time.Duration{2100 * time.Millisecond, 3100 * time.Millisecond} {
			begun := time.Now()
			if err := write(t, here, 2000).Close(); err != nil {
				t.Fatal(err)
			}
			r, err := there.AcceptReceiveStream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); len(got) != 2000 || err != nil || time.Since(begun) != want {
				t.Errorf("stream %d: %d bytes after %v, %v", n, len(got), time.Since(begun), err)
			}
		}
		s := write(t, here, 1)
		if err := s.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a late write gives %v", err)
		}
	})
}

func TestAHalfOpenConnectionSaysNothing(t *testing.T) {
	faulty(t, transporttest.Faults{}, func(t *testing.T, here *transporttest.Faulty, there transport.Conn) {
		before := write(t, here, 1)
		here.Vanish()
		if err := write(t, here, 1).Close(); err != nil {
			t.Fatal(err)
		}
		before.Reset(protocol.ResetCancelled)
		write(t, there, 1)
		if _, err := here.AcceptReceiveStream(t.Context()); err != nil {
			t.Errorf("the other way: %v", err)
		}
		here.Close(0)
		if here.Context().Err() == nil || there.Context().Err() != nil {
			t.Error("the other end heard of the close")
		}
		if _, err := there.AcceptReceiveStream(t.Context()); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := there.AcceptReceiveStream(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the other end heard of a stream: %v", err)
		}
	})
}

func TestACutIsLostAtBothEnds(t *testing.T) {
	faulty(t, transporttest.Faults{}, func(t *testing.T, here *transporttest.Faulty, there transport.Conn) {
		here.Cut()
		for _, c := range []transport.Conn{here, there} {
			var closed *transport.CloseError
			if err := context.Cause(c.Context()); !errors.As(err, &closed) || closed.Reason != forge.CloseLost {
				t.Errorf("it ends with %v", err)
			}
		}
	})
}
