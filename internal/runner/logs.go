package runner

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Bounds of a log stream.
const (
	// maxUnacked is how much may be written and not acknowledged: enough for a long way, and little enough that a log does
	// not crowd out everything else in the daemon.
	maxUnacked = 2 << 20
	// ackWithin is how long acknowledgements may fail to come before what was sent is sent again, on a new stream.
	ackWithin = 20 * time.Second
	// leftWithin bounds the sending of what an earlier process has left of a log.
	leftWithin = 30 * time.Second
	// The wait before another stream is tried.
	streamRetry    = 250 * time.Millisecond
	maxStreamRetry = 10 * time.Second
)

// logged is whatever has a log: an attempt, or what an earlier process has left of one.
type logged interface {
	Context() forge.AttemptContext
	Spool() *logspool.Spool // nil: there is no log
}

// logStream carries an attempt's log over one connection.
type logStream struct {
	conn   *conn
	t      logged
	cancel context.CancelFunc
	acked  chan forge.LogSeq // the latest acknowledgement; has room for one
	done   chan struct{}

	// Of run. zstd is nil on a plain stream, and plain says that only such a one carries what comes next.
	zstd   *payloads
	plain  bool
	packed []byte
}

// streamLog begins to send a log, now or once its attempt is prepared.
func (a *Agent) streamLog(e core.StreamLog) {
	c := a.conns[e.Seq]
	if c == nil {
		return
	}
	t := a.attempts[e.Attempt]
	if t == nil {
		a.logsFrom[e.Attempt] = e.From
		return
	}
	c.streamLog(t, e.From)
}

// resumeLog sends a log again from where the daemon misses it. Of an attempt that is not here there is none: only the core
// knows which ones will be.
func (a *Agent) resumeLog(c *conn, id forge.AttemptID, from forge.LogSeq) {
	if t := a.attempts[id]; t != nil {
		c.streamLog(t, from)
	}
}

// openLog begins to send the log of an attempt that has just been made, over the newest connection.
func (a *Agent) openLog(t logged, from forge.LogSeq) {
	if c := a.newest(); c != nil {
		c.streamLog(t, from)
	}
}

// newest is the connection that counts, or nil.
func (a *Agent) newest() *conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.link.Context().Err() != nil {
		return nil
	}
	return a.current
}

// logAcked lets a log forget what the daemon has.
func (a *Agent) logAcked(ack *forge.LogAck) {
	a.mu.Lock()
	t := a.kept[ack.Attempt]
	a.mu.Unlock()
	if t != nil && t.Spool() != nil {
		t.Spool().Ack(ack.Next)
	}
}

// logAcked tells the stream, which may wait for it.
func (c *conn) logAcked(ack *forge.LogAck) {
	c.mu.Lock()
	s := c.logs[ack.Attempt]
	c.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case <-s.acked: // an older one that nobody has looked at
	default:
	}
	select {
	case s.acked <- ack.Next:
	default:
	}
}

// streamLog begins to send an attempt's log from a frame on. A stream that was there before is given up. What is returned closes when
// no more is sent over this connection.
func (c *conn) streamLog(t logged, from forge.LogSeq) <-chan struct{} {
	if t.Spool() == nil || c.link == nil {
		return ended
	}
	id := t.Context().Attempt
	from = max(from, t.Spool().Acked())
	ctx, cancel := context.WithCancel(c.link.Context())
	s := &logStream{conn: c, t: t, cancel: cancel, acked: make(chan forge.LogSeq, 1), done: make(chan struct{})}
	c.mu.Lock()
	before := c.logs[id]
	if c.closed {
		c.mu.Unlock()
		cancel()
		return ended
	}
	c.logs[id] = s
	c.mu.Unlock()
	if before != nil {
		before.cancel()
	}
	c.a.tasks.Go(func() {
		defer close(s.done)
		defer cancel()
		if before != nil {
			<-before.done
		}
		s.run(ctx, from)
	})
	return s.done
}

// ended is what is over before it began.
var ended = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// endLog gives up the stream of an attempt that is over.
func (c *conn) endLog(id forge.AttemptID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.logs[id]; s != nil {
		s.cancel()
		delete(c.logs, id)
	}
}

