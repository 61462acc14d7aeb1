package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"sort"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Output is what a workload wrote to stdout and stderr, as far as it was stored when this was made: one sequence of bytes, in the
// order in which the agent read them, that is read from any place on. No line and no character set is meant. It belongs to one
// reader, who closes it, and holds a buffer.
type Output struct {
	Info Info // when this was made

	ctx  context.Context
	log  *log
	done func()
	at   int64 // what Read returns next
	from *cursor
	rest []byte // of the frame that was read last
	err  error
}

// Output opens the output of an attempt. What it reads ends with ctx.
func (s *Store) Output(ctx context.Context, attempt forge.AttemptID) (*Output, error) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return nil, err
	}
	return &Output{Info: l.info(), ctx: ctx, log: l, done: func() { s.done(l) }}, nil
}

// Close implements io.Closer.
func (o *Output) Close() error {
	o.drop()
	if o.done != nil {
		o.done()
		o.done = nil
	}
	return nil
}

func (o *Output) drop() {
	if o.from != nil {
		o.from.rest()
	}
	o.from, o.rest = nil, nil
}

// Size is how many bytes there are.
func (o *Output) Size() int64 { return int64(o.Info.Output) }

// Err is what reading has failed with, for callers that see of Read only what it has read.
func (o *Output) Err() error { return o.err }

// Seek implements io.Seeker.
func (o *Output) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.Size()
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	if offset != o.at {
		o.drop()
	}
	o.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (o *Output) Read(p []byte) (int, error) {
	if o.at >= o.Size() {
		return 0, io.EOF
	}
	if len(o.rest) == 0 {
		if err := o.fetch(); err != nil {
			if errors.Is(err, io.EOF) {
				err = ErrCorrupt // the index promised more
			}
			o.err = err
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	o.at += int64(n)
	return n, nil
}

// fetch reads the next frame that has output, or the one that has the next byte.
func (o *Output) fetch() error {
	skip := int64(0)
	if o.from == nil {
		e := o.log.entryOf(uint64(o.at))
		o.from, skip = o.log.cursor(e.seq), o.at-int64(e.output)
	}
	for o.from.seq < o.Info.Next {
		if o.ctx.Err() != nil {
			return context.Cause(o.ctx)
		}
		f, err := o.from.next()
		switch {
		case err != nil:
			return err
		case !isOutput(f.Stream):
		case int64(len(f.Bytes)) <= skip:
			skip -= int64(len(f.Bytes))
		default:
			o.rest = f.Bytes[skip:]
			return nil
		}
	}
	return io.EOF
}

// entryOf returns the last place of the index before which there is at most so much output.
func (l *log) entryOf(output uint64) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].output > output })
	if i == len(l.segments) {
		return entry{seq: 1}
	}
	entries := l.segments[i].entries
	j := sort.Search(len(entries), func(j int) bool { return entries[j].output > output })
	return entries[max(j-1, 0)]
}

// Place is a byte of a log: one of a frame's, or the one behind its last.
type Place struct {
	Seq  forge.LogSeq
	Skip int // bytes of the frame before it
}

// Bounds of a tail.
const (
	// MaxTail is the most lines that are looked for.
	MaxTail = 100_000
	// tailBytes is about how far back they are looked for: a longer tail begins within a line.
	tailBytes = 16 << 20
)

// Tail returns where the last lines of a log begin; what follows the last line end is a line too. Of a log with fewer lines it is
// the beginning. Step events are not counted and no lines, and with output only the agent's own words are neither.
func (s *Store) Tail(ctx context.Context, attempt forge.AttemptID, lines int, output bool) (Place, error) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return Place{}, err
	}
	defer s.done(l)
	end := l.info().Next
	if lines <= 0 || end <= 1 {
		return Place{Seq: end}, nil
	}
	t := tail{log: l, missing: min(lines, MaxTail), counts: isText}
	if output {
		t.counts = isOutput
	}
	return t.find(ctx, end)
}

// isText reports whether a frame is for people as it is.
func isText(stream forge.LogStream) bool { return stream != forge.LogStructured }

// tail looks for line ends, from the end of a log back.
type tail struct {
	log     *log
	counts  func(forge.LogStream) bool
	missing int  // line ends
	begun   bool // the last byte of all was seen
}

// find reads the pieces of the index from the end on.
func (t *tail) find(ctx context.Context, end forge.LogSeq) (Place, error) {
	newest := t.log.nearest(end - 1).raw
	for upto := end; upto > 1; {
		piece := t.log.nearest(upto - 1)
		starts, err := t.starts(ctx, piece.seq, upto)
		if err != nil {
			return Place{}, err
		}
		// The line before the first of them begins behind one more line end.
		if len(starts) > t.missing {
			return starts[len(starts)-1-t.missing], nil
		}
		t.missing -= len(starts)
		upto = piece.seq
		if newest-piece.raw > tailBytes {
			return Place{Seq: upto}, nil
		}
	}
	return Place{Seq: 1}, nil
}

// starts returns where lines begin behind the line ends of some frames.
func (t *tail) starts(ctx context.Context, from, upto forge.LogSeq) ([]Place, error) {
	c := t.log.cursor(from)
	defer c.rest()
	var starts []Place
	any, ended := false, false
	err := c.readTo(ctx, upto, func(f forge.LogFrame) error {
		if !t.counts(f.Stream) {
			return nil
		}
		any, ended = true, f.Bytes[len(f.Bytes)-1] == '\n'
		for at := 0; ; {
			i := bytes.IndexByte(f.Bytes[at:], '\n')
			if i < 0 {
				return nil
			}
			at += i + 1
			starts = append(starts, Place{f.Seq, at})
		}
	})
	if any && !t.begun {
		t.begun = true
		if !ended {
			t.missing-- // the last line has no end
		}
	}
	return starts, err
}

// OutputTo returns how much output stands before a place.
func (o *Output) OutputTo(p Place) (int64, error) {
	if p.Seq <= 1 && p.Skip == 0 {
		return 0, nil
	}
	if p.Seq >= o.Info.Next {
		return o.Size(), nil
	}
	e := o.log.nearest(p.Seq)
	c := o.log.cursor(e.seq)
	defer c.rest()
	n := int64(e.output)
	err := c.readTo(o.ctx, p.Seq+1, func(f forge.LogFrame) error {
		switch {
		case !isOutput(f.Stream):
		case f.Seq == p.Seq:
			n += int64(min(p.Skip, len(f.Bytes)))
		default:
			n += int64(len(f.Bytes))
		}
		return nil
	})
	return n, err
}
