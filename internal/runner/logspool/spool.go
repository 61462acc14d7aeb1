// Package logspool keeps an attempt's log on disk until the daemon has it.
//
// What is appended gets a sequence number, and from then on it is there until it is acknowledged: no lost connection
// and no slow daemon takes it away. What does not fit is held back at its source or counted in a Gap event, as
// configured; a log is never shorter than its workload's output without saying by how much (protocols/internal/logs.md).
//
//	Append ─▶ limit of the spec ─▶ bound of the spool ─▶ segment files ─▶ Reader ─▶ stream ─▶ Ack ─▶ segments removed
//	           │ head                │ room: wait, or Gap
//	           └ tail, in memory until Seal
//
// The files are for the life of this process. They are not synced: what a killed process wrote stays in the page cache,
// and what a dead machine had not sent is lost with its attempt. A later process only removes them, or looks with Replay.
//
// A Spool hashes large writes in a goroutine of its own, one at a time, which the next write, Seal or Close waits for.
// Its methods may be called from several at once.
package logspool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds.
const (
	// DefaultBound is how many bytes a spool holds on disk where nothing is configured.
	DefaultBound = 256 * forge.MiB
	// MinBound is the least that can be configured.
	MinBound = forge.MiB
	// maxTail bounds the end of a log that is over its limit, which is held in memory.
	maxTail = forge.MiB
	// maxSegment is when a new file is begun; a smaller spool has eight of them.
	maxSegment = 8 << 20
	// batchBytes is how much is written at once.
	batchBytes = 256 << 10
	// reserveBytes are kept on the disk from the beginning, so that a full one still takes the last Gap.
	reserveBytes = 64 << 10
)

// reserveName is the file that holds reserveBytes.
const reserveName = "reserve"

// Policy says what happens to output that finds the spool full.
type Policy uint8

// The policies.
const (
	Block Policy = 1 // Append waits: the workload is held back
	Gap   Policy = 2 // it is dropped, and counted
)

// Config is how a spool behaves.
type Config struct {
	Bound  forge.Bytes // on disk; zero is DefaultBound
	Policy Policy      // zero is Block
	Limit  forge.Bytes // the spec's, of stdout and stderr together; zero is none
}

// Errors of a spool.
var (
	// ErrClosed is returned by a Reader whose spool was closed.
	ErrClosed = errors.New("logspool: closed")
	// ErrAcknowledged is returned by a Reader that is to read what was acknowledged, and so is gone.
	ErrAcknowledged = errors.New("logspool: acknowledged and forgotten")
)

// Spool is the log of one attempt.
type Spool struct {
	dir     string
	cfg     Config
	segment int64 // when a new file is begun

	writing sync.Mutex // one Append at a time; it may be held while it waits for room
	out     writer

	mu       sync.Mutex
	segments []segment // ascending; the last is written
	next     forge.LogSeq
	bytes    uint64 // of all frames' payloads
	acked    forge.LogSeq
	open     bool // Block has become Gap
	sealed   bool
	closed   bool
	fault    error         // the first that a disk gave
	changed  chan struct{} // closed at the next change of any of these
}

// segment is one file: frames from first on.
type segment struct {
	first forge.LogSeq
	size  int64
	marks []mark
}

// mark is a place in a segment from which to look for a frame.
type mark struct {
	seq forge.LogSeq
	off int64
}

// Create makes an empty spool in a folder, which it empties first. Close and Remove end it.
func Create(dir string, cfg Config) (*Spool, error) {
	if cfg.Bound == 0 {
		cfg.Bound = DefaultBound
	}
	if cfg.Bound < MinBound {
		return nil, fmt.Errorf("create log spool: a bound of %v is below %v", cfg.Bound, MinBound)
	}
	if cfg.Policy == 0 {
		cfg.Policy = Block
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("create log spool: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create log spool: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, reserveName), make([]byte, reserveBytes), 0o600); err != nil {
		return nil, fmt.Errorf("create log spool: %w", err)
	}
	s := &Spool{
		dir: dir, cfg: cfg, segment: min(int64(cfg.Bound/8), maxSegment), next: 1, acked: 1, changed: make(chan struct{}),
	}
	s.out = writer{spool: s, hash: newHasher(), tail: newTail(cfg.Limit)}
	return s, nil
}

// Append takes output of the workload, or words of the agent: any number of bytes, of which it keeps none. It returns
// when they have their sequence numbers, wait for the end of a log over its limit, or are counted as dropped. With
// Block it waits for room. On a sealed or closed spool it does nothing.
func (s *Spool) Append(stream forge.LogStream, p []byte, at forge.WallTime) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.ended() {
		s.out.append(stream, p, at)
	}
}

