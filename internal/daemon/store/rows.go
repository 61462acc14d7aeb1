package store

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Do carries out a rule as a part of this transaction: it loads what the rule asks for, lets it decide, and writes what it
// marked, together with what people want to see of it.
func (tx *Tx) Do(cmd authority.Command) (authority.Answer, error) {
	var w work
	if err := tx.load(&w, cmd.Keys(nil), cmd); err != nil {
		return authority.Answer{}, err
	}
	answer := cmd.Apply(&w.rows)
	if err := tx.store(&w); err != nil {
		return authority.Answer{}, err
	}
	if err := tx.remember(&w, cmd); err != nil {
		return authority.Answer{}, err
	}
	return answer, nil
}

// store writes the rows that a rule marked. Parents come before what refers to them.
func (tx *Tx) store(w *work) error {
	r := &w.rows
	for _, write := range []struct {
		dirty bool
		row   func() error
	}{
		{r.Session.Dirty, func() error { return tx.storeSession(&r.Session) }},
		{r.Folder.Dirty, func() error { return tx.storeFolder(&r.Folder.Value) }},
		{r.Beat.Dirty, func() error { return tx.storeBeat(&r.Beat.Value) }},
		{r.Runner.Dirty, func() error { return tx.storeRuler(&r.Runner) }},
		{r.Job.Dirty, func() error { return tx.storeJob(w) }},
		{r.Attempt.Dirty, func() error { return tx.storeAttempt(w) }},
		{r.Lease.Dirty, func() error { return tx.storeLease(&r.Lease) }},
		{len(r.Held) > 0, func() error { return tx.storeHeld(r.Held) }},
		{r.Log.Dirty, func() error { return tx.storeLog(&r.Log) }},
	} {
		if !write.dirty {
			continue
		}
		if err := write.row(); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) storeSession(row *authority.Row[authority.Session]) error {
	if !row.Found {
		return fmt.Errorf("%w: runner %v", ErrNotFound, row.Value.Runner)
	}
	tx.changes.runner(row.Value.Runner)
	return tx.write(`UPDATE session SET session = ?, state_folder = ?, boot = ?, start_counter = ?, transport_seq = ?, version = ?,
		capability_digest = ? WHERE runner = ?`, sessionFrom(&row.Value)...)
}

func (tx *Tx) storeFolder(f *authority.Folder) error {
	return tx.write(`INSERT INTO folder (runner, state_folder, highest) VALUES (?, ?, ?)
		ON CONFLICT (runner, state_folder) DO UPDATE SET highest = excluded.highest`,
		f.Runner.ULID[:], f.StateFolder.ULID[:], toInt(f.Highest))
}

func (tx *Tx) storeBeat(b *authority.Beat) error {
	return tx.write(`INSERT INTO beat (runner, count, seen_at) VALUES (?, ?, ?)
		ON CONFLICT (runner) DO UPDATE SET count = excluded.count, seen_at = excluded.seen_at`,
		b.Runner.ULID[:], toInt(b.Count), toInt(tx.now))
}

func (tx *Tx) storeRuler(row *authority.Row[authority.Runner]) error {
	r := &row.Value
	if !row.Found {
		return fmt.Errorf("%w: runner %v", ErrNotFound, r.ID)
	}
	tx.changes.runner(r.ID)
	return tx.write(`UPDATE runner SET slots = ?, disabled = ?, revoked = ?, draining = ?, last_reject = ? WHERE id = ?`,
		toInt(r.Slots), toFlag(r.Disabled), toFlag(r.Revoked), toFlag(r.Draining), toInt(r.LastReject), r.ID.ULID[:])
}

func (tx *Tx) storeJob(w *work) error {
	j := &w.rows.Job.Value
	if !w.rows.Job.Found {
		return fmt.Errorf("%w: job %v", ErrNotFound, j.ID)
	}
	w.stamps.set(w.job, j.State, tx.now)
	args := append(append(jobFrom(j), w.stamps.from()...), j.ID.ULID[:])
	err := tx.write(`UPDATE job SET state = ?, cancel_requested = ?, spec = ?, hard_ttl = ?, max_lifetime = ?, retry = ?,
		attempts = ?, free_retries = ?, infra_retries = ?, user_retries = ?, outcome = ?, open_attempt = ?, open_lease = ?,
		open_runner = ?, open_session = ?, ready_at = ?, started_at = ?, ended_at = ?, changed_at = ? WHERE id = ?`, args...)
	if err != nil {
		return err
	}
	tx.changes.job(j.ID)
	tx.changes.run(w.run)
	if w.job != j.State && (j.State.Ended() || j.State == forge.JobActive) {
		return tx.unsettle(w.run)
	}
	return nil
}

// unsettle marks a run for its owner to look at.
func (tx *Tx) unsettle(run forge.RunID) error {
	_, err := tx.exec(`UPDATE run SET unsettled = 1 WHERE id = ? AND unsettled = 0`, run.ULID[:])
	return err
}

func (tx *Tx) storeAttempt(w *work) error {
	a := &w.rows.Attempt.Value
	tx.changes.attempt(a.ID)
	tx.changes.job(a.Job)
	if !w.rows.Attempt.Found {
		return tx.write(`INSERT INTO attempt (id, job, number, state, event_seq, outcome, completion, result_hash, result, reject,
			created_at, accepted_at, started_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0, ?, 0, 0, 0)`,
			append(attemptFrom(a), toInt(tx.now))...)
	}
	if w.attempt != a.State {
		w.marks.set(a.State, tx.now)
	}
	return tx.write(`UPDATE attempt SET state = ?, event_seq = ?, outcome = ?, completion = ?, result_hash = ?,
		accepted_at = ?, started_at = ?, ended_at = ? WHERE id = ?`,
		toInt(a.State), toInt(a.EventSeq), toInt(a.Outcome), a.Completion.ULID[:], a.ResultHash[:],
		toInt(w.marks.accepted), toInt(w.marks.started), toInt(w.marks.ended), a.ID.ULID[:])
}

// storeLease writes a lease. With a new one comes the empty log of its attempt.
func (tx *Tx) storeLease(row *authority.Row[authority.Lease]) error {
	l := &row.Value
	tx.changes.runner(l.Context.Runner)
	if row.Found {
		return tx.write(`UPDATE lease SET state = ?, renewals = ?, lived = ?, expires_at = ? WHERE id = ?`,
			toInt(l.State), toInt(l.Renewals), toInt(l.Lived), tx.expires(l), l.Context.Lease.ULID[:])
	}
	if err := tx.write(`INSERT INTO lease (id, job, attempt, spec, runner, session, state_folder, boot, start_counter, state,
		renewals, hard_ttl, lived, max_lifetime, expires_at) VALUES (`+marksOf("?", 15)+`)`,
		append(leaseFrom(l), tx.expires(l))...); err != nil {
		return err
	}
	return tx.write(`INSERT INTO log (attempt, runner, next, bytes, hash, sealed, seal_last, seal_bytes, seal_hash)
		VALUES (?, ?, 1, 0, ?, 0, 0, 0, ?)`, l.Context.Attempt.ULID[:], l.Context.Runner.ULID[:], noDigest, noDigest)
}

var (
	noID     = make([]byte, 16)
	noDigest = make([]byte, 32)
)

// expires is when a lease ends for those who watch it on a wall clock. Nothing is decided by it.
func (tx *Tx) expires(l *authority.Lease) int64 {
	return toInt(tx.now) + l.HardTTL.Milliseconds()
}

// storeHeld writes the renewals of one heartbeat as one statement.
func (tx *Tx) storeHeld(held []authority.HeldLease) error {
	var dirty []*authority.Lease
	for i := range held {
		if held[i].Lease.Dirty {
			dirty = append(dirty, &held[i].Lease.Value)
		}
	}
	for _, chunk := range padded(dirty) {
		args := make([]any, 0, 4*len(chunk))
		for _, l := range chunk {
			args = append(args, l.Context.Lease.ULID[:], toInt(l.Renewals), toInt(l.Lived), tx.expires(l))
		}
		if _, err := tx.exec(`UPDATE lease SET renewals = v.column2, lived = v.column3, expires_at = v.column4
			FROM (VALUES `+marksOf("(?, ?, ?, ?)", len(chunk))+`) AS v WHERE lease.id = v.column1`, args...); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) storeLog(row *authority.Row[authority.Log]) error {
	l := &row.Value
	tx.changes.attempt(l.Attempt)
	return tx.write(`UPDATE log SET next = ?, bytes = ?, hash = ?, sealed = ?, seal_last = ?, seal_bytes = ?, seal_hash = ?
		WHERE attempt = ?`, toInt(l.Next), toInt(l.Bytes), l.Hash[:], toFlag(l.Sealed), toInt(l.Seal.Last), toInt(l.Seal.Bytes),
		l.Seal.Hash[:], l.Attempt.ULID[:])
}

// finished is what is kept of an accepted completion for those who read it. What decided is in the attempt's row.
type finished struct {
	Result     forge.Result
	CancelSeen bool
	Capture    forge.Class
	Outputs    []forge.OutputRef
}

// remember keeps what a rule was told and does not keep itself.
func (tx *Tx) remember(w *work, cmd authority.Command) error {
	switch c := cmd.(type) {
	case *authority.Complete:
		if !w.rows.Attempt.Dirty {
			return nil
		}
		m := c.Completion
		return tx.write(`UPDATE attempt SET result = ? WHERE id = ?`,
			toText(finished{m.Result, m.CancelSeen, m.Capture, m.Outputs}), m.Context.Attempt.ULID[:])
	case *authority.Reject:
		if !w.rows.Attempt.Dirty {
			return nil
		}
		if err := tx.write(`UPDATE attempt SET reject = ? WHERE id = ?`, toInt(c.Reason), c.Context.Attempt.ULID[:]); err != nil {
			return err
		}
		_, err := tx.exec(`UPDATE runner SET last_reject_job = ?, last_reject_at = ? WHERE id = ?`,
			c.Context.Job.ULID[:], toInt(tx.now), c.Context.Runner.ULID[:])
		return err
	}
	return nil
}
