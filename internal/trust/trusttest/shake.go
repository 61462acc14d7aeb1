package trusttest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// Shake makes one real TLS handshake without a network and returns what either end makes of it. In TLS 1.3 a client is done
// before the server has looked at its certificate, so it also waits for a byte from the server.
func Shake(t testing.TB, server, client *tls.Config) (atServer, atClient error) {
	t.Helper()
	a, b := net.Pipe()
	const late = 30 * time.Second // only where a test would hang
	if err := errors.Join(a.SetDeadline(time.Now().Add(late)), b.SetDeadline(time.Now().Add(late))); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		out := behind(a)
		conn := tls.Server(out, server)
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Write([]byte{1})
		}
		out.stop()
		done <- err
	}()
	conn := tls.Client(b, client)
	err := conn.Handshake()
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	return <-done, err
}

// writer writes to a pipe from a goroutine of its own, as a network would: a client that refuses what it has read so far
// says so while the server still writes.
type writer struct {
	net.Conn
	queue chan []byte
	done  chan struct{}
}

func behind(conn net.Conn) *writer {
	w := &writer{conn, make(chan []byte, 64), make(chan struct{})} // a handshake has fewer writes
	go func() {
		defer close(w.done)
		for b := range w.queue {
			if _, err := conn.Write(b); err != nil {
				break // the client has left
			}
		}
		_ = conn.Close() // a pipe closes without an error
	}()
	return w
}

func (w *writer) Write(b []byte) (int, error) {
	w.queue <- append([]byte(nil), b...)
	return len(b), nil
}

func (w *writer) stop() {
	close(w.queue)
	<-w.done
}
