package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds.
const (
	// MaxOpen is how many logs are remembered at once, each with the state of its hash, about 11 KiB; those that nobody uses
	// make room first. One that was forgotten is read again from its beginning before the next append, so there are more
	// than a daemon has attempts.
	MaxOpen = 16384
	// MaxFiles is about how many of them keep a file open between two appends. The others open it each time.
	MaxFiles = 1024
	// Slack is what an attempt's log may have beyond the limit of its spec: the limit is about the workload's output, and
	// the agent's own frames come on top. Only an agent that does not keep the limit itself ever gets here.
	Slack = 4 << 20
	// CloseAfter is how long after the end of an attempt its runner may still send the rest of the log.
	CloseAfter = 10 * time.Minute
)

// What Append says of frames that it does not store. Nothing was stored but what the returned sequence number covers.
var (
	// ErrForeign: there is no such log, or it is another runner's.
	ErrForeign = errors.New("logs: no log of this runner")
	// ErrSealed: the log has ended.
	ErrSealed = errors.New("logs: the log is sealed")
	// ErrHole: frames between what is stored and these are missing.
	ErrHole = errors.New("logs: frames before these are missing")
	// ErrQuota: the log has all the bytes, or all the frames, that it may have.
	ErrQuota = errors.New("logs: over the quota of the attempt")
	// ErrCorrupt: the disk has less, or something else, than was stored once.
	ErrCorrupt = errors.New("logs: what is on disk is not what was stored")
	// ErrClosed: the store of logs was closed.
	ErrClosed = errors.New("logs: closed")
)

// Rows is the part of the database that logs stand on.
type Rows interface {
	// Do carries out a rule as one transaction. With an error, nothing is known of its fate here: the row is read anew.
	Do(ctx context.Context, cmd authority.Command) (authority.Answer, error)
	// Log reads the row of an attempt's log, and reports whether there is one.
	Log(ctx context.Context, attempt forge.AttemptID) (Row, bool, error)
	// Unsealed lists logs that are not sealed although their attempt ended before a time, at most a few hundred.
	Unsealed(ctx context.Context, endedBefore time.Time) ([]Ended, error)
}

// Row is a log as the database has it.
type Row struct {
	Log   authority.Log
	Limit forge.Bytes // of the attempt's spec; 0: none is known
}

// Ended is an attempt that has ended and whose log has not.
type Ended struct {
	Lease   forge.LeaseID
	Attempt forge.AttemptID
}

// Info is what is known of a log.
type Info struct {
	Runner  forge.RunnerID
	Next    forge.LogSeq  // the first frame that is not stored
	Bytes   uint64        // of all stored frames
	Output  uint64        // of those, the workload's
	Hash    digest.Digest // of the bytes of all stored frames, as authority.Log has it
	Sealed  bool
	Refused uint64 // bytes that came beyond the quota, as far as this process has seen; none of them is stored
}

// Config is what a Store is made of.
type Config struct {
	Dir  string // logs/ of the daemon's folder; made if it is not there
	Rows Rows
	Log  *slog.Logger // nil: silent
}

// Store keeps logs. It is safe for concurrent use.
type Store struct {
	cfg   Config
	sync  func(*os.File) error // the disk, or what a test puts in its place
	write func(f *os.File, p []byte, at int64) error

	maxOpen, maxFiles int
	files             atomic.Int64 // that logs keep open
	buffers           sync.Pool    // of *[]byte, for appends

	codec     *codec
	packing   chan forge.AttemptID // logs with a segment that will not grow
	unqueued  atomic.Bool          // there was no place in packing
	searching chan struct{}        // a token for each search

	mu     sync.Mutex
	open   map[forge.AttemptID]*log
	uses   uint64 // counts, to find the log that was not used for longest
	closed bool
}

// Open makes a Store on a folder.
func Open(cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	codec, err := newCodec()
	if err != nil {
		return nil, fmt.Errorf("open logs: %w", err)
	}
	return &Store{
		cfg: cfg, sync: syncData, write: writeAt, maxOpen: MaxOpen, maxFiles: MaxFiles, open: map[forge.AttemptID]*log{},
		codec: codec, packing: make(chan forge.AttemptID, maxPacking), searching: make(chan struct{}, MaxSearches),
	}, nil
}

func writeAt(f *os.File, p []byte, at int64) error {
	_, err := f.WriteAt(p, at)
	return err
}

// Close closes every file. What is under way ends with an error or is finished first. It may be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = map[forge.AttemptID]*log{}
	s.mu.Unlock()
	for _, l := range open {
		l.turn <- struct{}{}
		l.forget()
		l.wake()
		<-l.turn
	}
	return nil
}

// Info returns what is known of a log, or ErrForeign where there is none.
func (s *Store) Info(ctx context.Context, attempt forge.AttemptID) (Info, error) {
	l, err := s.use(ctx, attempt)
	if err != nil {
		return Info{}, err
	}
	defer s.done(l)
	return l.info(), nil
}

// Seal carries out the rule that seals a log, in turn with what is appended to it, and wakes those that follow.
func (s *Store) Seal(ctx context.Context, cmd *authority.SealLog) (authority.Answer, error) {
	return s.end(ctx, cmd.Context.Attempt, cmd)
}

// end carries out a rule that ends a log. One that is not known here is left to the rule.
func (s *Store) end(ctx context.Context, attempt forge.AttemptID, cmd authority.Command) (authority.Answer, error) {
	l, err := s.use(ctx, attempt)
	if errors.Is(err, ErrForeign) {
		return s.cfg.Rows.Do(ctx, cmd)
	}
	if err != nil {
		return authority.Answer{}, err
	}
	defer s.done(l)
	if err := l.take(ctx); err != nil {
		return authority.Answer{}, err
	}
	defer l.leave()
	answer, err := s.cfg.Rows.Do(ctx, cmd)
	if err == nil && answer.Done {
		l.seal()
	}
	return answer, err
}

// use returns an open log that stays open until done. It reads the row and the segments where it was not open yet.
func (s *Store) use(ctx context.Context, attempt forge.AttemptID) (*log, error) {
	l, err := s.hold(attempt)
	if err != nil {
		return nil, err
	}
	if err := l.load(ctx); err != nil {
		s.done(l)
		return nil, err
	}
	return l, nil
}

func (s *Store) hold(attempt forge.AttemptID) (*log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	l := s.open[attempt]
	if l == nil {
		s.makeRoomLocked()
		l = newLog(s, attempt, filepath.Join(s.cfg.Dir, attempt.String()))
		s.open[attempt] = l
	}
	s.uses++
	l.users, l.used = l.users+1, s.uses
	return l, nil
}

// done ends a use. A log of which nothing was read, because there is none, does not stay.
func (s *Store) done(l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	if l.users == 0 && !l.isLoaded() && s.open[l.attempt] == l {
		delete(s.open, l.attempt)
	}
}

// makeRoomLocked forgets the log that was not used for longest. Where all are in use, there are as many more as users.
func (s *Store) makeRoomLocked() {
	if len(s.open) < s.maxOpen {
		return
	}
	var oldest *log
	for _, l := range s.open {
		if l.users == 0 && (oldest == nil || l.used < oldest.used) {
			oldest = l
		}
	}
	if oldest != nil {
		delete(s.open, oldest.attempt)
		oldest.forget() // nobody uses it, so nobody has its turn
	}
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
