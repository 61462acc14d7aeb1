package agents

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Bounds of a log stream.
const (
	// maxBatch is how many bytes of a stream wait for the disk while others are on their way to it: with these about what an
	// agent sends ahead. A batch costs the disk two waits, whatever its size.
	maxBatch = 1 << 20
	// frameBytes is what a frame takes in memory besides its bytes. It counts too: of frames of one byte each there would
	// be gigabytes within the bounds.
	frameBytes = 128
	// Appends to a log are apart for as long as these, unless enoughBatch has come meanwhile: each costs the disk two waits and
	// the machine two flushes, whatever its size. A log that pours waits for longer, since nobody reads along so fast.
	quietGap    = 10 * time.Millisecond
	pouringGap  = 25 * time.Millisecond
	pourBatch   = 32 << 10 // from which a batch is of a log that pours
	enoughBatch = maxBatch / 2
	// stallWithin is how long a stream may hold unread bytes in the windows that it shares with the control stream. After
	// that it is reset, and the agent comes again later.
	stallWithin = 3 * time.Second
)

// takeStreams hands streams on until the connection ends or the server stops.
func (s *Server) takeStreams(c *conn) {
	for {
		in, err := c.link.Accept(s.serving)
		if err != nil {
			return
		}
		c.streams.Go(func() {
			switch head := in.Head.(type) {
			case *logv1.StreamHeaderV1:
				s.takeLog(c, in, head)
			case *agentv1.SecretHeaderV1:
				s.takeSecrets(c, in, head)
			case *casv1.StreamHeaderV1:
				s.takeObjects(c, in, head)
			default:
				in.Reset(protocol.ResetNotFound)
			}
		})
	}
}

