package transporttest

import (
	"context"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Faults is what is wrong with one direction of a connection: with what its end writes.
type Faults struct {
	Latency        time.Duration             // before each Write reaches the road
	BytesPerSecond int                       // of all streams together; 0: no bound
	Skew           func(n int) time.Duration // more latency for the nth stream, from 0; nil: none
}

// Faulty is a connection with faults on top of a road. It starts no goroutine, so it works inside testing/synctest.
type Faulty struct {
	transport.Conn
	faults Faults
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	streams int
	vanish  bool
	free    time.Time // when what was written before is through
}

// Wrap gives an end of a connection faults.
func Wrap(c transport.Conn, f Faults) *Faulty {
	w := &Faulty{Conn: c, faults: f}
	w.ctx, w.cancel = context.WithCancelCause(c.Context())
	return w
}

// Vanish makes the connection half open: from now on nothing that this end says reaches the other, and nothing tells so.
// What the other says still arrives.
func (f *Faulty) Vanish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vanish = true
}

func (f *Faulty) vanished() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.vanish
}

// Cut ends the connection as a dead network does: both ends lose it, and nobody says why. A road that cannot do that tells
// the other end INTERNAL.
func (f *Faulty) Cut() {
	f.cancel(&transport.CloseError{Reason: forge.CloseLost})
	if b, ok := f.Conn.(interface{ Break() }); ok {
		b.Break()
		return
	}
	f.Conn.Close(protocol.CloseCodeOf(forge.CloseInternal))
}

// Context implements transport.Conn.
func (f *Faulty) Context() context.Context { return f.ctx }

// Close implements transport.Conn. On a half-open connection the other end hears nothing of it.
func (f *Faulty) Close(code protocol.CloseCode) {
	if f.vanished() {
		f.cancel(&transport.CloseError{Reason: code.Reason()})
		return
	}
	f.Conn.Close(code)
}

// OpenStream implements transport.Conn.
func (f *Faulty) OpenStream(ctx context.Context) (transport.Stream, error) {
	s, err := f.Conn.OpenStream(ctx)
	return f.twoWay(s, err)
}

// AcceptStream implements transport.Conn.
func (f *Faulty) AcceptStream(ctx context.Context) (transport.Stream, error) {
	s, err := f.Conn.AcceptStream(ctx)
	return f.twoWay(s, err)
}

func (f *Faulty) twoWay(s transport.Stream, err error) (transport.Stream, error) {
	if err != nil {
		return nil, err
	}
	return &faultyStream{f.send(s), s}, nil
}

// OpenSendStream implements transport.Conn.
func (f *Faulty) OpenSendStream(ctx context.Context) (transport.SendStream, error) {
	s, err := f.Conn.OpenSendStream(ctx)
	if err != nil {
		return nil, err
	}
	return f.send(s), nil
}

func (f *Faulty) send(s transport.SendStream) *faultySend {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.streams
	f.streams++
	late := f.faults.Latency
	if f.faults.Skew != nil {
		late += f.faults.Skew(n)
	}
	return &faultySend{SendStream: s, conn: f, late: late}
}

// pass returns when n bytes are through a narrow road, if they start now.
func (f *Faulty) pass(n int, late time.Duration) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.faults.BytesPerSecond > 0 {
		if f.free.Before(now) {
			f.free = now
		}
		f.free = f.free.Add(time.Duration(n) * time.Second / time.Duration(f.faults.BytesPerSecond))
		now = f.free
	}
	return now.Add(late)
}

type faultyStream struct {
	*faultySend
	transport.ReceiveStream
}

// Stop says nothing on a half-open connection.
func (s *faultyStream) Stop(code protocol.ResetCode) {
	if !s.conn.vanished() {
		s.ReceiveStream.Stop(code)
	}
}

// faultySend is a direction with faults.
type faultySend struct {
	transport.SendStream
	conn *Faulty
	late time.Duration

	mu sync.Mutex
	by time.Time
}

// Write takes as long as the bytes need to get through.
func (s *faultySend) Write(b []byte) (int, error) {
	s.mu.Lock()
	by := s.by
	s.mu.Unlock()
	at := s.conn.pass(len(b), s.late)
	late := !by.IsZero() && by.Before(at)
	if late {
		at = by
	}
	if wait := time.Until(at); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.conn.ctx.Done():
			return 0, context.Cause(s.conn.ctx)
		}
	}
	switch {
	case late:
		return s.SendStream.Write(b) // which finds its deadline passed, and spoils the stream
	case s.conn.vanished():
		return len(b), nil
	}
	return s.SendStream.Write(b)
}

// SetWriteDeadline implements transport.SendStream.
func (s *faultySend) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	s.by = t
	s.mu.Unlock()
	return s.SendStream.SetWriteDeadline(t)
}

// Close says nothing on a half-open connection.
func (s *faultySend) Close() error {
	if s.conn.vanished() {
		return nil
	}
	return s.SendStream.Close()
}

// Reset says nothing on a half-open connection.
func (s *faultySend) Reset(code protocol.ResetCode) {
	if !s.conn.vanished() {
		s.SendStream.Reset(code)
	}
}
