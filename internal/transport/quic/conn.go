package quic

import (
	"context"
	"crypto/x509"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Conn is a transport.Conn.
type Conn struct {
	quic   *quic.Conn
	peer   transport.Peer
	ctx    context.Context
	cancel context.CancelCauseFunc
	close  sync.Once
}

// newConn takes over a connection whose handshake is over.
func newConn(q *quic.Conn) *Conn {
	tls := q.ConnectionState().TLS
	c := &Conn{quic: q, peer: transport.Peer{
		ALPN: protocol.ALPN(tls.NegotiatedProtocol), Certificate: leaf(tls.PeerCertificates), Addr: q.RemoteAddr(),
	}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	context.AfterFunc(q.Context(), func() { c.cancel(closeError(context.Cause(q.Context()))) })
	return c
}

func leaf(chain []*x509.Certificate) *x509.Certificate {
	if len(chain) == 0 {
		return nil
	}
	return chain[0]
}

// Peer implements transport.Conn.
func (c *Conn) Peer() transport.Peer { return c.peer }

// Context implements transport.Conn.
func (c *Conn) Context() context.Context { return c.ctx }

// Close implements transport.Conn.
func (c *Conn) Close(code protocol.CloseCode) {
	c.close.Do(func() {
		_ = c.quic.CloseWithError(quic.ApplicationErrorCode(code), code.Reason().String()) // it never fails
	})
	<-c.ctx.Done()
}

// OpenStream implements transport.Conn.
func (c *Conn) OpenStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.quic.OpenStreamSync(ctx)
	if err != nil {
		return nil, c.ended(ctx, err)
	}
	return c.twoWay(s), nil
}

// OpenSendStream implements transport.Conn.
func (c *Conn) OpenSendStream(ctx context.Context) (transport.SendStream, error) {
	s, err := c.quic.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, c.ended(ctx, err)
	}
	return &sendStream{conn: c, quic: s}, nil
}

// AcceptStream implements transport.Conn.
func (c *Conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.quic.AcceptStream(ctx)
	if err != nil {
		return nil, c.ended(ctx, err)
	}
	return c.twoWay(s), nil
}

// AcceptReceiveStream implements transport.Conn.
func (c *Conn) AcceptReceiveStream(ctx context.Context) (transport.ReceiveStream, error) {
	s, err := c.quic.AcceptUniStream(ctx)
	if err != nil {
		return nil, c.ended(ctx, err)
	}
	return &receiveStream{conn: c, quic: s}, nil
}

func (c *Conn) twoWay(s *quic.Stream) *stream {
	return &stream{sendStream{conn: c, quic: s}, receiveStream{conn: c, quic: s}}
}

// ended says why a call failed: its own context, or the end of the connection.
func (c *Conn) ended(ctx context.Context, err error) error {
	if c.quic.Context().Err() != nil {
		return closeError(context.Cause(c.quic.Context()))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return closeError(err)
}
