package quic

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// stream is a stream with two directions.
type stream struct {
	sendStream
	receiveStream
}

// sendStream keeps apart what quic-go does not: a Close beside a Write, a Close after a Reset or a late Write.
type sendStream struct {
	conn *Conn
	quic interface {
		io.WriteCloser
		Context() context.Context
		CancelWrite(code quic.StreamErrorCode)
		SetWriteDeadline(t time.Time) error
		SetPriority(urgency int8, incremental bool)
	}

	writing sync.Mutex // held by Write and by Close, which waits for it

	mu   sync.Mutex
	over bool // closed or reset by this end
	late bool // a Write ran into its deadline
}

// Write implements transport.SendStream.
func (s *sendStream) Write(b []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.isLate() {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := s.quic.Write(b)
	err = s.conn.streamError(err)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.mu.Lock()
		s.late = true
		s.mu.Unlock()
	}
	return n, err
}

func (s *sendStream) isLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late && !s.over
}

// Close implements transport.SendStream. It waits for a Write that is on its way.
func (s *sendStream) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	s.over = true
	if s.late {
		s.quic.CancelWrite(quic.StreamErrorCode(protocol.ResetTimeout))
		return os.ErrDeadlineExceeded
	}
	if err := s.quic.Close(); err != nil {
		return s.conn.streamError(context.Cause(s.quic.Context())) // the peer has stopped it
	}
	if s.conn.quic.Context().Err() != nil {
		return s.conn.ended(context.Background(), nil)
	}
	return nil
}

// Reset implements transport.SendStream. It ends a Write that waits.
func (s *sendStream) Reset(code protocol.ResetCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.quic.CancelWrite(quic.StreamErrorCode(code.Outward()))
	}
}

// SetWriteDeadline implements transport.SendStream.
func (s *sendStream) SetWriteDeadline(t time.Time) error { return s.quic.SetWriteDeadline(t) }

// SetPriority implements transport.SendStream.
func (s *sendStream) SetPriority(p transport.Priority) { s.quic.SetPriority(int8(min(p, 7)), true) }

// receiveStream says errors as transport does.
type receiveStream struct {
	conn *Conn
	quic interface {
		io.Reader
		CancelRead(code quic.StreamErrorCode)
		SetReadDeadline(t time.Time) error
	}
}

// Read implements transport.ReceiveStream.
func (s *receiveStream) Read(b []byte) (int, error) {
	n, err := s.quic.Read(b)
	return n, s.conn.streamError(err)
}

// Stop implements transport.ReceiveStream.
func (s *receiveStream) Stop(code protocol.ResetCode) {
	s.quic.CancelRead(quic.StreamErrorCode(code.Outward()))
}

// SetReadDeadline implements transport.ReceiveStream.
func (s *receiveStream) SetReadDeadline(t time.Time) error { return s.quic.SetReadDeadline(t) }

// streamError says an error of quic-go as transport does.
func (c *Conn) streamError(err error) error {
	var reset *quic.StreamError
	switch {
	case err == nil, err == io.EOF: //nolint:errorlint // as io.Reader has it
		return err
	case errors.As(err, &reset) && reset.Remote:
		return &transport.ResetError{Code: protocol.ResetCode(reset.ErrorCode)}
	case errors.As(err, &reset), errors.Is(err, quic.ErrStreamClosed):
		return net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	default:
		return c.ended(context.Background(), err)
	}
}
