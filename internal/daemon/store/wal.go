package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
)

const (
	// walLow is the size of the write-ahead log from which it is copied into the database, beside the writer.
	walLow = 4 << 20
	// WALBound is the size from which the log is also cut: writers wait for that, at most busyMillis. It is passed only
	// while a view stays open across everything that is written meanwhile.
	WALBound = 64 << 20
)

// emptier copies the write-ahead log into the database from a connection of its own, so that no commit waits for it.
type emptier struct {
	conn  *conn
	path  string // of the log
	log   *slog.Logger
	grown chan struct{}
}

func openEmptier(ctx context.Context, path string, log *slog.Logger) (*emptier, error) {
	c, err := connect(ctx, path, emptying)
	if err != nil {
		return nil, err
	}
	return &emptier{conn: c, path: path + "-wal", log: log, grown: make(chan struct{}, 1)}, nil
}

// poke says that the log may have grown. It never blocks.
func (e *emptier) poke() {
	select {
	case e.grown <- struct{}{}:
	default:
	}
}

// run empties the log until ctx ends.
func (e *emptier) run(ctx context.Context) {
	var copied int64 // size at the last copy; the log stays as long when it is written from its start again
	for {
		select {
		case <-e.grown:
		case <-ctx.Done():
			return
		}
		size, err := e.size()
		if err != nil {
			e.log.Warn("the size of the write-ahead log cannot be read", "error", err)
			continue
		}
		if size < walLow || size == copied {
			continue
		}
		copied = size
		if err := e.empty(size); err != nil {
			e.log.Warn("the write-ahead log was not emptied", "error", err, "bytes", size)
		}
	}
}

func (e *emptier) size() (int64, error) {
	info, err := os.Stat(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (e *emptier) empty(size int64) error {
	statement := "PRAGMA wal_checkpoint(PASSIVE)"
	if size >= WALBound {
		statement = "PRAGMA wal_checkpoint(TRUNCATE)"
	}
	var busy, frames, done int64
	return e.conn.query(background, statement, nil, func(r *sql.Rows) error { return r.Scan(&busy, &frames, &done) })
}
