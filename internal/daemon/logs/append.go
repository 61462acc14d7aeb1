package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Append stores frames of an attempt's log, as a runner sent them: valid, in order, without holes between them. Frames
// that are stored already are skipped. It returns the first frame that is not stored, when everything before it survives
// the end of this machine, and with an error as far as that is known, else 0.
//
// Errors are those above; any other error is the disk's or the database's, and the frames may be sent again. The bytes
// of the frames are not kept.
func (s *Store) Append(ctx context.Context, runner forge.RunnerID, attempt forge.AttemptID, frames []forge.LogFrame) (forge.LogSeq, error) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return 0, err
	}
	defer s.done(l)
	if l.info().Runner != runner {
		return 0, ErrForeign
	}
	if err := l.take(ctx); err != nil {
		return 0, err
	}
	defer l.leave()
	defer l.rest()
	return l.append(ctx, frames)
}

// append goes on from whatever is stored. It looks a second time where the row was not as it seemed.
func (l *log) append(ctx context.Context, frames []forge.LogFrame) (forge.LogSeq, error) {
	for range 2 {
		if err := l.recoverOpen(ctx); err != nil {
			return l.info().Next, err
		}
		next := l.info().Next
		fresh, err := after(frames, next)
		if err != nil || len(fresh) == 0 {
			return next, err
		}
		fits, quota := l.within(fresh)
		if len(fits) == 0 {
			return next, quota
		}
		stored, err := l.put(ctx, fits)
		if err != nil {
			l.forget()
			return next, fmt.Errorf("append to log %v: %w", l.attempt, err)
		}
		if stored {
			return l.info().Next, quota
		}
		l.forget()
	}
	return l.info().Next, fmt.Errorf("append to log %v: its row changes under us", l.attempt)
}

// recoverOpen is recover for a log that must not be sealed.
func (l *log) recoverOpen(ctx context.Context) error {
	if l.info().Sealed {
		return ErrSealed
	}
	if err := l.recover(ctx); err != nil {
		return err
	}
	if l.info().Sealed {
		l.forget()
		return ErrSealed
	}
	return nil
}

// after cuts what is stored already off a batch.
func after(frames []forge.LogFrame, next forge.LogSeq) ([]forge.LogFrame, error) {
	for i := 1; i < len(frames); i++ {
		if frames[i].Seq != frames[i-1].Seq+1 {
			return nil, ErrHole
		}
	}
	i := 0
	for i < len(frames) && frames[i].Seq < next {
		i++
	}
	if i < len(frames) && frames[i].Seq > next {
		return nil, ErrHole
	}
	return frames[i:], nil
}

// within cuts off what would exceed the quota, and counts it. What frames take besides their bytes has a quota of the same
// size, so that frames of a byte each do not fill the disk with their heads.
func (l *log) within(frames []forge.LogFrame) ([]forge.LogFrame, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := uint64(l.row.Limit)
	if limit == 0 {
		limit = uint64(forge.MaxLogLimit)
	}
	limit += Slack
	total := l.row.Log.Bytes
	for i, f := range frames {
		if total += uint64(len(f.Bytes)); total > limit || uint64(f.Seq)*recordBytes > limit {
			for _, f := range frames[i:] {
				l.refused += uint64(len(f.Bytes))
			}
			l.saveRefused()
			return frames[:i], ErrQuota
		}
	}
	return frames, nil
}

// saveRefused writes down how much was refused, for whoever reads the log. It is worth no more than a try.
func (l *log) saveRefused() {
	text := strconv.FormatUint(l.refused, 10)
	if err := os.WriteFile(filepath.Join(l.dir, refusedName), []byte(text), 0o600); err != nil {
		l.store.cfg.Log.Warn("refused bytes of a log were not written down", telemetry.KeyAttempt, l.attempt.String(), telemetry.KeyError, err)
	}
}

// put makes frames durable, one segment after another. It reports false where the row was not as expected; then
// nothing of the last segment's frames is stored.
func (l *log) put(ctx context.Context, frames []forge.LogFrame) (bool, error) {
	for len(frames) > 0 {
		seg, n, err := l.place(frames)
		if err != nil {
			return false, err
		}
		if done, err := l.commit(ctx, seg, frames[:n]); err != nil || !done {
			return false, err
		}
		frames = frames[n:]
	}
	return true, nil
}

