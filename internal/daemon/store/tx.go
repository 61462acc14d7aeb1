package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// View reads one consistent state of the database. It belongs to the function that it was given to: it is that function's
// scope, which is why it carries the context and none of its methods takes one.
type View struct {
	ctx  context.Context
	conn *conn
	tx   *Tx // set in a View that is a Tx's
}

// Tx is a View that also writes. What it reads includes what it wrote. The first error of the database stays: from then on
// every method returns it and nothing is done, also where the caller overlooks it.
type Tx struct {
	View
	now     forge.WallTime
	rows    int64 // written
	changes changeSet
	failed  error
}

func newTx(c *conn, now forge.WallTime) *Tx {
	tx := &Tx{View: View{ctx: background, conn: c}, now: now}
	tx.tx = tx
	return tx
}

// Now is the wall clock reading that stands in what this transaction writes.
func (tx *Tx) Now() forge.WallTime { return tx.now }

// exec runs a statement that writes and returns how many rows it changed.
func (tx *Tx) exec(text string, args ...any) (int64, error) {
	if tx.failed != nil {
		return 0, tx.failed
	}
	n, err := tx.conn.exec(tx.ctx, text, args...)
	if err != nil {
		tx.failed = plain(err)
		return 0, tx.failed
	}
	tx.rows += n
	return n, nil
}

// write runs a statement that must change exactly one row.
func (tx *Tx) write(text string, args ...any) error {
	n, err := tx.exec(text, args...)
	if err == nil && n != 1 {
		tx.failed = errAffected
		return errAffected
	}
	return err
}

// errAffected: a row that was read in this transaction was not there to be written. That is a bug of this package.
var errAffected = errors.New("store: a statement did not change the one row that it was for")

// query runs a statement that reads.
func (v *View) query(text string, args []any, each func(*sql.Rows) error) error {
	if v.tx != nil && v.tx.failed != nil {
		return v.tx.failed
	}
	err := v.conn.query(v.ctx, text, args, each)
	if err != nil && v.tx != nil {
		v.tx.failed = err
	}
	return err
}

// find reads at most one row and reports whether there was one.
func (v *View) find(text string, args []any, into ...any) (bool, error) {
	found := false
	err := v.query(text, args, func(r *sql.Rows) error {
		found = true
		return r.Scan(into...)
	})
	return found, err
}

// one reads exactly one record, or ErrNotFound.
func one[T any](v *View, text string, columns func(*T) []any, args ...any) (T, error) {
	var record T
	found, err := v.find(text, args, columns(&record)...)
	if err == nil && !found {
		err = ErrNotFound
	}
	return record, err
}

// list reads records in order.
func list[T any](v *View, text string, columns func(*T) []any, args ...any) ([]T, error) {
	var records []T
	err := v.query(text, args, func(r *sql.Rows) error {
		var record T
		if err := r.Scan(columns(&record)...); err != nil {
			return err
		}
		records = append(records, record)
		return nil
	})
	return records, err
}

// next draws the next number of a counter, from 1. The numbers of one counter are in the order of the commits.
func (tx *Tx) next(counter string) (uint64, error) {
	if err := tx.write(`INSERT INTO counter (name, value) VALUES (?, 1)
		ON CONFLICT (name) DO UPDATE SET value = counter.value + 1`, counter); err != nil {
		return 0, err
	}
	var n uint64
	_, err := tx.find(`SELECT value FROM counter WHERE name = ?`, []any{counter}, num(&n))
	return n, err
}

// page bounds the limit of a listing; zero is a page of the usual size.
func page(limit int) int64 {
	const usual = 50
	if limit <= 0 {
		limit = usual
	}
	return int64(min(limit, MaxPage))
}
