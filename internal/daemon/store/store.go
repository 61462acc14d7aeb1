package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Class says how long a request may wait behind others. Of what waits, a lower number goes first; each transaction takes
// at least one request of every class, so none starves.
type Class uint8

// The classes.
const (
	ClassLease Class = 1 // whatever grants or ends time: registrations, acceptances, heartbeats, expiries
	ClassState Class = 2 // results, phases, runs, placements
	ClassRest  Class = 3 // logs, capabilities, summaries, audit
)

// The errors that callers tell apart. With any error but ErrUnknown, nothing was changed.
var (
	// ErrUnknown: the commit may or may not have happened. There is no answer to give to anybody.
	ErrUnknown = errors.New("store: the fate of the commit is not known")
	// ErrFailed: an earlier commit had an unknown fate; nothing is written until the database is opened anew.
	ErrFailed = errors.New("store: writing has stopped after a commit of unknown fate; restart the daemon")
	// ErrBusy: as many requests of the class wait as its queue may hold. Try again later.
	ErrBusy = errors.New("store: too many requests wait")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")
	// ErrFull: there is no room on the disk.
	ErrFull = errors.New("store: the disk is full")
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("store: not found")
	// ErrExists: a name, key or id is taken.
	ErrExists = errors.New("store: exists already")
	// ErrInUse: something open still refers to it.
	ErrInUse = errors.New("store: in use")
	// ErrExpired: a token's time is over.
	ErrExpired = errors.New("store: expired")
	// ErrUsed: a token was redeemed by another key.
	ErrUsed = errors.New("store: used already")
	// ErrKeyTaken: a key is another runner's.
	ErrKeyTaken = errors.New("store: the key belongs to another runner")
	// ErrKeyUnknown: a key is not that of its runner, or not any more.
	ErrKeyUnknown = errors.New("store: the key is not the runner's")
	// ErrDisabled: the runner is disabled.
	ErrDisabled = errors.New("store: the runner is disabled")
	// ErrRevoked: the runner is revoked, or was deleted.
	ErrRevoked = errors.New("store: the runner is revoked")
	// ErrSuperseded: a newer certificate of the runner is in use.
	ErrSuperseded = errors.New("store: the certificate was superseded")
	// ErrLocked: another process has the folder open.
	ErrLocked = errors.New("store: the folder is in use by another daemon")
	// ErrNewer: the database was changed by a newer build.
	ErrNewer = errors.New("store: the database is newer than this program")
	// ErrEdited: a migration is not the one that was applied.
	ErrEdited = errors.New("store: a migration was changed after it was applied")
)

// Options of a Store. The zero value is good.
type Options struct {
	Log *slog.Logger          // nil: silent
	Now func() forge.WallTime // wall clock for the columns that people read; nil: the machine's
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() forge.WallTime { return forge.WallTime(clock.Wall().UnixMilli()) }
	}
	return o
}

// Store is an open database. Close it.
type Store struct {
	dir     *folder
	writer  *writer
	readers *readers
	emptier *emptier
	hub     hub
	stop    context.CancelFunc
	running sync.WaitGroup
	once    sync.Once
	closed  error
}

// The files of a store, in its folder. SQLite keeps two more beside the database.
const (
	databaseFile = "state.db"
	lockFile     = "lock"
)

// Open opens the database state.db in a folder, which is made if it is not there (0700), and brings its schema up to date.
// It holds the file lock in that folder until Close. Errors: ErrLocked, ErrNewer, ErrEdited, and those of the disk.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	return open(ctx, dir, opts.withDefaults(), hooks{})
}

func open(ctx context.Context, dir string, opts Options, h hooks) (_ *Store, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("open store in %s: %w", dir, err)
	}
	s := &Store{dir: f}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open %s: %w", filepath.Join(dir, databaseFile), err), s.release())
		}
	}()
	if err := s.connect(ctx, f.database(), opts, h); err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

func (s *Store) connect(ctx context.Context, path string, opts Options, h hooks) error {
	c, err := connect(ctx, path, writing)
	if err != nil {
		return err
	}
	s.writer = &writer{
		conn: c, queue: newQueue(), now: opts.Now, log: opts.Log, hub: &s.hub, failed: make(chan struct{}), hooks: h,
	}
	if err := migrate(ctx, c, opts.Now(), migrations()); err != nil {
		return err
	}
	if s.readers, err = openReaders(ctx, path); err != nil {
		return err
	}
	if s.emptier, err = openEmptier(ctx, path, opts.Log, h.walScale); err != nil {
		return err
	}
	s.writer.emptier = s.emptier
	return nil
}

func (s *Store) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.writer.run(ctx) })
	s.running.Go(func() { s.emptier.run(ctx) })
}

// Close finishes the transaction under way, refuses what waits with ErrClosed, and closes the files. It may be called more
// than once.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.stop()
		s.running.Wait()
		s.writer.queue.close()
		s.closed = s.release()
	})
	return s.closed
}

// release closes what is open, users before what they use.
func (s *Store) release() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.close())
	}
	if s.emptier != nil {
		errs = append(errs, s.emptier.conn.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.conn.close())
	}
	return errors.Join(append(errs, s.dir.close())...)
}

// Failed is closed when a commit of unknown fate has ended all writing. The daemon has to be restarted then.
func (s *Store) Failed() <-chan struct{} { return s.writer.failed }

// Do carries out one rule as one transaction. A nil error means that it is committed and on disk; with ErrUnknown nobody
// knows; with any other error nothing was changed. A ctx that ends while the request waits takes it back; once it runs, its
// end is waited for. A rule that has no effect by its own answer is no error.
func (s *Store) Do(ctx context.Context, class Class, cmd authority.Command) (authority.Answer, error) {
	var answer authority.Answer
	err := s.Update(ctx, class, func(tx *Tx) (err error) {
		answer, err = tx.Do(cmd)
		return err
	})
	if err != nil {
		return authority.Answer{}, err
	}
	return answer, nil
}

// Update runs change as one transaction, alone or together with other requests. An error or a panic of change rolls back
// what it did, and only that; the error is returned. change runs at most once, must not keep tx and must not wait for
// anything: every other writer waits for it. The errors are otherwise those of Do.
func (s *Store) Update(ctx context.Context, class Class, change func(tx *Tx) error) error {
	r := &request{run: change, done: make(chan struct{})}
	if err := s.writer.queue.add(class, r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	if r.taken.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: taken back while it waited: %w", errNotCommitted, context.Cause(ctx))
	}
	<-r.done
	return r.err
}

// View runs read on one consistent state: everything that was committed before, and nothing of what is under way. read must
// be done within seconds, for an old state keeps the write-ahead log from being emptied.
func (s *Store) View(ctx context.Context, read func(v *View) error) error {
	return s.readers.view(ctx, read)
}

// Settle decides a run within one transaction of class state: decide gets the run and its jobs in their order, and must be
// pure. It is a shorthand for Update with Tx.Settle.
func (s *Store) Settle(ctx context.Context, run forge.RunID, decide func(Run, []Job) Settlement) error {
	return s.Update(ctx, ClassState, func(tx *Tx) error { return tx.Settle(run, decide) })
}

// Subscribe returns a subscription to what changes from now on. Close it.
func (s *Store) Subscribe() *Subscription { return s.hub.subscribe() }
