package store

import (
	"context"
	"errors"
	"log/slog"

	"github.com/forgeyard/forgeyard/internal/authority"
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

// Store is an open database. Close it.
type Store struct{ queue *queue }

type queue struct{}

// View reads one consistent state of the database. It belongs to the function that it was given to.
type View struct{ ctx context.Context }

// Tx is a View that also writes. What it reads includes what it wrote.
type Tx struct{ View }

// Open opens the database state.db in a folder, which is made if it is not there (0700), and brings its schema up to date.
// It holds the file lock in that folder until Close. Errors: ErrLocked, ErrNewer, ErrEdited, and those of the disk.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) { return nil, errUnbuilt }

var errUnbuilt = errors.New("store: not built yet")

// Close answers what is in the transaction under way, refuses what waits with ErrClosed, and closes the files. It may be called
// more than once.
func (s *Store) Close() error { return errUnbuilt }

// Failed is closed when a commit of unknown fate has ended all writing. The daemon has to be restarted then.
func (s *Store) Failed() <-chan struct{} { return nil }

// Do carries out one rule as one transaction. A nil error means that it is committed and on disk; with ErrUnknown nobody
// knows; with any other error nothing was changed. A ctx that ends while the request waits takes it back; one that ends
// later gives ErrUnknown. A rule that has no effect by its own answer is no error.
func (s *Store) Do(ctx context.Context, class Class, cmd authority.Command) (authority.Answer, error) {
	return authority.Answer{}, errUnbuilt
}

// Update runs change as one transaction, alone or together with other requests. An error or a panic of change rolls back
// what it did, and only that; the error is returned. change must not keep tx, must not wait for anything, and may be run at
// most once. The errors are otherwise those of Do.
func (s *Store) Update(ctx context.Context, class Class, change func(tx *Tx) error) error {
	return errUnbuilt
}

// View runs read on one consistent state: everything that was committed before, and nothing of what is under way. read must
// be done within seconds, for an old state keeps the write-ahead log from being emptied.
func (s *Store) View(ctx context.Context, read func(v *View) error) error { return errUnbuilt }

// Snapshot reads the rows that a daemon watches, of one runner or, with a zero id, of all.
func (s *Store) Snapshot(ctx context.Context, runner forge.RunnerID) (*authority.Snapshot, error) {
	return nil, errUnbuilt
}

// Settle decides a run within one transaction of class state: decide gets the run and its jobs in their order, and must be
// pure. It is a shorthand for Update with Tx.Settle.
func (s *Store) Settle(ctx context.Context, run forge.RunID, decide func(Run, []Job) Settlement) error {
	return errUnbuilt
}

// Subscribe returns a subscription to what changes from now on. Close it.
func (s *Store) Subscribe() *Subscription { return nil }
