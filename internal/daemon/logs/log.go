package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/zeebo/blake3"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// log is one open log. Whoever changes it has its turn; what readers see stands under mu.
type log struct {
	store   *Store
	attempt forge.AttemptID
	dir     string
	users   int    // under the store's mu
	used    uint64 // likewise

	turn chan struct{} // holds one token while somebody has the turn

	// Of whoever has the turn. hash is nil until the log was recovered for appending.
	hash *blake3.Hasher
	file *os.File // the last segment, where something was appended and few files are open

	mu       sync.Mutex
	loaded   bool
	row      Row
	segments []segment // ascending; entries are only ever added
	refused  uint64
	changed  chan struct{} // closed and replaced when something was stored or the log was sealed
}

func newLog(s *Store, attempt forge.AttemptID, dir string) *log {
	return &log{store: s, attempt: attempt, dir: dir, turn: make(chan struct{}, 1), changed: make(chan struct{})}
}

func (l *log) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *log) leave() { <-l.turn }

func (l *log) isLoaded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded
}

func (l *log) info() Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.row.Log
	return Info{
		Runner: r.Runner, Next: r.Next, Bytes: r.Bytes, Output: l.outputLocked(), Hash: r.Hash, Sealed: r.Sealed, Refused: l.refused,
	}
}

// outputLocked is how many bytes of the stored frames are the workload's.
func (l *log) outputLocked() uint64 {
	if n := len(l.segments); n > 0 {
		return l.segments[n-1].output
	}
	return 0
}

// load reads row and segments once. Segments that will not grow have an index; the others are scanned.
func (l *log) load(ctx context.Context) error {
	if l.isLoaded() {
		return nil
	}
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.leave()
	if l.isLoaded() {
		return nil
	}
	return l.reload(ctx)
}

// refusedName is the file that says how many bytes came beyond the quota.
const refusedName = "refused"