// keepBuffer is the largest buffer that is kept for another append: one that has grown to a batch of a MiB.
const keepBuffer = 2 << 20

// buffer returns an empty buffer, and what gives it back.
func (s *Store) buffer() (*[]byte, func()) {
	b, ok := s.buffers.Get().(*[]byte)
	if !ok {
		b = new([]byte)
	}
	*b = (*b)[:0]
	return b, func() {
		if cap(*b) <= keepBuffer {
			s.buffers.Put(b)
		}
	}
}

// place writes as many frames as the current segment takes, or begins the next one, and waits for the disk. It returns the
// segment as it will be once the row has moved.
func (l *log) place(frames []forge.LogFrame) (segment, int, error) {
	seg, fresh := l.room(frames[0])
	buf, giveBack := l.store.buffer()
	defer giveBack()
	at := seg.size
	if fresh {
		at = 0
		*buf = append(*buf, magic...)
	}
	n := 0
	for _, f := range frames {
		if n > 0 && seg.size+recordBytes+int64(len(f.Bytes)) > SegmentBytes {
			break
		}
		*buf = appendRecord(*buf, f)
		seg.note(f)
		n++
	}
	if err := l.reach(seg.first, fresh); err != nil {
		return segment{}, 0, err
	}
	if err := l.store.write(l.file, *buf, at); err != nil {
		return segment{}, 0, err
	}
	if err := l.store.sync(l.file); err != nil {
		return segment{}, 0, err
	}
	if fresh {
		return seg, n, syncDirs(l.dir, filepath.Dir(l.dir))
	}
	return seg, n, nil
}

// room returns a copy of the segment that takes a frame, and whether it is a new one.
func (l *log) room(f forge.LogFrame) (segment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.segments)
	if n == 0 {
		return newSegment(nil), true
	}
	seg := l.segments[n-1]
	if seg.packed > 0 || seg.size+recordBytes+int64(len(f.Bytes)) > SegmentBytes {
		return newSegment(&seg), true
	}
	seg.entries = slices.Clip(seg.entries)
	return seg, false
}

// reach opens the file of a segment.
func (l *log) reach(first forge.LogSeq, fresh bool) error {
	if l.file != nil && !fresh {
		return nil
	}
	if !fresh {
		if err := removeIndex(l.dir, first); err != nil {
			return err
		}
	}
	l.closeFile()
	flags := os.O_WRONLY
	if fresh {
		if n := len(l.segments); n > 0 {
			last := l.segments[n-1]
			l.index(&last)
		}
		flags |= os.O_CREATE | os.O_TRUNC
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return err
		}
	}
	return l.openFile(segmentPath(l.dir, first), flags)
}

// commit moves the row, and then what readers see. It reports false where the row was not as expected.
func (l *log) commit(ctx context.Context, seg segment, frames []forge.LogFrame) (bool, error) {
	bytes := uint64(0)
	for _, f := range frames {
		_, _ = l.hash.Write(f.Bytes) // never fails
		bytes += uint64(len(f.Bytes))
	}
	cmd := &authority.AppendLog{
		Runner: l.row.Log.Runner, Attempt: l.attempt, First: frames[0].Seq, Count: uint64(len(frames)), Bytes: bytes,
		Hash: sum(l.hash),
	}
	answer, err := l.store.cfg.Rows.Do(ctx, cmd)
	if err != nil || !answer.Done {
		return false, err
	}
	l.mu.Lock()
	r := &l.row.Log
	r.Next, r.Bytes, r.Hash = answer.Next, r.Bytes+bytes, cmd.Hash
	fresh := true
	if n := len(l.segments); n > 0 && l.segments[n-1].first == seg.first {
		l.segments[n-1], fresh = seg, false
	} else {
		l.segments = append(l.segments, seg)
	}
	l.mu.Unlock()
	l.wake()
	if fresh && seg.first > 1 {
		l.store.toPack(l.attempt) // the segment before will not grow any more
	}
	return true, nil
}

// syncDirs waits until the names in folders survive the end of this machine.
func syncDirs(dirs ...string) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, disk.SyncFolder(dir))
	}
	return errors.Join(errs...)
}
