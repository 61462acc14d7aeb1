package logspool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Reader reads the frames of a spool in order, as often as it is asked from anew. It is used by one goroutine.
type Reader struct {
	spool *Spool
	seq   forge.LogSeq // of the next frame
	first forge.LogSeq // of the segment that is open
	off   int64        // of the next frame in it
	file  *os.File
	buf   []byte
	list  []forge.LogFrame
}

// Reader returns a reader that begins with a frame. Close ends it.
func (s *Spool) Reader(from forge.LogSeq) *Reader { return &Reader{spool: s, seq: max(from, 1)} }

// Close gives the reader's file back.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// Next returns the next frames, at least one and about batchBytes at most, and waits for them. They are valid until the
// next call. io.EOF says that the log is sealed and read to its end; ErrAcknowledged, that the frame is gone.
func (r *Reader) Next(ctx context.Context) ([]forge.LogFrame, error) {
	for {
		g, changed, err := r.look()
		if err != nil {
			return nil, err
		}
		if changed == nil {
			return r.read(g)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// look finds the segment of the next frame, or what to wait for.
func (r *Reader) look() (segment, <-chan struct{}, error) {
	s := r.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return segment{}, nil, ErrClosed
	case r.seq >= s.next && s.sealed:
		return segment{}, nil, io.EOF
	case r.seq >= s.next:
		return segment{}, s.changed, nil
	case r.seq < s.segments[0].first:
		return segment{}, nil, ErrAcknowledged
	}
	i, found := slices.BinarySearchFunc(s.segments, r.seq, func(g segment, seq forge.LogSeq) int { return int(g.first) - int(seq) })
	if !found {
		i--
	}
	return s.segments[i], nil, nil
}

// read reads on in a segment.
func (r *Reader) read(g segment) ([]forge.LogFrame, error) {
	if r.file == nil || r.first != g.first {
		if err := r.open(g); err != nil {
			return nil, err
		}
	}
	b, err := r.fetch(g)
	if err != nil {
		return nil, err
	}
	r.list = r.list[:0]
	for len(b) > 0 {
		f, size, err := parseFrame(b, r.seq)
		if err != nil {
			return nil, fmt.Errorf("read log spool at frame %d: %w", r.seq, err)
		}
		if size == 0 {
			break
		}
		r.list = append(r.list, f)
		r.seq++
		r.off += int64(size)
		b = b[size:]
	}
	return r.list, nil
}

// fetch reads bytes of the segment from the reader's place on: one frame at the least.
func (r *Reader) fetch(g segment) ([]byte, error) {
	const most = batchBytes + headerBytes + forge.MaxLogPayload
	if r.buf == nil {
		r.buf = make([]byte, most)
	}
	b := r.buf[:min(int64(most), g.size-r.off)]
	if _, err := r.file.ReadAt(b, r.off); err != nil {
		return nil, fmt.Errorf("read log spool: %w", err)
	}
	return b, nil
}

// open opens a segment and finds the next frame in it.
func (r *Reader) open(g segment) error {
	if err := r.Close(); err != nil {
		return fmt.Errorf("read log spool: %w", err)
	}
	file, err := os.Open(r.spool.file(g.first))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrAcknowledged // between the look and now
	case err != nil:
		return fmt.Errorf("read log spool: %w", err)
	}
	r.file, r.first, r.off = file, g.first, 0
	seq := g.first
	for _, m := range g.marks {
		if m.seq <= r.seq {
			seq, r.off = m.seq, m.off
		}
	}
	var header [headerBytes]byte
	for ; seq < r.seq; seq++ {
		if _, err := file.ReadAt(header[:], r.off); err != nil {
			return fmt.Errorf("read log spool: %w", err)
		}
		r.off += headerBytes + int64(uint32(header[0])<<24|uint32(header[1])<<16|uint32(header[2])<<8|uint32(header[3]))
	}
	return nil
}
