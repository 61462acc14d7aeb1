package authority

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// end is the only way out. It ends the lease by event, its attempt with class, and decides what becomes of the job, all
// in the rows of one transaction. The caller holds the locks of attemptKeys and has checked that event is legal.
//
// result is what a completion says of the workload; without one, class is what we conclude from silence or refusal.
func end(rows *Rows, event lifecycle.Event, class forge.Class, result *forge.Result) {
	lease, attempt, job := rows.Lease.write(), rows.Attempt.write(), rows.Job.write()
	accepted := lease.State == forge.LeaseAccepted
	var exit uint8
	if result != nil {
		exit = result.ExitCode
	}
	lease.State = mustNext(lifecycle.Lease, lease.State, event)

	next := decide(job, ending{
		class: class, exit: exit, result: result != nil, refused: event == lifecycle.LeaseRefuse,
		accepted: accepted, ran: attempt.State >= forge.AttemptRunning,
	})
	to := class.AttemptState()
	if event == lifecycle.LeaseRefuse {
		to = forge.AttemptRefused
	}
	attempt.State = mustNext(lifecycle.Attempt, attempt.State, lifecycle.Terminal(to))
	attempt.Outcome = class

	job.State = mustNext(lifecycle.Job, job.State, next)
	job.Outcome = class
	job.Open = forge.AttemptContext{}
}

// ending is what is known about an attempt that ends.
type ending struct {
	class    forge.Class
	exit     uint8 // with ExitCode
	result   bool  // a completion says so
	refused  bool  // the agent says that nothing was started
	accepted bool  // the lease had been accepted
	ran      bool  // a phase said that the workload ran
}

// free reports whether the attempt ended before anything can have run. A job that must not run twice gets the benefit of
// no doubt: once its lease was accepted, only the agent's own word counts.
func (e ending) free(p *forge.RetryPolicy) bool {
	switch {
	case e.result || e.ran:
		return false
	case e.refused || !e.accepted:
		return true
	default:
		return p.Infra > 0
	}
}

// decide says what becomes of a job whose attempt ends, and charges the budget that pays for another.
func decide(job *Job, e ending) lifecycle.Event {
	fault := e.class.Fault()
	switch {
	case e.result && fault == forge.FaultNone:
		return lifecycle.JobSucceed
	case e.result && fault == forge.FaultCancelled:
		return lifecycle.JobCancel
	case job.CancelRequested && e.result && fault == forge.FaultUser:
		return lifecycle.JobFail // it had already happened when the cancel came; it stands, but is not tried again
	case job.CancelRequested:
		return lifecycle.JobCancel
	case e.free(job.Retry):
		job.FreeRetries++
		return lifecycle.JobRequeue
	case fault == forge.FaultInfrastructure && job.InfraRetries < uint32(job.Retry.Infra):
		job.InfraRetries++
		return lifecycle.JobRequeue
	case fault == forge.FaultUser && job.Retry.Covers(e.class, e.exit) && job.UserRetries < uint32(job.Retry.Max):
		job.UserRetries++
		return lifecycle.JobRequeue
	}
	return lifecycle.JobFail
}

// Reject gives an offer back, or a lease of which nothing was started (07§32).
type Reject struct {
	Fence   Fence
	Context forge.AttemptContext
	Reason  forge.RejectReason
}

// Keys implements Command.
func (c *Reject) Keys(dst []Key) []Key { return attemptKeys(append(dst, c.Fence.key()), c.Context) }

// Apply implements Command.
func (c *Reject) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	if !ownOpen(rows, c.Context, c.Fence) || !lifecycle.Attempt.Can(rows.Attempt.Value.State, lifecycle.AttemptRefuse) {
		return Answer{Audit: foreign(rows, c.Context, c.Fence)}
	}
	if rows.Runner.Found {
		rows.Runner.write().LastReject = c.Reason
	}
	end(rows, lifecycle.LeaseRefuse, forge.Interrupted, nil)
	return Answer{Done: true}
}

// Absent ends a lease that the store has as accepted by a session whose resync did not name it: an agent names every
// lease of which anything is left.
type Absent struct {
	Fence   Fence
	Context forge.AttemptContext
}

// Keys implements Command.
func (c *Absent) Keys(dst []Key) []Key { return attemptKeys(append(dst, c.Fence.key()), c.Context) }

// Apply implements Command.
func (c *Absent) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	if !ownOpen(rows, c.Context, c.Fence) || rows.Lease.Value.State != forge.LeaseAccepted {
		return Answer{}
	}
	end(rows, lifecycle.LeaseLose, forge.Lost, nil)
	return Answer{Done: true}
}

// Recover is about an attempt of a previous process, named by its successor after everything of it was killed. It ends
// the lease at once only where the successor proves to be the next process on the same folder in the same boot: then
// what it killed was all there was. Anything else waits for expiry. Authority is never inherited: a completion that the
// store does not have already is worth nothing from here on.
type Recover struct {
	Fence Fence
	Item  forge.RecoveredAttempt
}

// Keys implements Command.
func (c *Recover) Keys(dst []Key) []Key {
	return attemptKeys(append(dst, c.Fence.key()), c.Item.Context)
}

// Apply implements Command.
func (c *Recover) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	lease := rows.Lease
	if !lease.Found || lease.Value.Context != c.Item.Context || c.Item.Context.Runner != c.Fence.Runner {
		return Answer{Recovery: forge.RecoveryWaits, Audit: auditForeign(&lease)}
	}
	if a := rows.Attempt.Value; !c.Item.Completion.IsZero() && a.Completion == c.Item.Completion && a.ResultHash == c.Item.Hash {
		return Answer{Recovery: forge.RecoveryApplied}
	}
	if lease.Value.State.Ended() {
		return Answer{Recovery: forge.RecoveryEnded}
	}
	if lease.Value.State != forge.LeaseAccepted || !c.proves(rows) {
		return Answer{Recovery: forge.RecoveryWaits}
	}
	end(rows, lifecycle.LeaseLose, forge.Lost, nil)
	return Answer{Done: true, Recovery: forge.RecoveryEnded}
}

// proves reports whether the sender's word that the attempt is dead can be taken.
func (c *Recover) proves(rows *Rows) bool {
	s, l := rows.Session.Value, rows.Lease.Value
	return c.Item.Killed && s.StateFolder == l.StateFolder && s.Boot == l.Boot && s.StartCounter > l.StartCounter
}

// ownOpen reports whether the lease is open, is exactly this tuple, and belongs to the runner and session that speak. The
// runner is the authenticated one: an agent names its own session, so a session's id alone proves nothing.
func ownOpen(rows *Rows, c forge.AttemptContext, f Fence) bool {
	l := rows.Lease
	return l.Found && l.Value.Context == c && c.Runner == f.Runner && c.Session == f.Session && !l.Value.State.Ended()
}

// foreign says whether a message about an attempt deserves a look: the lease exists, but for another tuple or runner.
func foreign(rows *Rows, c forge.AttemptContext, f Fence) Audit {
	if rows.Lease.Found && (rows.Lease.Value.Context != c || c.Runner != f.Runner) {
		return AuditForeignAttempt
	}
	return AuditNone
}
