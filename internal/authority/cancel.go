package authority

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// CancelJob records a user's wish that a job stops. The flag commits first; a job that nobody holds ends in the same
// transaction. What holds an offer is revoked by Revoke, what runs is told by every later answer.
type CancelJob struct{ Job forge.JobID }

// Keys implements Command.
func (c *CancelJob) Keys(dst []Key) []Key {
	return append(dst, Key{Table: TableJob, Lock: Update, ID: c.Job.ULID})
}

// Apply implements Command. Context names the open lease, if there is one.
func (c *CancelJob) Apply(rows *Rows) Answer {
	if !rows.Job.Found || rows.Job.Value.State.Ended() {
		return Answer{}
	}
	job := rows.Job.write()
	job.CancelRequested = true
	if job.State == forge.JobWaiting || job.State == forge.JobReady {
		job.State = mustNext(lifecycle.Job, job.State, lifecycle.JobCancel)
		job.Outcome = forge.Cancelled
	}
	return Answer{Done: true, Context: job.Open}
}

// Revoke ends an offer of a job that is to be cancelled. If the offer has been accepted meanwhile, it changes nothing:
// then the agent is told.
type Revoke struct{ Context forge.AttemptContext }

// Keys implements Command.
func (c *Revoke) Keys(dst []Key) []Key {
	return attemptKeys(append(dst, Key{Table: TableSession, Lock: Share, ID: c.Context.Runner.ULID}), c.Context)
}

// Apply implements Command.
func (c *Revoke) Apply(rows *Rows) Answer {
	if !rows.Job.Value.CancelRequested || !rows.Lease.Found || rows.Lease.Value.State != forge.LeaseOffered {
		return Answer{}
	}
	end(rows, lifecycle.LeaseRevoke, forge.Cancelled, nil)
	return Answer{Done: true}
}

// Expire ends a lease whose renewals were watched standing still for long enough. It holds only for the very state that
// was watched: a renewal or an acceptance in between makes it nothing.
type Expire struct {
	Context  forge.AttemptContext
	State    forge.LeaseState // Offered or Accepted, as watched
	Renewals uint64           // as watched
}

// Keys implements Command.
func (c *Expire) Keys(dst []Key) []Key {
	return attemptKeys(append(dst, Key{Table: TableSession, Lock: Share, ID: c.Context.Runner.ULID}), c.Context)
}

// Apply implements Command.
func (c *Expire) Apply(rows *Rows) Answer {
	l := rows.Lease
	if !l.Found || l.Value.State.Ended() || l.Value.State != c.State || l.Value.Renewals != c.Renewals {
		return Answer{}
	}
	end(rows, lifecycle.LeaseExpire, forge.Lost, nil)
	return Answer{Done: true}
}
