package logspool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

// writer is the end of a spool at which frames are made. It is used by one Append at a time.
type writer struct {
	spool   *Spool
	file    *os.File // of the last segment
	hash    hasher
	scratch []byte
	tail    tail
	limited bool   // the notice of the limit is written
	dropped uint64 // since the last Gap, for want of room
	unsaid  []unsaid
}

// unsaid is a notice that the disk did not take. It is said at the end: it may be the only place that tells of the disk.
type unsaid struct {
	notice forge.Notice
	at     forge.WallTime
}

// maxUnsaid bounds what is said at the end, for which there has to be room in the reserve.
const maxUnsaid = reserveBytes / 2 / forge.MaxNotice

// append sorts output into what is kept now, what is kept for the end, and what is dropped.
func (w *writer) append(stream forge.LogStream, p []byte, at forge.WallTime) {
	if stream == forge.LogStdout || stream == forge.LogStderr {
		head := w.tail.head(len(p))
		rest := p[head:]
		p = p[:head]
		defer w.hold(stream, rest, at)
	}
	for len(p) > 0 {
		n := min(len(p), batchBytes)
		w.keep(stream, p[:n], at)
		p = p[n:]
	}
}

// hold puts what is beyond the limit into the tail.
func (w *writer) hold(stream forge.LogStream, p []byte, at forge.WallTime) {
	if len(p) == 0 {
		return
	}
	if !w.limited {
		w.limited = true
		w.event(forge.Notice{Level: forge.LevelWarning, Text: fmt.Sprintf(
			"this log has reached its limit of %v; of what follows the last %v are shown when the job has ended",
			w.tail.limit, w.tail.most)}, at)
	}
	w.tail.add(stream, p, at)
}

// keep writes a batch, or counts it as dropped.
func (w *writer) keep(stream forge.LogStream, p []byte, at forge.WallTime) {
	need := len(p) + headerBytes*(1+len(p)/forge.MaxLogPayload)
	if w.dropped > 0 {
		need += int(w.spool.cfg.Bound / 8) // so that a spool at its bound makes one Gap and not one for each frame
	}
	if !w.spool.room(need) || w.gap(at) != nil || w.write(stream, p, at) != nil {
		w.dropped += uint64(len(p))
	}
}

// gap says what was dropped.
func (w *writer) gap(at forge.WallTime) error {
	if w.dropped == 0 {
		return nil
	}
	b, err := logv1.EncodeEvent(forge.Gap{Bytes: w.dropped})
	if err != nil {
		return err
	}
	if err := w.write(forge.LogStructured, b, at); err != nil {
		return err
	}
	w.dropped = 0
	return nil
}

// event writes an event. One that cannot be written, or is none, is not there: it is for readers only. Of the notices that
// cannot be written, the first few wait for the end.
func (w *writer) event(e forge.StepEvent, at forge.WallTime) {
	b, err := logv1.EncodeEvent(e)
	if err != nil {
		return
	}
	if w.gap(at) == nil && w.write(forge.LogStructured, b, at) == nil { // the fault is noted
		return
	}
	if n, ok := e.(forge.Notice); ok && len(w.unsaid) < maxUnsaid {
		w.unsaid = append(w.unsaid, unsaid{n, at})
	}
}

// say writes the notices that have waited.
func (w *writer) say() error {
	var all error
	for _, u := range w.unsaid {
		b, err := logv1.EncodeEvent(u.notice)
		if err == nil {
			err = w.write(forge.LogStructured, b, u.at)
		}
		all = errors.Join(all, err)
	}
	w.unsaid = nil
	return all
}

// finish writes what the end of a log needs. The last gap and tail may go over the bound.
func (w *writer) finish(at forge.WallTime) error {
	_ = os.Remove(filepath.Join(w.spool.dir, reserveName)) // its room is for what follows
	w.dropped += w.tail.lost
	err := errors.Join(w.gap(at), w.say())
	for _, p := range w.tail.all() {
		err = errors.Join(err, w.write(p.stream, p.bytes, p.at))
	}
	w.tail = tail{}
	if err != nil {
		return fmt.Errorf("finish log: %w", err)
	}
	return nil
}

// write makes frames of p and puts them on the disk; all of them are there, or none is.
func (w *writer) write(stream forge.LogStream, p []byte, at forge.WallTime) error {
	if len(p) == 0 {
		return nil
	}
	size, first, err := w.place()
	if err == nil {
		w.scratch = w.scratch[:0]
		for rest := p; len(rest) > 0; {
			n := min(len(rest), forge.MaxLogPayload)
			w.scratch = appendHeader(w.scratch, stream, n, at)
			w.scratch = append(w.scratch, rest[:n]...)
			rest = rest[n:]
		}
		_, err = w.file.WriteAt(w.scratch, size) // over whatever a write that failed has left
	}
	if err != nil {
		err = fmt.Errorf("write log spool: %w", err)
		w.spool.note(err)
		return err
	}
	w.spool.publish(first, len(w.scratch), len(p))
	w.scratch = w.hash.add(w.scratch, len(p))
	return nil
}

// place returns where to write, in a new file where the last is full.
func (w *writer) place() (size int64, first forge.LogSeq, err error) {
	s := w.spool
	s.mu.Lock()
	first = s.next
	full := true
	if n := len(s.segments); n > 0 {
		size = s.segments[n-1].size
		full = size >= s.segment
	}
	s.mu.Unlock()
	if !full && w.file != nil {
		return size, first, nil
	}
	if err := w.close(); err != nil {
		return 0, 0, err
	}
	w.file, err = os.OpenFile(s.file(first), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = append(s.segments, segment{first: first})
	return 0, first, nil
}

func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// publish shows frames that were written to the readers.
func (s *Spool) publish(first forge.LogSeq, size, payload int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.segments[len(s.segments)-1]
	if n := len(g.marks); n == 0 || g.size-g.marks[n-1].off >= batchBytes {
		g.marks = append(g.marks, mark{seq: first, off: g.size})
	}
	g.size += int64(size)
	s.next += forge.LogSeq((payload + forge.MaxLogPayload - 1) / forge.MaxLogPayload)
	s.bytes += uint64(payload)
	s.changeLocked()
}

func (s *Spool) note(fault error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		s.fault = fault
	}
}
