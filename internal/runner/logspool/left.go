package logspool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Replay reads what a process that is no more has left in a folder: every whole frame, in order. A frame that was cut off
// by the end of the process, and what follows it, is not there. The bytes are valid until yield returns.
func Replay(dir string, yield func(forge.LogFrame) error) error {
	return replay(dir, func(_ forge.LogSeq, f forge.LogFrame, _ int) error { return yield(f) })
}

// Reopen makes a sealed spool of what a process that is no more has left in a folder, to be read and acknowledged. It has no
// seal of its own: nobody knows what else there was. A folder without frames is fs.ErrNotExist.
func Reopen(dir string) (*Spool, error) {
	s := &Spool{dir: dir, sealed: true, changed: make(chan struct{})}
	s.out = writer{spool: s, hash: newHasher()}
	err := replay(dir, func(first forge.LogSeq, f forge.LogFrame, size int) error {
		if n := len(s.segments); n == 0 || s.segments[n-1].first != first {
			if n > 0 && s.next != first {
				return fmt.Errorf("%w: frames are missing before %d", errFrame, first)
			}
			s.segments = append(s.segments, segment{first: first})
		}
		g := &s.segments[len(s.segments)-1]
		if n := len(g.marks); n == 0 || g.size-g.marks[n-1].off >= batchBytes {
			g.marks = append(g.marks, mark{seq: f.Seq, off: g.size})
		}
		g.size += int64(size)
		s.next = f.Seq + 1
		s.bytes += uint64(len(f.Bytes))
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(s.segments) == 0:
		return nil, fmt.Errorf("reopen log spool: %w", fs.ErrNotExist)
	}
	s.acked = s.segments[0].first
	return s, nil
}

// replay yields each whole frame with the first number of its file and its size there.
func replay(dir string, yield func(first forge.LogSeq, f forge.LogFrame, size int) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("replay log spool: %w", err)
	}
	for _, e := range entries { // in order of their names, and so of their frames
		first, err := strconv.ParseUint(e.Name(), 10, 63)
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name())) // a segment, a few MiB at the most
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("replay log spool: %w", err)
		}
		for seq := forge.LogSeq(first); ; seq++ {
			f, size, err := parseFrame(b, seq)
			if err != nil || size == 0 {
				break
			}
			if err := yield(forge.LogSeq(first), f, size); err != nil {
				return err
			}
			b = b[size:]
		}
	}
	return nil
}