// endLogs gives all of them up and waits for them.
func (c *conn) endLogs() {
	c.mu.Lock()
	c.closed = true
	logs := c.logs
	c.logs = nil
	c.mu.Unlock()
	for _, s := range logs {
		s.cancel()
		<-s.done
	}
}

// run sends the log until all of it is acknowledged, or no more of it can be sent over this connection.
func (s *logStream) run(ctx context.Context, from forge.LogSeq) {
	log := s.conn.a.cfg.Log.With(telemetry.KeyAttempt, s.t.Context().Attempt.String(), telemetry.KeyConnection, s.conn.seq)
	// Of a log that has ended and is acknowledged there is nothing to send. The daemon may have sealed it, and would refuse the
	// stream as if the lease were over.
	for wait := streamRetry; ctx.Err() == nil && !s.t.Spool().Over(from); wait = min(2*wait, maxStreamRetry) {
		next, err := s.send(ctx, from)
		if next > from {
			from, wait = next, streamRetry
		}
		reset, wasReset := errors.AsType[*transport.ResetError](err)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, logspool.ErrClosed):
			return
		case errors.Is(err, errNotZstd):
			s.plain = true
			continue
		case wasReset && reset.Code.Retry() == protocol.ResetNever:
			log.Warn("the daemon takes no more of this log", telemetry.KeyReason, reset.Code.String())
			return
		case wasReset || errors.Is(err, os.ErrDeadlineExceeded):
			log.Debug("a log is sent again from what was acknowledged", telemetry.KeySeq, uint64(from), telemetry.KeyError, err)
		default:
			if _, closed := errors.AsType[*transport.CloseError](err); !closed {
				log.Error("a log cannot be sent", telemetry.KeyError, err)
			}
			return
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
			return
		}
	}
}

// flight is what was written and not acknowledged.
type flight struct {
	frames []inFlight
	bytes  int
}

type inFlight struct {
	seq   forge.LogSeq
	bytes int
}

func (f *flight) add(seq forge.LogSeq, bytes int) {
	f.frames = append(f.frames, inFlight{seq, bytes})
	f.bytes += bytes
}

func (f *flight) ack(next forge.LogSeq) {
	for len(f.frames) > 0 && f.frames[0].seq < next {
		f.bytes -= f.frames[0].bytes
		f.frames = f.frames[1:]
	}
}

// send sends frames on one stream. It returns the first frame that is not acknowledged, and nil once there is none left.
func (s *logStream) send(ctx context.Context, from forge.LogSeq) (acked forge.LogSeq, err error) {
	stream, err := s.open(ctx, from)
	if err != nil {
		return from, err
	}
	stop := context.AfterFunc(ctx, func() { stream.Reset(protocol.ResetCancelled) })
	defer stop()
	reader := s.t.Spool().Reader(from)
	defer func() { err = errors.Join(err, reader.Close()) }()
	acked = from
	var sent flight
	for {
		frames, err := s.nextFrames(ctx, reader, &sent, &acked)
		if errors.Is(err, io.EOF) {
			err = s.drain(ctx, &sent, &acked)
			if err == nil {
				return acked, stream.Close()
			}
		}
		if err == nil {
			err = s.write(stream, frames, &sent)
		}
		if errors.Is(err, errNotZstd) {
			if lost := s.drain(ctx, &sent, &acked); lost == nil {
				return acked, errors.Join(err, stream.Close())
			}
		}
		if err != nil {
			stream.Reset(protocol.ResetCancelled)
			return acked, err
		}
	}
}

// open opens a stream in the encoding that pays: compressed where the daemon takes that.
func (s *logStream) open(ctx context.Context, from forge.LogSeq) (transport.SendStream, error) {
	tuple, encoding := s.t.Context(), logv1.EncodingPlain
	s.zstd = nil
	if s.conn.link.Features().Has(protocol.FeatureLogZstd) && !s.plain {
		encoder, err := newPayloadEncoder()
		if err != nil {
			return nil, err
		}
		s.zstd, encoding = &payloads{encoder: encoder}, logv1.EncodingZstd
	}
	return s.conn.link.OpenSend(ctx, protocol.StreamLog, &logv1.StreamHeaderV1{
		Attempt: tuple.Attempt.ULID, Lease: tuple.Lease.ULID, First: uint64(from), Encoding: encoding,
	})
}

