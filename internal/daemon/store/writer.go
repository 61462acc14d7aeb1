package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of one transaction.
const (
	// MaxBatchRequests is how many requests share a commit.
	MaxBatchRequests = 256
	// MaxBatchRows is how many rows a transaction may have written before it takes on no more. A single request may be
	// larger: a run is stored with all of its jobs or not at all.
	MaxBatchRows = 500
	// maxBatchTime is how long a transaction takes on requests: the first of them is not to wait for the last.
	maxBatchTime = 20 * time.Millisecond
)

// errNotCommitted is in the error of a request that did nothing wrong itself: its transaction could not be committed.
var errNotCommitted = errors.New("store: not committed")

// writer owns the connection that writes. Its run method is the only user.
type writer struct {
	conn    *conn
	queue   *queue
	now     func() forge.WallTime
	log     *slog.Logger
	hub     *hub
	emptier *emptier
	failed  chan struct{} // closed with the first commit of unknown fate
	stopped bool          // likewise
	hooks   hooks
}

// hooks are for tests; each may be zero.
type hooks struct {
	beforeCommit func()       // the requests have run
	commit       func() error // before the commit statement; an error takes its place
	batchTime    time.Duration
	walScale     int64 // what the sizes of the write-ahead log are divided by
}

// run carries out requests until ctx ends.
func (w *writer) run(ctx context.Context) {
	for w.queue.wait(ctx) {
		w.transaction(ctx)
	}
}

// batch is a transaction under way.
type batch struct {
	requests []*request
	classes  [classes]int
	errs     []error // of each request
	rows     int64
	changes  changeSet
	broken   error     // the engine has ended the transaction by itself
	until    time.Time // it takes on requests
}

// transaction runs what waits as one transaction, and answers.
func (w *writer) transaction(ctx context.Context) {
	if w.stopped {
		w.refuse(ErrFailed)
		return
	}
	w.emptier.finish(w.conn)
	if err := w.begin(ctx); err != nil {
		if ctx.Err() == nil {
			w.log.Error("the database takes no transaction", "error", err)
			w.refuse(fmt.Errorf("%w: begin: %w", errNotCommitted, plain(err)))
		}
		return
	}
	b := &batch{until: time.Now().Add(max(maxBatchTime, w.hooks.batchTime))}
	w.collect(b)
	if w.hooks.beforeCommit != nil {
		w.hooks.beforeCommit()
	}
	w.answer(b, w.end(b))
}

// begin takes the write lock. While another connection has it, requests stay in their queue, where a more urgent one may
// still overtake and each may be taken back.
func (w *writer) begin(ctx context.Context) error {
	for {
		_, err := w.conn.exec(background, "BEGIN IMMEDIATE")
		if err == nil || !isBusy(err) || ctx.Err() != nil {
			return err
		}
		w.log.Warn("the database has been locked by somebody else for a while", "error", err)
	}
}

// background is the context of everything that the writer does: a statement that is interrupted would take the whole
// transaction with it, and with that the requests of others.
var background = context.Background()

// refuse answers what waits, at most one transaction's worth, without having tried.
func (w *writer) refuse(why error) {
	for range MaxBatchRequests {
		r, _ := w.queue.pop(ClassLease, ClassRest)
		if r == nil {
			return
		}
		r.finish(why)
	}
}

// collect runs requests while the transaction has room, the lease class first. The last places are kept for classes that
// have not had one, so that none starves.
func (w *writer) collect(b *batch) {
	for len(b.requests) < MaxBatchRequests-classes && b.room() {
		r, class := w.queue.pop(ClassLease, ClassRest)
		if r == nil {
			return
		}
		w.one(b, r, class)
	}
	for class := ClassLease; class <= ClassRest; class++ {
		if b.classes[class-1] > 0 || b.broken != nil {
			continue
		}
		if r, _ := w.queue.pop(class, class); r != nil {
			w.one(b, r, class)
		}
	}
}

func (b *batch) room() bool {
	return b.broken == nil && b.rows < MaxBatchRows && time.Now().Before(b.until)
}

// one runs a request in a savepoint of its own.
func (w *writer) one(b *batch, r *request, class Class) {
	b.requests = append(b.requests, r)
	b.classes[class-1]++
	if _, err := w.conn.exec(background, "SAVEPOINT request"); err != nil {
		b.errs = append(b.errs, err)
		b.broken = err
		return
	}
	tx := newTx(w.conn, w.now())
	err := w.guard(tx, r.run)
	err = errors.Join(err, w.leave(b, err))
	if err == nil {
		b.changes.merge(&tx.changes)
		b.rows += tx.rows
	}
	b.errs = append(b.errs, err)
}

// guard runs a request and turns a panic into an error of it alone.
func (w *writer) guard(tx *Tx, run func(*Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("a change panicked and was rolled back", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("store: a change panicked: %v", p)
		}
	}()
	err = run(tx)
	if err == nil {
		err = tx.failed
	}
	return plain(err)
}

// leave keeps what a request did, or rolls it back. If neither can be done, the engine has ended the transaction: what
// ran in it before is gone too.
func (w *writer) leave(b *batch, err error) error {
	if err != nil {
		if _, back := w.conn.exec(background, "ROLLBACK TO request"); back != nil {
			b.broken = err
			return nil
		}
	}
	if _, release := w.conn.exec(background, "RELEASE request"); release != nil {
		b.broken = release
		return release
	}
	return nil
}

// end commits. Its error is nil, ErrUnknown, or one with which nothing was changed.
func (w *writer) end(b *batch) error {
	err := b.broken
	if err == nil {
		err = w.commit()
	}
	if err == nil {
		return nil
	}
	_, back := w.conn.exec(background, "ROLLBACK")
	if b.broken == nil && !isFull(err) && !isBusy(err) {
		// The frames may be on the disk, complete with their commit mark, or may not. Nobody may hear either.
		w.stopped = true
		close(w.failed)
		w.log.Error("a commit failed and its fate is not known; nothing is written from now on", "error", err, "rollback", back)
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	w.log.Error("a transaction was not committed", "error", err, "requests", len(b.requests))
	return fmt.Errorf("%w: %w", errNotCommitted, plain(err))
}

func (w *writer) commit() error {
	if w.hooks.commit != nil {
		if err := w.hooks.commit(); err != nil {
			return err
		}
	}
	_, err := w.conn.exec(background, "COMMIT")
	return err
}

// answer tells every request how it ended: by its own error, or else by that of the transaction.
func (w *writer) answer(b *batch, err error) {
	if err == nil {
		w.hub.publish(&b.changes)
		w.emptier.wrote(b.rows)
	}
	for i, r := range b.requests {
		switch {
		case b.errs[i] != nil:
			r.finish(b.errs[i])
		default:
			r.finish(err)
		}
	}
}
