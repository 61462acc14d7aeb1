package logs

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

// Read hands the stored frames from one on to visit, in order, until there are no more or visit returns an error, which
// is returned. It reads what is stored when it gets there, so a log that grows meanwhile is read to its end. The bytes of
// a frame are valid until visit returns. From 0 and 1 on is everything.
//
// Behind the last frame of a sealed log of which bytes were refused comes a Gap event of that many bytes, which has the
// number that the next frame would have had.
func (s *Store) Read(ctx context.Context, attempt forge.AttemptID, from forge.LogSeq, visit func(forge.LogFrame) error) error {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return err
	}
	defer s.done(l)
	c := l.cursor(from)
	defer c.rest()
	for end := l.info().Next; c.seq < end; end = l.info().Next {
		if err := c.readTo(ctx, end, visit); err != nil {
			return err
		}
	}
	return l.gap(c.seq, visit)
}

// Follow is Read for a log that grows: it waits for more, and returns nil only when the log is sealed and was handed over
// to its end. Each follower goes at its own pace, and holds a buffer while it reads and nothing while it waits.
func (s *Store) Follow(ctx context.Context, attempt forge.AttemptID, from forge.LogSeq, visit func(forge.LogFrame) error) error {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return err
	}
	defer s.done(l)
	c := l.cursor(from)
	defer c.rest()
	for {
		changed, end, sealed := l.watch()
		if c.seq < end {
			if err := c.readTo(ctx, end, visit); err != nil {
				return err
			}
			continue
		}
		if sealed {
			return l.gap(c.seq, visit)
		}
		c.rest()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.isClosed() {
			return ErrClosed
		}
	}
}

// Behind is how much is stored of a log from a frame on: the frames exactly, and their bytes, of which there may be up to a
// quarter of a MiB fewer.
func (s *Store) Behind(ctx context.Context, attempt forge.AttemptID, from forge.LogSeq) (frames, bytes uint64, err error) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return 0, 0, err
	}
	defer s.done(l)
	info := l.info()
	if from = max(from, 1); from >= info.Next {
		return 0, 0, nil
	}
	return uint64(info.Next - from), info.Bytes - l.nearest(from).raw, nil
}

// watch returns what is stored, and a channel that is closed when that changes.
func (l *log) watch() (changed <-chan struct{}, next forge.LogSeq, sealed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed, l.row.Log.Next, l.row.Log.Sealed
}

// gap says behind the end of a sealed log how much of it was refused.
func (l *log) gap(next forge.LogSeq, visit func(forge.LogFrame) error) error {
	info := l.info()
	if !info.Sealed || info.Refused == 0 || next != info.Next {
		return nil
	}
	event, err := logv1.EncodeEvent(forge.Gap{Bytes: info.Refused})
	if err != nil {
		return err
	}
	return visit(forge.LogFrame{Seq: next, Stream: forge.LogStructured, Bytes: event})
}
