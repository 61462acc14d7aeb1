package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Inbound is a stream that the peer has opened, behind its header. Whoever takes it ends both of its directions, with
// Stop, and with Close or Reset where there is a Send; until then it holds a place.
type Inbound struct {
	Kind    protocol.StreamKind
	Head    protocol.StreamHead // of the kind's type, validated
	Receive transport.ReceiveStream
	Send    transport.SendStream // nil on a stream with one direction

	link *Link
}

// Frames returns a reader of the frames on the stream.
func (in *Inbound) Frames() *Frames { return in.link.Frames(in.Kind, in.Receive, in.Send) }

// Reset gives both directions up. Idempotent.
func (in *Inbound) Reset(code protocol.ResetCode) { reset(in.Receive, in.Send, code) }

func reset(r transport.ReceiveStream, s transport.SendStream, code protocol.ResetCode) {
	r.Stop(code)
	if s != nil {
		s.Reset(code)
	}
}

// Accept returns the next stream of the peer whose header was read and may come now. The error is ctx's, or a
// *transport.CloseError.
func (l *Link) Accept(ctx context.Context) (*Inbound, error) {
	select {
	case in := <-l.inbound:
		l.cfg.Observer.Opened(in.Kind)
		return in, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.ctx.Done():
		return nil, l.ending()
	}
}

// Open opens a stream with two directions and writes its header. It waits while the peer admits no more streams.
func (l *Link) Open(ctx context.Context, kind protocol.StreamKind, head protocol.StreamHead) (transport.Stream, error) {
	s, err := l.conn.OpenStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %v stream: %w", kind, err)
	}
	if err := l.begin(s, kind, head); err != nil {
		reset(s, s, protocol.ResetCancelled)
		return nil, err
	}
	return s, nil
}

// OpenSend opens a stream that only this end writes, likewise.
func (l *Link) OpenSend(ctx context.Context, kind protocol.StreamKind, head protocol.StreamHead) (transport.SendStream, error) {
	s, err := l.conn.OpenSendStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %v stream: %w", kind, err)
	}
	if err := l.begin(s, kind, head); err != nil {
		s.Reset(protocol.ResetCancelled)
		return nil, err
	}
	return s, nil
}

// begin writes a header.
func (l *Link) begin(s transport.SendStream, kind protocol.StreamKind, head protocol.StreamHead) error {
	s.SetPriority(priority(kind))
	b, err := protocol.AppendStreamHeader(nil, kind, head)
	if err != nil {
		return err
	}
	if err := s.SetWriteDeadline(time.Now().Add(l.cfg.WriteWithin)); err != nil {
		return fmt.Errorf("open %v stream: %w", kind, err)
	}
	if _, err := s.Write(b); err != nil {
		return fmt.Errorf("open %v stream: %w", kind, err)
	}
	if err := s.SetWriteDeadline(time.Time{}); err != nil {
		return fmt.Errorf("open %v stream: %w", kind, err)
	}
	return nil
}

// priority is how this end shares a connection between the kinds of streams.
func priority(kind protocol.StreamKind) transport.Priority {
	switch kind {
	case protocol.StreamControl, protocol.StreamSecret:
		return transport.PriorityControl
	case protocol.StreamLog:
		return transport.PriorityLog
	case protocol.StreamCASDownload, protocol.StreamCASUpload:
		return transport.PriorityTransfer
	default:
		return transport.PriorityBackground
	}
}

// acceptor takes the next stream of one shape from the connection.
type acceptor func(context.Context) (transport.ReceiveStream, transport.SendStream, error)

func (l *Link) acceptTwoWay(ctx context.Context) (transport.ReceiveStream, transport.SendStream, error) {
	s, err := l.conn.AcceptStream(ctx)
	return s, s, err
}

func (l *Link) acceptOneWay(ctx context.Context) (transport.ReceiveStream, transport.SendStream, error) {
	r, err := l.conn.AcceptReceiveStream(ctx)
	return r, nil, err
}

