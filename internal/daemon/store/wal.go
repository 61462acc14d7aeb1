package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync/atomic"
)

const (
	// walLow is how much of the write-ahead log may wait to be copied into the database.
	walLow = 4 << 20
	// walHigh is the length of the log from which the writer sees to it that the next transaction begins it anew.
	walHigh = 32 << 20
	// WALBound is what the file of the log stays below, unless a view stays open across all that is written meanwhile.
	WALBound = 64 << 20
	// lookRows is how many rows are written before the length of the log is looked at.
	lookRows = 32
	// pageBytes is the size of a page of the database, which is the engine's default.
	pageBytes = 4096
)

// emptier copies the write-ahead log into the database from a connection of its own, so that no commit waits for it. That
// alone would never shorten the log while there is always something new in it: a log begins anew only where all of it has
// been copied. So when it is long, the writer copies the little that is left between two transactions.
type emptier struct {
	conn  *conn
	log   *slog.Logger
	scale int64 // 1; a test divides the sizes by more
	grown chan struct{}
	long  atomic.Bool // the writer is to copy the rest
	rows  int64       // of the writer: written since it poked
}

// walState is how far the log has come.
type walState struct{ frames, copied int64 }

func (s walState) waiting() int64 { return (s.frames - s.copied) * pageBytes }
func (s walState) bytes() int64   { return s.frames * pageBytes }

func openEmptier(ctx context.Context, path string, log *slog.Logger, scale int64) (*emptier, error) {
	c, err := connect(ctx, path, emptying)
	if err != nil {
		return nil, err
	}
	return &emptier{conn: c, log: log, scale: max(1, scale), grown: make(chan struct{}, 1)}, nil
}

// wrote is called by the writer after each commit. Once there is enough to look at it says so, and never blocks.
func (e *emptier) wrote(rows int64) {
	if e.rows += rows; e.rows < lookRows/e.scale {
		return
	}
	e.rows = 0
	select {
	case e.grown <- struct{}{}:
	default:
	}
}

// run empties the log until ctx ends.
func (e *emptier) run(ctx context.Context) {
	for {
		select {
		case <-e.grown:
		case <-ctx.Done():
			return
		}
		if err := e.look(); err != nil {
			e.log.Warn("the write-ahead log was not emptied", "error", err)
		}
	}
}

func (e *emptier) look() error {
	state, err := checkpoint(e.conn, "NOOP")
	if err != nil {
		return err
	}
	if state.waiting() >= walLow/e.scale {
		if state, err = checkpoint(e.conn, "PASSIVE"); err != nil {
			return err
		}
	}
	if state.bytes() >= walHigh/e.scale {
		e.long.Store(true)
	}
	return nil
}

// finish is called by the writer between transactions: it copies the rest of a long log. What a view still reads is left.
func (e *emptier) finish(writer *conn) {
	if !e.long.CompareAndSwap(true, false) {
		return
	}
	state, err := checkpoint(writer, "PASSIVE")
	if err != nil {
		e.log.Warn("the write-ahead log was not emptied", "error", err)
		return
	}
	if state.bytes() >= WALBound/e.scale {
		e.log.Warn("the write-ahead log is long; a view is open for long, or the disk is slow", "bytes", state.bytes(), "waiting", state.waiting())
	}
}

// checkpoint copies what it can without waiting for anybody; with NOOP it only looks.
func checkpoint(c *conn, how string) (walState, error) {
	var busy int64
	var s walState
	err := c.query(background, "PRAGMA wal_checkpoint("+how+")", nil, func(r *sql.Rows) error {
		return r.Scan(&busy, &s.frames, &s.copied)
	})
	if err != nil {
		return walState{}, fmt.Errorf("checkpoint: %w", err)
	}
	return s, nil
}
