package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	// readerCount is how many views there may be at a time; more wait.
	readerCount = 4
	// maxView bounds the life of one view.
	maxView = 10 * time.Second
)

// readers are the connections that read. Each is either in the channel or in use by one view.
type readers struct {
	free   chan *conn
	mu     sync.Mutex
	closed bool
	gone   chan struct{} // closed by close
}

func openReaders(ctx context.Context, path string) (*readers, error) {
	r := &readers{free: make(chan *conn, readerCount), gone: make(chan struct{})}
	for range readerCount {
		c, err := connect(ctx, path, reading)
		if err != nil {
			return nil, errors.Join(err, r.closeFree(len(r.free)))
		}
		r.free <- c
	}
	return r, nil
}

// view runs read inside a transaction that sees one state.
func (r *readers) view(ctx context.Context, read func(*View) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxView)
	defer cancel()
	select {
	case <-r.gone:
		return ErrClosed
	default:
	}
	select {
	case c := <-r.free:
		defer func() { r.free <- c }()
		return inView(ctx, c, read)
	case <-r.gone:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for a view: %w", context.Cause(ctx))
	}
}

func inView(ctx context.Context, c *conn, read func(*View) error) (err error) {
	if _, err := c.exec(background, "BEGIN"); err != nil {
		return fmt.Errorf("begin view: %w", err)
	}
	defer func() {
		_, back := c.exec(background, "ROLLBACK") // nothing was written; also after a panic of read
		err = errors.Join(err, back)
	}()
	return read(&View{ctx: ctx, conn: c})
}

// close waits for the views under way, which are bounded, and closes the connections.
func (r *readers) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	close(r.gone)
	return r.closeFree(readerCount)
}

func (r *readers) closeFree(n int) error {
	var errs []error
	for range n {
		errs = append(errs, (<-r.free).close())
	}
	return errors.Join(errs...)
}

// Snapshot reads the rows that a daemon watches, of one runner or, with a zero id, of all.
func (s *Store) Snapshot(ctx context.Context, runner forge.RunnerID) (*authority.Snapshot, error) {
	var snap *authority.Snapshot
	err := s.View(ctx, func(v *View) (err error) {
		snap, err = v.Snapshot(runner)
		return err
	})
	return snap, err
}

// Snapshot reads the rows that a daemon watches, of one runner or, with a zero id, of all.
func (v *View) Snapshot(runner forge.RunnerID) (*authority.Snapshot, error) {
	snap := new(authority.Snapshot)
	where, args := "", []any(nil)
	if !runner.IsZero() {
		where, args = " AND s.runner = ?", []any{runner.ULID[:]}
	}
	err := v.query(`SELECT `+sessionColumns+`, b.count, `+rulerColumns+` FROM session s JOIN beat b ON b.runner = s.runner
		JOIN runner r ON r.id = s.runner WHERE r.deleted_at = 0`+where+` ORDER BY s.runner`, args, func(rows *sql.Rows) error {
		var seen authority.SeenSession
		into := append(append(sessionInto(&seen.Session), num(&seen.Beats)), rulerInto(&seen.Runner)...)
		if err := rows.Scan(into...); err != nil {
			return err
		}
		snap.Sessions = append(snap.Sessions, seen)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	return snap, v.snapshotLeases(snap, runner)
}

func (v *View) snapshotLeases(snap *authority.Snapshot, runner forge.RunnerID) error {
	where, args := "", []any(nil)
	if !runner.IsZero() {
		where, args = " AND l.runner = ?", []any{runner.ULID[:]}
	}
	err := v.query(`SELECT `+leaseColumns+`, j.cancel_requested FROM lease l JOIN job j ON j.id = l.job
		WHERE l.state <= 2`+where+` ORDER BY l.id`, args, func(rows *sql.Rows) error {
		var l authority.Lease
		var cancel bool
		if err := rows.Scan(append(leaseInto(&l), flag{&cancel})...); err != nil {
			return err
		}
		snap.Leases = append(snap.Leases, l)
		snap.Cancel = append(snap.Cancel, cancel)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read open leases: %w", err)
	}
	return nil
}