// acceptStreams takes streams and reads their headers, a bounded number at once.
func (l *Link) acceptStreams(accept acceptor) {
	for {
		select {
		case l.headers <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		r, s, err := accept(l.ctx)
		if err != nil {
			_ = l.broken(err) // it is the cause of the link's end
			return
		}
		l.wait.Go(func() {
			l.receiveStream(r, s)
			<-l.headers
		})
	}
}

// receiveStream reads the header of a stream and hands it to Accept, or refuses it.
func (l *Link) receiveStream(r transport.ReceiveStream, s transport.SendStream) {
	in, err := l.head(r, s)
	if err != nil {
		l.refuseStream(r, s, err)
		return
	}
	select {
	case l.inbound <- in:
	case <-l.ctx.Done():
		in.Reset(protocol.ResetCancelled)
	}
}

// refuseStream ends a stream that may not be, and the connection where that is due.
func (l *Link) refuseStream(r transport.ReceiveStream, s transport.SendStream, err error) {
	code := protocol.ResetMalformed
	if errors.Is(err, errClosing) {
		code = protocol.ResetResumeLater
	}
	var v *protocol.Violation
	if errors.As(err, &v) && v.Severity() == protocol.SeverityStream {
		code = v.Reset()
	}
	reset(r, s, code)
	var full *tooManyBad
	switch err := l.badStream(err); {
	case errors.As(err, &full):
		l.end(forge.CloseProtocol, full)
	case errors.As(err, &v):
		l.violated(v)
	}
}

// head reads the header of a stream and passes it through the gate.
func (l *Link) head(r transport.ReceiveStream, s transport.SendStream) (*Inbound, error) {
	if !l.daemon {
		return nil, &protocol.Violation{Fault: protocol.FaultRole, Err: errOwnWay}
	}
	kind, head, err := l.readHeader(r)
	if err != nil {
		return nil, err
	}
	if oneWay := s == nil; oneWay != (kind == protocol.StreamLog) {
		return nil, &protocol.Violation{Fault: protocol.FaultHeader, Stream: kind, Err: errShape}
	}
	return l.place(kind, head, r, s)
}

var (
	errOwnWay  = errors.New("a daemon opens no streams")
	errShape   = errors.New("its kind has another number of directions")
	errStreams = errors.New("too many streams of a kind")
	errLate    = errors.New("its header did not come in time")
	errClosing = errors.New("this end closes the connection")
)

// readHeader waits for the first byte of a stream, as long as it takes, and then for the header, as long as a header may
// take.
func (l *Link) readHeader(r transport.ReceiveStream) (protocol.StreamKind, protocol.StreamHead, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil {
		return 0, nil, fmt.Errorf("read stream header: %w", err)
	}
	if err := r.SetReadDeadline(time.Now().Add(protocol.StreamHeaderWithin)); err != nil {
		return 0, nil, fmt.Errorf("read stream header: %w", err)
	}
	h, err := protocol.ReadStreamHeader(io.MultiReader(bytes.NewReader(first), r))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &protocol.Violation{Fault: protocol.FaultHeader, Stream: h.Kind, Err: errLate}
	}
	if err != nil {
		return h.Kind, nil, err
	}
	if err := r.SetReadDeadline(time.Time{}); err != nil {
		return h.Kind, nil, fmt.Errorf("read stream header: %w", err)
	}
	return l.headOf(h)
}

// headOf decodes a header and asks the gate about it.
func (l *Link) headOf(h protocol.StreamHeader) (protocol.StreamKind, protocol.StreamHead, error) {
	head, ok := wire.NewStreamHead(h.Kind)
	if !ok {
		return h.Kind, nil, &protocol.Violation{Fault: protocol.FaultHeader, Stream: h.Kind}
	}
	if err := h.Decode(head); err != nil {
		return h.Kind, nil, err
	}
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	err := gate.Stream(h.Kind)
	if gate.State == forge.ConnClosing && outOfTurn(err) {
		err = errClosing
	}
	return h.Kind, head, err
}

// place gives a stream one of the places of its kind, which it leaves once both of its directions have ended.
func (l *Link) place(
	kind protocol.StreamKind, head protocol.StreamHead, r transport.ReceiveStream, s transport.SendStream,
) (*Inbound, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[kind] >= l.cfg.Streams[kind] {
		return nil, &protocol.Violation{Fault: protocol.FaultRate, Stream: kind, Err: errStreams}
	}
	l.open[kind]++
	place := &place{leave: func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[kind]--
	}}
	place.directions.Store(1)
	in := &Inbound{Kind: kind, Head: head, Receive: &receiveEnd{ReceiveStream: r, place: place}, link: l}
	if s != nil {
		place.directions.Store(2)
		in.Send = &sendEnd{SendStream: s, place: place}
	}
	return in, nil
}

// place is what a stream holds until its last direction has ended.
type place struct {
	directions atomic.Int32
	leave      func()
}

func (p *place) ended() {
	if p.directions.Add(-1) == 0 {
		p.leave()
	}
}

// receiveEnd notices the end of the direction that the peer writes.
type receiveEnd struct {
	transport.ReceiveStream
	place *place
	over  atomic.Bool
}

func (r *receiveEnd) Read(b []byte) (int, error) {
	n, err := r.ReceiveStream.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		r.end()
	}
	return n, err
}

func (r *receiveEnd) Stop(code protocol.ResetCode) {
	r.ReceiveStream.Stop(code)
	r.end()
}

func (r *receiveEnd) end() {
	if !r.over.Swap(true) {
		r.place.ended()
	}
}

// sendEnd notices the end of the direction that this end writes.
type sendEnd struct {
	transport.SendStream
	place *place
	over  atomic.Bool
}

func (s *sendEnd) Close() error {
	defer s.end()
	return s.SendStream.Close()
}

func (s *sendEnd) Reset(code protocol.ResetCode) {
	s.SendStream.Reset(code)
	s.end()
}

func (s *sendEnd) end() {
	if !s.over.Swap(true) {
		s.place.ended()
	}
}