// takeLog carries one log stream to its end.
func (s *Server) takeLog(c *conn, in *link.Inbound, head *logv1.StreamHeaderV1) {
	c.logs.Add(1)
	s.cfg.Metrics.streams(1)
	defer s.cfg.Metrics.streams(-1)
	defer c.logs.Add(-1)
	stop := context.AfterFunc(s.serving, func() { in.Reset(protocol.ResetResumeLater) })
	defer stop()
	attempt := head.AttemptID()
	next, code := s.admitLog(c, attempt, head)
	if code != 0 {
		in.Reset(code.Outward())
		return
	}
	if forge.LogSeq(head.First) < next {
		c.out.ack(attempt, next) // the rest need not come
	}
	i := &intake{
		server: s, conn: c, in: in, attempt: attempt, next: forge.LogSeq(head.First), zstd: head.Encoding == logv1.EncodingZstd,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	i.run()
}

// admitLog looks at whose log it is. It returns the first frame that is missing, or why the stream is refused.
func (s *Server) admitLog(c *conn, attempt forge.AttemptID, head *logv1.StreamHeaderV1) (forge.LogSeq, protocol.ResetCode) {
	if head.Encoding != logv1.EncodingPlain && !c.link.Features().Has(protocol.FeatureLogZstd) {
		return 0, protocol.ResetMalformed
	}
	var a store.Attempt
	err := s.cfg.Store.View(s.work, func(v *store.View) (err error) {
		a, err = v.Attempt(attempt)
		return err
	})
	switch of := a.Lease.Context; {
	case errors.Is(err, store.ErrNotFound):
		return 0, protocol.ResetNotFound
	case err != nil:
		return 0, s.refusal(c, attempt, err)
	case of.Runner != c.runner || of.Lease != forge.MakeID[forge.LeaseID](head.Lease):
		s.foreign(c, attempt)
		return 0, protocol.ResetNotAuthorized
	}
	info, err := s.cfg.Logs.Info(s.work, attempt)
	switch {
	case err != nil:
		return 0, s.refusal(c, attempt, err)
	case info.Sealed:
		return 0, protocol.ResetStaleLease
	case forge.LogSeq(head.First) > info.Next:
		s.resume(c, attempt, info.Next)
		return 0, protocol.ResetResumeLater
	}
	return info.Next, 0
}

// resume tells an agent from where on a log is missing.
func (s *Server) resume(c *conn, attempt forge.AttemptID, next forge.LogSeq) {
	c.out.ack(attempt, next)
	if c.link.Features().Has(protocol.FeatureLogResume) {
		ask := &logv1.LogResumeV1{Attempt: attempt.ULID, From: uint64(next)}
		s.post(func() { s.push(c, outgoing{frame: forge.Frame{ID: newMessageID()}, wire: ask}) })
	}
}

// refusal says how a log stream ends after an error.
func (s *Server) refusal(c *conn, attempt forge.AttemptID, err error) protocol.ResetCode {
	switch {
	case errors.Is(err, logs.ErrForeign):
		return protocol.ResetNotFound
	case errors.Is(err, logs.ErrSealed):
		return protocol.ResetStaleLease
	case errors.Is(err, logs.ErrHole):
		return protocol.ResetResumeLater
	}
	if s.serving.Err() == nil {
		s.cfg.Log.Warn("a log stream was ended", telemetry.KeyRunner, c.runner.String(), telemetry.KeyAttempt, attempt.String(), telemetry.KeyError, err)
	}
	switch {
	case errors.Is(err, logs.ErrQuota):
		return protocol.ResetQuota
	case errors.Is(err, store.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, logs.ErrCorrupt):
		return protocol.ResetStorageFull
	default:
		return protocol.ResetResumeLater
	}
}

// intake is one log stream on its way to the disk: one goroutine reads frames, another appends whatever has gathered
// while it was busy.
type intake struct {
	server  *Server
	conn    *conn
	in      *link.Inbound
	attempt forge.AttemptID
	next    forge.LogSeq // of the reader
	zstd    bool         // the payloads are compressed

	wake chan struct{} // holds a token when something was added, or the end came
	room chan struct{} // holds a token when something was taken

	mu     sync.Mutex
	frames []forge.LogFrame
	bytes  int  // of memory
	ended  bool // nothing more will be added
	failed bool // nothing more will be taken
}

func (i *intake) run() {
	var reader sync.WaitGroup
	reader.Go(i.read)
	err := i.append()
	code := protocol.ResetCancelled
	if err != nil {
		if code = i.server.refusal(i.conn, i.attempt, err); errors.Is(err, logs.ErrHole) {
			i.server.hole(i.conn, i.attempt)
		}
	}
	i.mu.Lock()
	i.failed = true
	i.mu.Unlock()
	nudge(i.room)
	i.in.Reset(code.Outward()) // also after its end: that gives its place back
	reader.Wait()
	_, n := i.take() // what nobody appended any more
	i.server.budget.Release(int64(n))
}

// hole asks for what is missing, after frames came that do not follow.
func (s *Server) hole(c *conn, attempt forge.AttemptID) {
	if info, err := s.cfg.Logs.Info(s.work, attempt); err == nil && !info.Sealed {
		s.resume(c, attempt, info.Next)
	}
}

// read takes frames from the stream until its end.
func (i *intake) read() {
	defer func() {
		i.mu.Lock()
		i.ended = true
		i.mu.Unlock()
		nudge(i.wake)
	}()
	frames := i.in.Frames()
	for {
		_, m, err := frames.Next()
		if err != nil {
			return // its end, or a violation that has reset it
		}
		w, ok := m.(*logv1.LogFrameV1)
		if !ok || forge.LogSeq(w.Seq) != i.next {
			i.in.Reset(protocol.ResetMalformed)
			return
		}
		i.next++
		if !i.frame(w.Frame()) {
			return
		}
	}
}

// frame puts a frame behind those that wait, decoded where that is due. It reports false where there is no room for too long, or never again, or
// the frame is none.
func (i *intake) frame(f forge.LogFrame) bool {
	plain := len(f.Bytes)
	if i.zstd {
		var err error
		if plain, err = plainBytes(f.Bytes); err != nil {
			return i.malformed(err)
		}
	}
	size := frameBytes + plain
	ctx, cancel := context.WithTimeout(i.server.serving, stallWithin)
	defer cancel()
	if err := i.server.budget.Acquire(ctx, int64(size)); err != nil {
		i.in.Reset(protocol.ResetResumeLater)
		return false
	}
	if i.zstd { // only now: what it decodes to has its room
		bytes, err := decodePayload(f.Bytes, plain)
		if err != nil {
			i.server.budget.Release(int64(size))
			return i.malformed(err)
		}
		f.Bytes = bytes
	}
	return i.add(ctx, f, size)
}

// malformed ends the stream for a payload that is not what the stream's encoding says.
func (i *intake) malformed(err error) bool {
	(*observer)(i.server).Violation(i.conn.link, &protocol.Violation{Fault: protocol.FaultMalformed, Stream: protocol.StreamLog, Err: err})
	i.in.Reset(protocol.ResetMalformed)
	return false
}

// add puts a frame, whose size in memory is reserved, behind those that wait.
func (i *intake) add(ctx context.Context, f forge.LogFrame, size int) bool {
	for {
		i.mu.Lock()
		failed, fits := i.failed, i.bytes == 0 || i.bytes+size <= maxBatch
		if fits && !failed {
			i.frames, i.bytes = append(i.frames, f), i.bytes+size
		}
		i.mu.Unlock()
		switch {
		case failed:
			i.server.budget.Release(int64(size))
			return false
		case fits:
			nudge(i.wake)
			return true
		}
		select {
		case <-i.room:
		case <-ctx.Done():
			i.server.budget.Release(int64(size))
			i.in.Reset(protocol.ResetResumeLater)
			return false
		}
	}
}

// take takes everything that waits.
func (i *intake) take() ([]forge.LogFrame, int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	frames, n := i.frames, i.bytes
	i.frames, i.bytes = nil, 0
	return frames, n
}

// append stores what has gathered and acknowledges it, until the stream has ended and nothing waits.
func (i *intake) append() error {
	for {
		frames, n := i.take()
		if len(frames) == 0 {
			if i.over() {
				return nil
			}
			select {
			case <-i.wake:
			case <-i.conn.link.Context().Done():
				if i.over() {
					return nil
				}
				<-i.wake // the reader sees the same end
			}
			continue
		}
		nudge(i.room)
		next, err := i.server.cfg.Logs.Append(i.server.work, i.conn.runner, i.attempt, frames)
		i.server.budget.Release(int64(n))
		if next > 0 {
			i.conn.out.ack(i.attempt, next)
		}
		if err != nil {
			return err
		}
		i.server.cfg.Metrics.logged(n - frameBytes*len(frames))
		gap := quietGap
		if n >= pourBatch {
			gap = pouringGap
		}
		i.gather(gap)
	}
}

// over reports whether nothing more comes and nothing waits.
func (i *intake) over() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ended && len(i.frames) == 0
}

// gather waits for more: until the gap is over, enough has come, or nothing more will.
func (i *intake) gather(gap time.Duration) {
	timer := time.NewTimer(gap)
	defer timer.Stop()
	for !i.enough() {
		select {
		case <-i.wake: // whoever takes what waits looks before it waits for the next token
		case <-timer.C:
			return
		case <-i.server.serving.Done():
			return
		}
	}
}

// enough reports whether there is no point in waiting for more.
func (i *intake) enough() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ended || i.bytes >= enoughBatch
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
