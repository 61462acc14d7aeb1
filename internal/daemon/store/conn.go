package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// busyMillis is how long a statement waits for a lock that another connection holds.
const busyMillis = 5000

// mode says what a connection is for.
type mode uint8

const (
	writing  mode = 1
	reading  mode = 2
	emptying mode = 3 // the write-ahead log
)

// conn is one connection with its prepared statements. It is used by one goroutine at a time.
type conn struct {
	db    *sql.DB
	sql   *sql.Conn
	stmts map[string]*sql.Stmt
}

// dsn names the database file and how a connection uses it. A checkpoint is never run by the writer on its own, and a
// commit is on the disk when it returns.
func dsn(path string, m mode) string {
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", busyMillis), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"wal_autocheckpoint(0)", "temp_store(MEMORY)",
	}
	if m == reading {
		pragmas = append(pragmas, "query_only(1)")
	}
	u := url.URL{Scheme: "file", Path: fileURLPath(path), RawQuery: url.Values{"_pragma": pragmas, "_dqs": {"0"}}.Encode()}
	return u.String()
}

// fileURLPath is an absolute path as a file URL has it: with a slash also before a drive letter.
func fileURLPath(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return p
}

func connect(ctx context.Context, path string, m mode) (*conn, error) {
	db, err := sql.Open("sqlite", dsn(path, m))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &conn{db: db, sql: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) close() error {
	errs := make([]error, 0, 2+len(c.stmts))
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	errs = append(errs, c.sql.Close(), c.db.Close())
	return errors.Join(errs...)
}

// prepare returns the statement of a text, which is one of this package's own: their number is bounded by its source.
func (c *conn) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := c.stmts[text]; s != nil {
		return s, nil
	}
	s, err := c.sql.PrepareContext(ctx, placeholders(text))
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", text, err)
	}
	c.stmts[text] = s
	return s, nil
}

// placeholders turns the question marks of a statement into what the engine calls its arguments. SQLite takes them as they
// are; PostgreSQL wants $1, $2 and so on.
func placeholders(text string) string { return text }

func (c *conn) exec(ctx context.Context, text string, args ...any) (int64, error) {
	s, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// query runs a statement and calls each for every row. each must read what it needs at once.
func (c *conn) query(ctx context.Context, text string, args []any, each func(*sql.Rows) error) error {
	s, err := c.prepare(ctx, text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := each(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// code is the primary result code of an error of the engine, or zero.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool       { return code(err) == sqlite3.SQLITE_BUSY }
func isFull(err error) bool       { return code(err) == sqlite3.SQLITE_FULL }
func isConstraint(err error) bool { return code(err) == sqlite3.SQLITE_CONSTRAINT }

// plain puts our own kinds in front of the engine's errors that callers tell apart.
func plain(err error) error {
	switch {
	case isFull(err):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case isConstraint(err):
		return fmt.Errorf("%w: %w", ErrExists, err)
	}
	return err
}
