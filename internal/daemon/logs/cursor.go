package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// cursor reads the stored frames of a log in order. It belongs to one reader, who closes it. Of a plain segment it holds one
// buffer, of a packed one a block and its compressed form; it never reads beyond what the row says is stored, since what is there
// may change.
type cursor struct {
	log     *log
	seq     forge.LogSeq // of the next frame
	file    *os.File
	records *recordReader
	first   forge.LogSeq // of the segment that is read
	upto    forge.LogSeq // what can be read of it
	plain   bool         // it was plain
	offset  int64        // of the next frame, if it was
}

// cursor returns one that begins with a frame.
func (l *log) cursor(from forge.LogSeq) *cursor { return &cursor{log: l, seq: max(from, 1)} }

// rest gives the file back. Reading goes on where it was.
func (c *cursor) rest() {
	if c.file != nil {
		_ = c.file.Close() // nothing was written
	}
	c.file, c.records = nil, nil
}

// next returns the next frame, which is stored. Its bytes are valid until the next call.
func (c *cursor) next() (forge.LogFrame, error) {
	for {
		if c.records == nil || c.seq >= c.upto {
			if err := c.open(); err != nil {
				return forge.LogFrame{}, fmt.Errorf("read log %v, frame %d: %w", c.log.attempt, c.seq, err)
			}
		}
		f, err := c.records.next()
		if errors.Is(err, errTorn) || errors.Is(err, io.EOF) || err == nil && f.Seq > c.seq {
			err = ErrCorrupt
		}
		if err != nil {
			return f, fmt.Errorf("read log %v, frame %d: %w", c.log.attempt, c.seq, err)
		}
		c.offset += int64(recordBytes + len(f.Bytes))
		if f.Seq == c.seq {
			c.seq++
			return f, nil
		}
	}
}

// open begins to read the segment of the next frame, or what has come to it. A segment may be packed between the look at it and
// the opening of its file: then another look finds it.
func (c *cursor) open() error {
	for range 2 {
		s, found := c.log.segmentOf(c.seq)
		if !found {
			return fmt.Errorf("%w: it is not there", ErrCorrupt)
		}
		err := c.begin(&s)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%w: its file is not there", ErrCorrupt)
}

func (c *cursor) begin(s *segment) (err error) {
	known := c.plain && c.first == s.first
	c.rest()
	place := s.before(c.seq)
	c.first, c.upto, c.plain = s.first, s.end, s.packed == 0
	if !c.plain {
		if c.file, err = os.Open(packedPath(c.log.dir, s.first)); err == nil {
			c.records = &recordReader{r: &blocks{codec: c.log.store.codec, file: c.file, segment: *s, next: place}}
		}
		return err
	}
	if !known {
		c.offset = s.entries[place].offset
	}
	if c.file, err = os.Open(segmentPath(c.log.dir, s.first)); err == nil {
		c.records = &recordReader{r: bufio.NewReaderSize(io.NewSectionReader(c.file, c.offset, s.size-c.offset), readBuffer)}
	}
	return err
}

// segmentOf returns the segment of a stored frame.
func (l *log) segmentOf(seq forge.LogSeq) (segment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.findLocked(seq)
	if i < 0 {
		return segment{}, false
	}
	return l.segments[i], true
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

// nearest returns the last place of the index at or before a stored frame.
func (l *log) nearest(seq forge.LogSeq) entry {
	if s, found := l.segmentOf(seq); found {
		return s.entries[s.before(seq)]
	}
	return entry{seq: 1}
}

// readTo hands over the frames up to one that is stored, and returns nil when it got there.
func (c *cursor) readTo(ctx context.Context, end forge.LogSeq, visit func(forge.LogFrame) error) error {
	for c.seq < end {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, err := c.next()
		if err != nil {
			return err
		}
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