// nextFrames waits for room on the way and for something to send, and takes acknowledgements meanwhile. A workload may be
// silent for long; what it said before must be acknowledged all the same.
func (s *logStream) nextFrames(ctx context.Context, r *logspool.Reader, sent *flight, acked *forge.LogSeq) ([]forge.LogFrame, error) {
	for {
		for sent.bytes >= maxUnacked {
			if err := s.await(ctx, sent, acked); err != nil {
				return nil, err
			}
		}
		s.takePending(sent, acked)
		if len(sent.frames) == 0 {
			return r.Next(ctx)
		}
		before := *acked
		soon, cancel := context.WithTimeout(ctx, ackWithin)
		frames, err := r.Next(soon)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return frames, err
		}
		if s.takePending(sent, acked); len(sent.frames) > 0 && *acked == before {
			return nil, os.ErrDeadlineExceeded
		}
	}
}

func (s *logStream) takePending(sent *flight, acked *forge.LogSeq) {
	select {
	case next := <-s.acked:
		s.take(next, sent, acked)
	default:
	}
}

// drain waits until everything that was sent is acknowledged.
func (s *logStream) drain(ctx context.Context, sent *flight, acked *forge.LogSeq) error {
	for len(sent.frames) > 0 {
		if err := s.await(ctx, sent, acked); err != nil {
			return err
		}
	}
	return nil
}

// await waits for an acknowledgement, but not for ever: a daemon that has lost what it was sent does not know that.
func (s *logStream) await(ctx context.Context, sent *flight, acked *forge.LogSeq) error {
	timer := time.NewTimer(ackWithin)
	defer timer.Stop()
	select {
	case next := <-s.acked:
		s.take(next, sent, acked)
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *logStream) take(next forge.LogSeq, sent *flight, acked *forge.LogSeq) {
	sent.ack(next)
	*acked = max(*acked, next)
}

// write puts frames on the stream. Those before one that the stream cannot carry are written too. What counts as written is their
// plain size.
func (s *logStream) write(stream io.Writer, frames []forge.LogFrame, sent *flight) error {
	var b []byte
	var full error
	for _, f := range frames {
		before, size := len(b), len(f.Bytes)
		if s.zstd != nil {
			if s.packed, full = s.zstd.append(s.packed[:0], f.Bytes); full != nil {
				break
			}
			f.Bytes = s.packed
		}
		var err error
		if b, err = s.conn.link.AppendFrame(b, ident.New[forge.MessageID](), forge.MessageID{}, logv1.NewLogFrame(f)); err != nil {
			return err
		}
		sent.add(f.Seq, max(len(b)-before, size))
	}
	_, err := stream.Write(b)
	return errors.Join(full, err)
}

// leftover is the log that an earlier process has left of an attempt.
type leftover struct {
	tuple forge.AttemptContext
	spool *logspool.Spool
}

func (l leftover) Context() forge.AttemptContext { return l.tuple }
func (l leftover) Spool() *logspool.Spool        { return l.spool }

// sendLeft sends what an earlier process has not sent of a log, before it is removed, if that can be done in a while: the
// daemon takes the rest of the log of a lost attempt for some minutes. Case B39.
func (a *Agent) sendLeft(id forge.AttemptID) {
	tuple, known := a.previous[id]
	c := a.newest()
	if !known || c == nil {
		return
	}
	spool, err := logspool.Reopen(a.spoolDir(id))
	if err != nil {
		return // it has left none
	}
	l := leftover{tuple, spool}
	a.keep(id, l)
	select {
	case <-c.streamLog(l, spool.Acked()):
	case <-time.After(leftWithin):
	case <-a.life.Done():
	}
	c.endLog(id)
	if err := spool.Close(); err != nil {
		a.cfg.Log.Warn("a log spool was not closed", telemetry.KeyAttempt, id.String(), telemetry.KeyError, err)
	}
}