// Event takes a step event. It always finds room: there are few of them.
func (s *Spool) Event(e forge.StepEvent, at forge.WallTime) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.ended() {
		s.out.event(e, at)
	}
}

// Unblock lets no Append wait from here on, also none that waits now: what finds no room is dropped and counted. It is
// for a workload that is being ended.
func (s *Spool) Unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
	s.changeLocked()
}

// Ack forgets the frames before next, and makes room where whole files are not needed any more.
func (s *Spool) Ack(next forge.LogSeq) {
	for _, first := range s.take(next) {
		// A file that cannot be removed goes with the folder.
		_ = os.Remove(s.file(first))
	}
}

// take notes an acknowledgement and returns the segments that it frees.
func (s *Spool) take(next forge.LogSeq) []forge.LogSeq {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next <= s.acked {
		return nil
	}
	s.acked = min(next, s.next)
	var freed []forge.LogSeq
	for len(s.segments) > 1 && s.segments[1].first <= s.acked {
		freed = append(freed, s.segments[0].first)
		s.segments = s.segments[1:]
	}
	s.changeLocked()
	return freed
}

// Seal ends the log and says what it is. What was held back for the end is appended. The error says that it could not
// be written: then the seal is that of the frames which are there. Sealing twice gives the same seal.
func (s *Spool) Seal(at forge.WallTime) (forge.LogSeal, error) {
	s.Unblock()
	s.writing.Lock()
	defer s.writing.Unlock()
	var err error
	if !s.ended() {
		err = s.out.finish(at)
	}
	hash := s.out.hash.sum()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed = true
	s.changeLocked()
	seal := forge.LogSeal{Last: s.next - 1, Bytes: s.bytes}
	if seal.Last > 0 {
		seal.Hash = hash
	}
	return seal, err
}

// Next is the number of the frame that would come next.
func (s *Spool) Next() forge.LogSeq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Over reports whether the log is sealed and has no frame from one on.
func (s *Spool) Over(from forge.LogSeq) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sealed && from >= s.next
}

// Acked is the first frame that was not acknowledged.
func (s *Spool) Acked() forge.LogSeq {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// Used is how many bytes the spool holds on disk.
func (s *Spool) Used() forge.Bytes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usedLocked()
}

// Err is the first fault of the disk that has cost output, for health. What it cost is counted in a Gap.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Close ends every Append and Reader that waits. The files stay.
func (s *Spool) Close() error {
	s.mu.Lock()
	s.closed, s.open = true, true
	s.changeLocked()
	s.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.out.hash.wait()
	return s.out.close()
}

// Remove closes the spool and removes its folder.
func (s *Spool) Remove() error {
	if err := errors.Join(s.Close(), os.RemoveAll(s.dir)); err != nil {
		return fmt.Errorf("remove log spool: %w", err)
	}
	return nil
}

func (s *Spool) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sealed || s.closed
}

func (s *Spool) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Spool) usedLocked() forge.Bytes {
	var used int64
	for i := range s.segments {
		used += s.segments[i].size
	}
	return forge.Bytes(used)
}

// room waits until n more bytes fit, and reports whether they do: false where they are to be dropped.
func (s *Spool) room(n int) bool {
	for {
		s.mu.Lock()
		fits := s.usedLocked()+forge.Bytes(n) <= s.cfg.Bound
		wait := s.cfg.Policy == Block && !s.open
		changed := s.changed
		s.mu.Unlock()
		if fits || !wait {
			return fits
		}
		<-changed
	}
}

func (s *Spool) file(first forge.LogSeq) string {
	return filepath.Join(s.dir, fmt.Sprintf("%020d", first))
}