// reload reads row and segments. Its caller has the turn.
func (l *log) reload(ctx context.Context) error {
	row, found, err := l.store.cfg.Rows.Log(ctx, l.attempt)
	if err != nil {
		return fmt.Errorf("read log %v: %w", l.attempt, err)
	}
	if !found {
		return ErrForeign
	}
	segments, err := l.readSegments(row.Log.Next)
	if err != nil {
		return fmt.Errorf("read log %v: %w", l.attempt, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.row, l.segments, l.loaded = row, segments, true
	if data, err := os.ReadFile(filepath.Join(l.dir, refusedName)); err == nil {
		l.refused, _ = strconv.ParseUint(string(data), 10, 64) // one that cannot be read is 0: it is for people
	}
	return nil
}

// readSegments reads the segments of all frames before next, as far as they are there. Its caller has the turn.
func (l *log) readSegments(next forge.LogSeq) ([]segment, error) {
	list, err := listSegments(l.dir)
	if err != nil {
		return nil, err
	}
	var segments []segment
	var before *segment
	for _, f := range list {
		begin := newSegment(before)
		if f.first != begin.first || f.first >= next {
			break
		}
		s, err := l.readSegment(f, begin, next)
		if err != nil {
			return nil, err
		}
		if s.end == s.first {
			break // there is no whole frame in it
		}
		segments = append(segments, s)
		before = &segments[len(segments)-1]
	}
	return segments, nil
}

// readSegment reads what is to be known of one segment.
func (l *log) readSegment(f found, begin segment, next forge.LogSeq) (segment, error) {
	if f.packed {
		s, ok := loadPacked(l.dir, &begin)
		if ok && s.end <= next {
			return s, nil
		}
		if ok {
			// The database is older than the disk: what stands behind its end is cut, so it is taken apart again.
			if err := l.unpack(s); err != nil {
				return s, err
			}
			f.plain = true
		}
	}
	if !f.plain {
		return begin, nil
	}
	if s, ok := loadIndex(l.dir, &begin); ok && s.end <= next {
		return s, nil
	}
	return begin, scan(l.dir, &begin, next, nil)
}

// recover makes a log ready for appending: everything stored is read and hashed again and compared with the row, and what
// a crash left behind it is cut. Its caller has the turn.
func (l *log) recover(ctx context.Context) error {
	if l.hash != nil {
		return nil
	}
	if err := l.reload(ctx); err != nil {
		return err
	}
	hash, row := blake3.New(), l.row.Log
	segments := slices.Clone(l.segments)
	end, raw := forge.LogSeq(1), uint64(0)
	for i := range segments {
		s, err := l.rehash(segments[i], row.Next, hash)
		if err != nil {
			return fmt.Errorf("recover log %v: %w", l.attempt, err)
		}
		segments[i] = s
		end, raw = s.end, s.raw
	}
	if end != row.Next || raw != row.Bytes || row.Next > 1 && sum(hash) != row.Hash {
		return fmt.Errorf("recover log %v: %w: frames to %d with %d bytes, stored were %d with %d",
			l.attempt, ErrCorrupt, end-1, raw, row.Next-1, row.Bytes)
	}
	if err := l.cut(segments); err != nil {
		return fmt.Errorf("recover log %v: %w", l.attempt, err)
	}
	l.mu.Lock()
	l.segments, l.hash = segments, hash
	l.mu.Unlock()
	l.wake() // the row may have moved without us
	return nil
}

// rehash reads the frames of a segment again. What a plain one has is found out anew.
func (l *log) rehash(s segment, next forge.LogSeq, hash *blake3.Hasher) (segment, error) {
	add := func(f forge.LogFrame) { _, _ = hash.Write(f.Bytes) } // never fails
	if s.packed == 0 {
		e := s.entries[0]
		again := segment{first: s.first, end: s.first, size: e.offset, raw: e.raw, output: e.output}
		return again, scan(l.dir, &again, next, add)
	}
	file, err := os.Open(packedPath(l.dir, s.first))
	if err != nil {
		return s, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	records := recordReader{r: &blocks{codec: l.store.codec, file: file, segment: s}}
	for seq := s.first; seq < s.end; seq++ {
		f, err := records.next()
		if err == nil && f.Seq != seq || errors.Is(err, errTorn) || errors.Is(err, io.EOF) {
			err = ErrCorrupt
		}
		if err != nil {
			return s, err
		}
		add(f)
	}
	return s, nil
}

// cut removes whatever stands behind the stored frames, and what a crash left beside them.
func (l *log) cut(segments []segment) error {
	list, err := listSegments(l.dir)
	if err != nil {
		return err
	}
	for i, f := range list {
		path := segmentPath(l.dir, f.first)
		keep := i < len(segments)
		if f.packed && !(keep && segments[i].packed > 0) {
			err = errors.Join(err, os.Remove(packedPath(l.dir, f.first)))
		}
		if f.plain && !(keep && segments[i].packed == 0) {
			err = errors.Join(err, os.Remove(path), removeIndex(l.dir, f.first))
			continue
		}
		if f.plain && f.plainBytes > segments[i].size {
			err = errors.Join(err, os.Truncate(path, segments[i].size), removeIndex(l.dir, f.first))
		}
	}
	return err
}

func removeIndex(dir string, first forge.LogSeq) error { return removed(indexPath(dir, first)) }

func sum(hash *blake3.Hasher) digest.Digest {
	var d digest.Digest
	hash.Sum(d[:0])
	return d
}

// seal notes that the log has ended. Its caller has the turn.
func (l *log) seal() {
	l.mu.Lock()
	l.row.Log.Sealed = true
	last := slices.Clone(l.segments[max(0, len(l.segments)-1):])
	l.mu.Unlock()
	l.forget()
	for i := range last {
		l.index(&last[i])
	}
	l.wake()
	l.store.toPack(l.attempt)
}

// index writes the index of a segment that will not grow. Without it the segment is scanned.
func (l *log) index(s *segment) {
	if s.packed > 0 {
		return
	}
	if err := saveIndex(l.dir, s); err != nil {
		l.store.cfg.Log.Warn("the index of a log segment was not written", telemetry.KeyAttempt, l.attempt.String(), telemetry.KeyError, err)
	}
}

// forget drops what is only needed to append. Its caller has the turn, or knows that nobody uses the log.
func (l *log) forget() {
	l.closeFile()
	l.hash = nil
}

// openFile opens a segment for writing.
func (l *log) openFile(path string, flags int) error {
	file, err := os.OpenFile(path, flags, 0o600)
	if err == nil {
		l.file = file
		l.store.files.Add(1)
	}
	return err
}

func (l *log) closeFile() {
	if l.file != nil {
		_ = l.file.Close() // what counts was synced
		l.file = nil
		l.store.files.Add(-1)
	}
}

// rest gives the file back where many are open. What is known of the log stays.
func (l *log) rest() {
	if l.store.files.Load() > int64(l.store.maxFiles) {
		l.closeFile()
	}
}

// wake tells those that follow.
func (l *log) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}
