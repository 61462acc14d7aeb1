package inmem

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// stream is both directions of a stream; back is nil where there is one.
type stream struct {
	which     int
	from      *Conn // that opened it
	out, back *pipe
	held      int // directions that the end which did not open it has not ended
}

func newStream(from *Conn, which int) *stream {
	s := &stream{which: which, from: from, held: 1}
	s.out = &pipe{stream: s, writer: from, reader: from.other}
	if which == twoWay {
		s.back = &pipe{stream: s, writer: from.other, reader: from}
		s.held = 2
	}
	return s
}

func (s *stream) opener() *streamEnd   { return &streamEnd{send: s.out, receive: s.back} }
func (s *stream) accepter() *streamEnd { return &streamEnd{send: s.back, receive: s.out} }

// endedLocked counts a direction that has ended at one end. The place at the end that did not open the stream is free
// once both have.
func (s *stream) endedLocked(at *Conn) {
	if at == s.from {
		return
	}
	if s.held--; s.held == 0 {
		shape := &s.from.shapes[s.which]
		shape.open--
		shape.freed.broadcast()
	}
}

// pipe is one direction of a stream.
type pipe struct {
	stream         *stream
	writer, reader *Conn

	buf       []byte
	reset     *transport.ResetError // by the writer
	stop      *transport.ResetError // by the reader
	closed    bool                  // by the writer: Close or Reset
	late      bool                  // a Write ran into its deadline
	writeOver bool                  // the writer has ended it
	readOver  bool                  // the reader has ended it
	readBy    time.Time
	writeBy   time.Time
	changed   signal
}

func (p *pipe) overLocked(over *bool, at *Conn) {
	if !*over {
		*over = true
		p.stream.endedLocked(at)
	}
}

// drainLocked takes n bytes out of the buffer.
func (p *pipe) drainLocked(n int) {
	p.buf = p.buf[n:]
	p.writer.unread -= n
	p.writer.drained.broadcast()
	p.changed.broadcast()
}

func (p *pipe) read(b []byte) (int, error) {
	c := p.reader
	for {
		c.mu.Lock()
		n, done, err := p.readLocked(b)
		if done {
			c.mu.Unlock()
			return n, err
		}
		changed, by := p.changed.wait(), p.readBy
		c.mu.Unlock()
		wait(c, by, changed, nil)
	}
}

func (p *pipe) readLocked(b []byte) (n int, done bool, err error) {
	switch {
	case p.reader.ctx.Err() != nil:
		return 0, true, context.Cause(p.reader.ctx)
	case p.stop != nil:
		return 0, true, net.ErrClosed
	case p.reset != nil:
		p.overLocked(&p.readOver, p.reader)
		return 0, true, p.reset
	case len(p.buf) > 0:
		n := copy(b, p.buf)
		p.drainLocked(n)
		return n, true, nil
	case p.closed:
		p.overLocked(&p.readOver, p.reader)
		return 0, true, io.EOF
	case passed(p.readBy):
		return 0, true, os.ErrDeadlineExceeded
	}
	return 0, len(b) == 0, nil
}

func (p *pipe) write(b []byte) (int, error) {
	c, written := p.writer, 0
	for {
		c.mu.Lock()
		if err := p.writeErrorLocked(); err != nil {
			c.mu.Unlock()
			return written, err
		}
		room := max(0, min(c.limits.StreamWindow-len(p.buf), c.limits.ConnWindow-c.unread, len(b)-written))
		if room > 0 {
			p.buf = append(p.buf, b[written:written+room]...)
			c.unread += room
			written += room
			p.showLocked()
			p.changed.broadcast()
		}
		if written == len(b) {
			c.mu.Unlock()
			return written, nil
		}
		changed, drained, by := p.changed.wait(), c.drained.wait(), p.writeBy
		c.mu.Unlock()
		wait(c, by, changed, drained)
	}
}

func (p *pipe) writeErrorLocked() error {
	switch {
	case p.writer.ctx.Err() != nil:
		return context.Cause(p.writer.ctx)
	case p.closed:
		return net.ErrClosed
	case p.stop != nil:
		p.overLocked(&p.writeOver, p.writer)
		return p.stop
	case p.late || passed(p.writeBy):
		p.late = true
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (p *pipe) showLocked() { p.writer.showLocked(p.stream) }

func (p *pipe) close() error {
	c := p.writer
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case p.closed:
		return nil
	case p.late:
		p.resetLocked(protocol.ResetTimeout)
		return os.ErrDeadlineExceeded
	}
	p.closed = true
	p.overLocked(&p.writeOver, c)
	p.showLocked()
	p.changed.broadcast()
	if p.stop != nil {
		return p.stop
	}
	return nil
}

func (p *pipe) giveUp(code protocol.ResetCode) {
	p.writer.mu.Lock()
	defer p.writer.mu.Unlock()
	if p.writer.ctx.Err() == nil && !p.closed {
		p.resetLocked(code)
	}
}

func (p *pipe) resetLocked(code protocol.ResetCode) {
	p.closed, p.reset = true, &transport.ResetError{Code: code.Outward()}
	p.overLocked(&p.writeOver, p.writer)
	p.drainLocked(len(p.buf))
	p.showLocked()
}

func (p *pipe) stopReading(code protocol.ResetCode) {
	c := p.reader
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil || p.stop != nil || p.readOver {
		return
	}
	p.stop = &transport.ResetError{Code: code.Outward()}
	p.overLocked(&p.readOver, c)
	p.drainLocked(len(p.buf))
	if c == p.stream.from {
		c.showLocked(p.stream)
	}
}

func (p *pipe) setDeadline(by *time.Time, t time.Time) {
	p.writer.mu.Lock()
	defer p.writer.mu.Unlock()
	*by = t
	p.changed.broadcast()
}

func passed(by time.Time) bool { return !by.IsZero() && !time.Now().Before(by) }

// wait waits for a change, a deadline or the end of the connection.
func wait(c *Conn, by time.Time, changed, drained <-chan struct{}) {
	var late <-chan time.Time
	if !by.IsZero() {
		timer := time.NewTimer(time.Until(by))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-changed:
	case <-drained:
	case <-late:
	case <-c.ctx.Done():
	}
}

// streamEnd is a stream as one end has it. send or receive is nil where there is one direction.
type streamEnd struct{ send, receive *pipe }

func (s *streamEnd) Read(b []byte) (int, error)  { return s.receive.read(b) }
func (s *streamEnd) Write(b []byte) (int, error) { return s.send.write(b) }
func (s *streamEnd) Close() error                { return s.send.close() }

func (s *streamEnd) Reset(code protocol.ResetCode) { s.send.giveUp(code) }
func (s *streamEnd) Stop(code protocol.ResetCode)  { s.receive.stopReading(code) }

func (s *streamEnd) SetReadDeadline(t time.Time) error {
	s.receive.setDeadline(&s.receive.readBy, t)
	return nil
}

func (s *streamEnd) SetWriteDeadline(t time.Time) error {
	s.send.setDeadline(&s.send.writeBy, t)
	return nil
}

func (s *streamEnd) SetPriority(transport.Priority) {} // there is no queue to jump
