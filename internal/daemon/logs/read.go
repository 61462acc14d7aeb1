package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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
	next, err := l.read(ctx, max(from, 1), visit)
	if err != nil {
		return err
	}
	return l.gap(next, visit)
}

// Follow is Read for a log that grows: it waits for more, and returns nil only when the log is sealed and was handed over
// to its end. Each follower goes at its own pace.
func (s *Store) Follow(ctx context.Context, attempt forge.AttemptID, from forge.LogSeq, visit func(forge.LogFrame) error) error {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return err
	}
	defer s.done(l)
	next := max(from, 1)
	for {
		changed, end, sealed := l.watch()
		if next < end {
			if next, err = l.read(ctx, next, visit); err != nil {
				return err
			}
			continue
		}
		if sealed {
			return l.gap(next, visit)
		}
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

// Text writes the bytes of stdout, stderr and the agent's own words from a frame on, as they are: no line and no character
// set is meant. With follow it goes on until the log is sealed.
func (s *Store) Text(ctx context.Context, attempt forge.AttemptID, from forge.LogSeq, follow bool, w io.Writer) error {
	visit := func(f forge.LogFrame) error {
		if f.Stream == forge.LogStructured {
			return nil
		}
		_, err := w.Write(f.Bytes)
		return err
	}
	if follow {
		return s.Follow(ctx, attempt, from, visit)
	}
	return s.Read(ctx, attempt, from, visit)
}

// Tail returns the frame from which on a log has at least so many line ends more in what Text writes, or 1 where it has
// fewer. It looks at no more than the last tailBytes of the log, and never past maxTail lines.
func (s *Store) Tail(ctx context.Context, attempt forge.AttemptID, lines int) (forge.LogSeq, error) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return 0, err
	}
	defer s.done(l)
	end := l.info().Next
	lines = min(lines, maxTail)
	if lines <= 0 || end <= 1 {
		return end, nil
	}
	return l.tail(ctx, end, lines)
}

// Bounds of Tail.
const (
	maxTail   = 100_000
	tailBytes = 16 << 20
)

// tail counts line ends in pieces of the index from the end on.
func (l *log) tail(ctx context.Context, end forge.LogSeq, lines int) (forge.LogSeq, error) {
	newest := l.nearest(end - 1).raw
	total := 0
	for upto := end; upto > 1; {
		piece := l.nearest(upto - 1)
		var starts []forge.LogSeq
		_, err := l.readTo(ctx, piece.seq, upto, func(f forge.LogFrame) error {
			starts = appendStarts(starts, f)
			return nil
		})
		if err != nil {
			return 0, err
		}
		// The line before the first of them begins behind one more line end.
		if total+len(starts) > lines {
			return starts[len(starts)-1-(lines-total)], nil
		}
		total += len(starts)
		upto = piece.seq
		if newest-piece.raw > tailBytes {
			return upto, nil
		}
	}
	return 1, nil
}

// appendStarts appends, for each line end of a frame, the frame in which the next line begins.
func appendStarts(starts []forge.LogSeq, f forge.LogFrame) []forge.LogSeq {
	if f.Stream == forge.LogStructured {
		return starts
	}
	for i, b := range f.Bytes {
		switch {
		case b == '\n' && i == len(f.Bytes)-1:
			starts = append(starts, f.Seq+1)
		case b == '\n':
			starts = append(starts, f.Seq)
		}
	}
	return starts
}

// nearest returns the last place of the index at or before a stored frame.
func (l *log) nearest(seq forge.LogSeq) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.findLocked(seq); i >= 0 {
		return l.segments[i].before(seq)
	}
	return entry{seq: 1}
}

// findLocked returns the index of the segment that has a frame, or -1.
func (l *log) findLocked(seq forge.LogSeq) int {
	low, high := 0, len(l.segments)
	for low < high {
		if mid := (low + high) / 2; l.segments[mid].end <= seq {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(l.segments) || l.segments[low].first > seq {
		return -1
	}
	return low
}

// watch returns what is stored, and a channel that is closed when that changes.
func (l *log) watch() (changed <-chan struct{}, next forge.LogSeq, sealed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed, l.row.Log.Next, l.row.Log.Sealed
}

// read hands over all stored frames from one on and returns the first that is not stored.
func (l *log) read(ctx context.Context, from forge.LogSeq, visit func(forge.LogFrame) error) (forge.LogSeq, error) {
	for {
		end := l.info().Next
		if from >= end {
			return from, nil
		}
		next, err := l.readTo(ctx, from, end, visit)
		if err != nil {
			return next, err
		}
		from = next
	}
}

// readTo hands over the frames from one on up to another, all of which are stored, and returns the first that it did not.
func (l *log) readTo(ctx context.Context, from, end forge.LogSeq, visit func(forge.LogFrame) error) (forge.LogSeq, error) {
	for from < end {
		next, err := l.readSegment(ctx, from, end, visit)
		if err != nil {
			return next, err
		}
		from = next
	}
	return from, nil
}

// readSegment does so within the segment of the first.
func (l *log) readSegment(ctx context.Context, from, end forge.LogSeq, visit func(forge.LogFrame) error) (forge.LogSeq, error) {
	l.mu.Lock()
	i := l.findLocked(from)
	if i < 0 {
		l.mu.Unlock()
		return from, fmt.Errorf("read log %v: %w: frame %d is not there", l.attempt, ErrCorrupt, from)
	}
	first, at := l.segments[i].first, l.segments[i].before(from)
	end = min(end, l.segments[i].end)
	l.mu.Unlock()
	file, err := os.Open(segmentPath(l.dir, first))
	if err != nil {
		return from, fmt.Errorf("read log %v: %w", l.attempt, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if _, err := file.Seek(at.offset, io.SeekStart); err != nil {
		return from, fmt.Errorf("read log %v: %w", l.attempt, err)
	}
	records := &recordReader{r: bufio.NewReaderSize(file, readBuffer)}
	for from < end {
		f, err := records.next()
		if errors.Is(err, errTorn) || errors.Is(err, io.EOF) {
			err = ErrCorrupt
		}
		if err != nil {
			return from, fmt.Errorf("read log %v, frame %d: %w", l.attempt, from, err)
		}
		if f.Seq < from {
			continue
		}
		if ctx.Err() != nil {
			return from, context.Cause(ctx)
		}
		if err := visit(f); err != nil {
			return from, err
		}
		from = f.Seq + 1
	}
	return from, nil
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
