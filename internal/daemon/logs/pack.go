package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

const (
	// maxPacking is how many logs wait to be packed. Those that find no place are found again later.
	maxPacking = 1024
	// packFrom is from how many bytes on a segment is packed: a smaller one takes a block of the disk in either form.
	packFrom = 4 << 10
	// packRest is how long the packer rests after each segment, in times of what it took: a fifth of one processor is enough to
	// keep up with more than a daemon takes in, and what takes it in must not feel it.
	packRest = 4
	// lookRest is its rest after each folder while it looks for what was left.
	lookRest = time.Millisecond
	// sweepEvery is how often it looks again, where there were more logs than places.
	sweepEvery = 10 * time.Minute
)

// toPack notes that a log has a segment that will not grow. It never waits.
func (s *Store) toPack(attempt forge.AttemptID) {
	select {
	case s.packing <- attempt:
	default:
		s.unqueued.Store(true)
	}
}

// packAll packs what is left from before, and then what comes, until ctx ends.
func (s *Store) packAll(ctx context.Context) {
	s.sweep(ctx, packRest)
	again := time.NewTicker(sweepEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case attempt := <-s.packing:
			s.packLog(ctx, attempt, packRest)
		case <-again.C:
			if s.unqueued.Swap(false) {
				s.sweep(ctx, packRest)
			}
		}
	}
}

// sweep looks at every log on the disk.
func (s *Store) sweep(ctx context.Context, rest int) {
	folder, err := os.Open(s.cfg.Dir)
	if err != nil {
		s.cfg.Log.Warn("logs to compress were not looked for", telemetry.KeyError, err)
		return
	}
	defer folder.Close() //nolint:errcheck // nothing was written
	for ctx.Err() == nil {
		names, err := folder.Readdirnames(256)
		for _, name := range names {
			s.sweepOne(ctx, name, rest)
		}
		if err != nil {
			return // its end, or the next sweep finds the rest
		}
	}
}

func (s *Store) sweepOne(ctx context.Context, name string, rest int) {
	attempt, err := forge.ParseID[forge.AttemptID](name)
	if err != nil || ctx.Err() != nil {
		return
	}
	list, err := listSegments(filepath.Join(s.cfg.Dir, name))
	if err != nil {
		return
	}
	for i, f := range list {
		if f.plain && (f.plainBytes >= packFrom || f.packed || i < len(list)-1) {
			s.packLog(ctx, attempt, rest)
			break
		}
	}
	wait(ctx, lookRest*time.Duration(min(rest, 1)))
}

// packLog packs the segments of a log that will not grow. What cannot be packed stays plain.
func (s *Store) packLog(ctx context.Context, attempt forge.AttemptID, rest int) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return // it is gone, or the store is
	}
	defer s.done(l)
	if err := l.tidy(ctx); err != nil {
		s.cfg.Log.Warn("a log segment that is compressed was not removed", telemetry.KeyAttempt, attempt.String(), telemetry.KeyError, err)
	}
	for _, seg := range l.closed() {
		begun := time.Now()
		if err := l.pack(ctx, seg); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("a log segment was not compressed", telemetry.KeyAttempt, attempt.String(), telemetry.KeySeq, uint64(seg.first), telemetry.KeyError, err)
			return
		}
		if wait(ctx, time.Duration(rest)*time.Since(begun)); ctx.Err() != nil {
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// closed returns the plain segments that will not grow and are worth it.
func (l *log) closed() []segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []segment
	for i, s := range l.segments {
		if s.packed == 0 && s.size >= packFrom && (i < len(l.segments)-1 || l.row.Log.Sealed) {
			list = append(list, s)
		}
	}
	return list
}

// tidy removes plain segments beside packed ones: the machine stopped before that was done.
func (l *log) tidy(ctx context.Context) error {
	if err := l.take(ctx); err != nil {
		return nil //nolint:nilerr // the next one does it
	}
	defer l.leave()
	list, err := listSegments(l.dir)
	for _, f := range list {
		if s, found := l.segmentOf(f.first); f.plain && f.packed && found && s.packed > 0 && s.first == f.first {
			err = errors.Join(err, removed(segmentPath(l.dir, f.first)), removeIndex(l.dir, f.first))
		}
	}
	return err
}

// pack puts a packed segment in the place of a plain one. Whenever the machine stops, one of them is there and whole.
func (l *log) pack(ctx context.Context, s segment) error {
	path := packedPath(l.dir, s.first)
	packed, err := l.writePacked(path+newSuffix, s)
	if err == nil {
		err = l.take(ctx)
	}
	if err != nil {
		return errors.Join(err, removed(path+newSuffix))
	}
	defer l.leave()
	if !l.still(s) {
		return removed(path + newSuffix)
	}
	if err := os.Rename(path+newSuffix, path); err != nil {
		return errors.Join(err, removed(path+newSuffix))
	}
	if err := disk.SyncFolder(l.dir); err != nil {
		return err // both are there; whoever reads the folder next takes the packed one, which has the same frames
	}
	l.mu.Lock()
	for i := range l.segments {
		if l.segments[i].first == s.first {
			l.segments[i] = packed
		}
	}
	l.mu.Unlock()
	// Readers that have the plain one open read on; those that are about to open it look again.
	return errors.Join(removed(segmentPath(l.dir, s.first)), removeIndex(l.dir, s.first))
}

// still reports whether a segment is as it was, and still will not grow.
func (l *log) still(s segment) bool {
	for _, now := range l.closed() {
		if now.first == s.first {
			return now.end == s.end && now.size == s.size
		}
	}
	return false
}

// writePacked writes the packed form of a segment beside its place and waits for the disk.
func (l *log) writePacked(path string, s segment) (segment, error) {
	plain, err := os.Open(segmentPath(l.dir, s.first))
	if err != nil {
		return s, err
	}
	defer plain.Close() //nolint:errcheck // nothing was written
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s, err
	}
	packed, err := l.store.codec.pack(file, plain, s)
	if err == nil {
		err = l.store.sync(file)
	}
	return packed, errors.Join(err, file.Close())
}

// unpack puts a plain segment in the place of a packed one. Its caller has the turn.
func (l *log) unpack(s segment) error {
	packed, err := os.Open(packedPath(l.dir, s.first))
	if err != nil {
		return err
	}
	defer packed.Close() //nolint:errcheck // nothing was written
	path := segmentPath(l.dir, s.first)
	file, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, readBuffer)
	_, err = out.WriteString(magic)
	if err == nil {
		_, err = io.Copy(out, &blocks{codec: l.store.codec, file: packed, segment: s})
	}
	if err = errors.Join(err, out.Flush()); err == nil {
		err = l.store.sync(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("unpack a log segment: %w", err)
	}
	if err := os.Rename(path+newSuffix, path); err != nil {
		return err
	}
	return errors.Join(disk.SyncFolder(l.dir), removed(packedPath(l.dir, s.first)))
}

// removed removes a file that may be gone already.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
