// Package transport is the road between two peers: connections that are authenticated at both ends, and streams on them.
// It says what every road keeps to; transport/quic is the real one, transport/inmem the one without a network, and
// transport/transporttest holds both to this contract.
//
// It moves bytes. What they mean, which stream may come when and who may say what is decided above it, in link.
//
// What a road promises:
//   - The bytes of one stream arrive in order and once, or the stream ends with an error. Streams do not wait for each
//     other. The peer learns of a stream from its first byte.
//   - A written byte is no delivered byte: closing a connection may throw away what was written on it. What must arrive
//     is acknowledged by the peer in a message of its own.
//   - A close code is a hint about why a connection ended. It is never a state: it may be lost.
//   - The end of a connection ends every call on it and on its streams, with a *CloseError.
//   - Whoever opens or accepts a stream ends both of its directions, or it holds its place until the connection ends.
package transport

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol"
)

// Conn is one connection. All methods may be called from several goroutines at once.
type Conn interface {
	// Peer says who is at the other end. It does not change.
	Peer() Peer
	// OpenStream opens a stream with two directions. It waits while the peer admits no more streams, until ctx ends.
	OpenStream(ctx context.Context) (Stream, error)
	// OpenSendStream opens a stream that only this end writes, likewise.
	OpenSendStream(ctx context.Context) (SendStream, error)
	// AcceptStream returns the next stream with two directions that the peer has opened.
	AcceptStream(ctx context.Context) (Stream, error)
	// AcceptReceiveStream returns the next stream that only the peer writes.
	AcceptReceiveStream(ctx context.Context) (ReceiveStream, error)
	// Close ends the connection at once and tells the peer why, if it can. Only the first call counts. It does not wait
	// for anything that was written.
	Close(code protocol.CloseCode)
	// Context ends with the connection; its cause is a *CloseError.
	Context() context.Context
}

// Peer is what the handshake has shown of the other end.
type Peer struct {
	ALPN        protocol.ALPN
	Certificate *x509.Certificate // verified against the roots of this end; nil on the road that asks for none
	Addr        net.Addr
}

// SendStream is the direction that this end writes. Its methods may be called from several goroutines at once, but two
// Writes at once mix their bytes.
type SendStream interface {
	io.Writer
	// Close says that nothing more follows. What was written is still delivered. It waits for no acknowledgement.
	Close() error
	// Reset gives the direction up: what was not delivered yet need not be. Idempotent, and without effect after Close.
	Reset(code protocol.ResetCode)
	// SetWriteDeadline bounds Writes, also one that waits now. After one has run into it, the stream can only be Reset: how
	// much of it was written is not known.
	SetWriteDeadline(t time.Time) error
	// SetPriority says how this end shares the connection between its streams. It is a wish.
	SetPriority(p Priority)
}

// ReceiveStream is the direction that the peer writes. Read returns io.EOF at the end of what the peer closed, and a
// *ResetError where it gave up.
type ReceiveStream interface {
	io.Reader
	// Stop asks the peer to write no more, and ends every Read here. Idempotent.
	Stop(code protocol.ResetCode)
	// SetReadDeadline bounds Reads, also one that waits now. A Read after it may go on where the last one stopped.
	SetReadDeadline(t time.Time) error
}

// Stream is a stream with two directions.
type Stream interface {
	SendStream
	ReceiveStream
}

// Priority orders the streams of one sender. The numbers are those of RFC 9218, where 0 goes first.
type Priority uint8

// The priorities.
const (
	PriorityControl    Priority = 0
	PriorityLog        Priority = 3
	PriorityTransfer   Priority = 5 // objects of a running attempt
	PriorityBackground Priority = 7
)

// Listener takes connections. A connection that it returns is authenticated.
type Listener interface {
	// Accept returns the next connection. Its caller hands it on and comes back at once.
	Accept(ctx context.Context) (Conn, error)
	// Addr is where it listens.
	Addr() net.Addr
	// Close stops listening. Connections that were accepted go on.
	Close() error
}

// Dialer opens connections.
type Dialer interface {
	// Dial opens a connection to an endpoint, host:port. A nil error says that packets went both ways: whether the daemon
	// accepts this peer is known once it has answered on the connection.
	Dial(ctx context.Context, endpoint string) (Conn, error)
}
