package authority

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// Offer is the only way in: it makes an attempt and a lease for a ready job and gives both to a runner's session. The
// runner's row is locked before its open leases are counted, so that two daemons cannot fill one slot twice; the job's
// row is locked before its state is read, so that two runners cannot be offered one job.
type Offer struct {
	Fence   Fence // the session and connection that the offer will be sent to
	Job     forge.JobID
	Attempt forge.AttemptID // new
	Lease   forge.LeaseID   // new
}

// Keys implements Command.
func (c *Offer) Keys(dst []Key) []Key {
	return append(dst,
		c.Fence.key(),
		Key{Table: TableRunner, Lock: Update, ID: c.Fence.Runner.ULID},
		Key{Table: TableOpenLeases, Lock: Read, ID: c.Fence.Runner.ULID},
		Key{Table: TableJob, Lock: Update, ID: c.Job.ULID},
		Key{Table: TableLease, Lock: Update, ID: c.Lease.ULID},
	)
}

// Apply implements Command.
func (c *Offer) Apply(rows *Rows) Answer {
	if c.Fence.check(rows) != 0 || !c.runnerFree(rows) || !c.jobFree(rows) {
		return Answer{}
	}
	job := rows.Job.write()
	job.State = mustNext(lifecycle.Job, job.State, lifecycle.JobOffer)
	job.Attempts++
	job.Open = forge.AttemptContext{
		Job: job.ID, Attempt: c.Attempt, Lease: c.Lease, Spec: job.Spec,
		Runner: c.Fence.Runner, Session: c.Fence.Session,
	}
	s := rows.Session.Value
	*rows.Attempt.write() = Attempt{ID: c.Attempt, Job: job.ID, Number: job.Attempts, State: forge.AttemptOffered}
	*rows.Lease.write() = Lease{
		Context: job.Open, StateFolder: s.StateFolder, Boot: s.Boot, StartCounter: s.StartCounter,
		State: forge.LeaseOffered, HardTTL: job.HardTTL, MaxLifetime: job.MaxLifetime,
	}
	return Answer{Done: true, Context: job.Open}
}

func (c *Offer) runnerFree(rows *Rows) bool {
	r := rows.Runner
	return r.Found && !r.Value.Disabled && !r.Value.Revoked && !r.Value.Draining && rows.OpenLeases < r.Value.Slots
}

func (c *Offer) jobFree(rows *Rows) bool {
	j := rows.Job
	return j.Found && !j.Value.CancelRequested && lifecycle.Job.Can(j.Value.State, lifecycle.JobOffer) && !rows.Lease.Found
}

// Plan makes a waiting job ready once its needs have ended and its spec is fixed.
type Plan struct {
	Job  forge.JobID
	Spec forge.JobSpecID
}

// Keys implements Command.
func (c *Plan) Keys(dst []Key) []Key {
	return append(dst, Key{Table: TableJob, Lock: Update, ID: c.Job.ULID})
}

// Apply implements Command.
func (c *Plan) Apply(rows *Rows) Answer {
	if !rows.Job.Found || !lifecycle.Job.Can(rows.Job.Value.State, lifecycle.JobPlan) {
		return Answer{}
	}
	job := rows.Job.write()
	job.State = mustNext(lifecycle.Job, job.State, lifecycle.JobPlan)
	job.Spec = c.Spec
	return Answer{Done: true}
}

// mustNext applies an event that the caller has already found to be legal.
func mustNext[S lifecycle.State](t *lifecycle.Table[S], from S, event lifecycle.Event) S {
	to, err := t.Next(from, event)
	if err != nil {
		panic("authority: " + err.Error())
	}
	return to
}
