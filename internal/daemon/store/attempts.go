package store

import "github.com/forgeyard/forgeyard/internal/forge"

const attemptMoreColumns = `a.result, a.reject, a.created_at, l.expires_at`

const attemptSelect = `SELECT ` + attemptColumns + `, ` + markColumns + `, ` + attemptMoreColumns + `, ` + leaseColumns + `, ` + logColumns + `
	FROM attempt a JOIN lease l ON l.attempt = a.id JOIN log g ON g.attempt = a.id `

// storedAttempt is an attempt as it is read.
type storedAttempt struct {
	Attempt
	end *finished
}

func attemptRecordInto(a *storedAttempt) []any {
	into := append(attemptInto(&a.Authority), num(&a.Accepted), num(&a.Started), num(&a.Ended))
	into = append(into, doc(&a.end), num(&a.Reject), num(&a.Created), num(&a.LeaseExpires))
	return append(append(into, leaseInto(&a.Lease)...), logInto(&a.Log)...)
}

func (a *storedAttempt) record() Attempt {
	if a.end != nil {
		a.Result, a.CancelSeen, a.Capture, a.Outputs = &a.end.Result, a.end.CancelSeen, a.end.Capture, a.end.Outputs
	}
	return a.Attempt
}

func (v *View) attempts(where string, args ...any) ([]Attempt, error) {
	stored, err := list(v, attemptSelect+where, attemptRecordInto, args...)
	if err != nil {
		return nil, err
	}
	attempts := make([]Attempt, 0, len(stored))
	for i := range stored {
		attempts = append(attempts, stored[i].record())
	}
	return attempts, nil
}

// Attempt returns an attempt, or ErrNotFound.
func (v *View) Attempt(attempt forge.AttemptID) (Attempt, error) {
	found, err := v.attempts(`WHERE a.id = ?`, attempt.ULID[:])
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Attempt{}, err
	}
	return found[0], nil
}

// Attempts lists the attempts of a job by number.
func (v *View) Attempts(job forge.JobID) ([]Attempt, error) {
	return v.attempts(`WHERE a.job = ? ORDER BY a.number`, job.ULID[:])
}

// UnsealedLogs lists the attempts that ended before a time and whose log was not sealed, at most limit.
func (v *View) UnsealedLogs(endedBefore forge.WallTime, limit int) ([]Attempt, error) {
	return v.attempts(`WHERE g.sealed = 0 AND a.ended_at > 0 AND a.ended_at < ? ORDER BY a.ended_at LIMIT ?`, toInt(endedBefore), page(limit))
}

// RecordUpload notes that an attempt uploaded an output, or that one it uploaded has become readable.
func (tx *Tx) RecordUpload(attempt forge.AttemptID, ref forge.OutputRef, live bool) error {
	args := append(append([]any{attempt.ULID[:]}, refFrom(&ref)...), toFlag(live))
	return tx.write(`INSERT INTO upload (attempt, output, tree, digest, bytes, live) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (attempt, output, tree, digest, bytes) DO UPDATE SET live = excluded.live`, args...)
}
