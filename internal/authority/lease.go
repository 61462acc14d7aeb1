package authority

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// Claim is one lease as its agent presents it: an acceptance of an offer (LeaseAccept, or an item of a Resync whose
// answer never came), or a lease that goes on (any other item of a Resync).
//
// An acceptance is never answered from a record: a second one of the same lease is answered by a fresh renewal.
type Claim struct {
	Fence    Fence
	Context  forge.AttemptContext
	Phase    forge.AttemptState // AttemptOffered: this is an acceptance
	EventSeq uint64             // of the phase
	Watched  Watched
}

// Watched is what the answering daemon has itself seen of a lease since it was last renewed.
type Watched struct {
	Lease    forge.LeaseID
	Renewals uint64
	For      time.Duration
}

// Keys implements Command.
func (c *Claim) Keys(dst []Key) []Key {
	return append(dst,
		c.Fence.key(),
		Key{Table: TableRunner, Lock: Read, ID: c.Fence.Runner.ULID},
		Key{Table: TableJob, Lock: Update, ID: c.Context.Job.ULID},
		Key{Table: TableLease, Lock: Update, ID: c.Context.Lease.ULID},
	)
}

// Apply implements Command.
func (c *Claim) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	lease := &rows.Lease
	if !lease.Found || lease.Value.Context != c.Context || c.Context.Runner != c.Fence.Runner {
		return c.refuse(forge.RefusedUnknown, auditForeign(lease))
	}
	switch {
	case lease.Value.State == forge.LeaseAccepted && lease.Value.Context.Session == c.Fence.Session:
		c.advance(rows)
	case lease.Value.State == forge.LeaseOffered && c.Phase == forge.AttemptOffered && lease.Value.Context.Session == c.Fence.Session:
		if rows.Job.Value.CancelRequested {
			return c.refuse(forge.RefusedCancelled, AuditNone)
		}
		if rows.silenced() {
			return c.refuse(forge.RefusedSuperseded, AuditNone) // no new lease; the offer runs out
		}
		accept(rows)
	default:
		return c.refuse(refusal(lease.Value.State), AuditNone)
	}
	verdict := renew(&lease.Value, c.Watched, rows.cancelOf(rows.Job.Value.CancelRequested))
	lease.Dirty = true
	return Answer{Done: true, Verdicts: []forge.LeaseVerdict{verdict}}
}

// accept moves lease, attempt and job out of the offer.
func accept(rows *Rows) {
	l := rows.Lease.write()
	l.State = mustNext(lifecycle.Lease, l.State, lifecycle.LeaseAccept)
	a := rows.Attempt.write()
	a.State = mustNext(lifecycle.Attempt, a.State, lifecycle.AttemptGrant)
	j := rows.Job.write()
	j.State = mustNext(lifecycle.Job, j.State, lifecycle.JobAccept)
}

// advance takes over the phase that the agent reports, if it is ahead of ours.
func (c *Claim) advance(rows *Rows) {
	if c.Phase != forge.AttemptOffered {
		advance(rows, c.Phase, c.EventSeq)
	}
}

func (c *Claim) refuse(why forge.RefuseReason, audit Audit) Answer {
	return Answer{
		Audit: audit, Refused: why,
		Verdicts: []forge.LeaseVerdict{{Lease: c.Context.Lease, Verdict: forge.VerdictStale}},
	}
}

func refusal(s forge.LeaseState) forge.RefuseReason {
	switch s {
	case forge.LeaseExpired:
		return forge.RefusedExpired
	case forge.LeaseRevoked:
		return forge.RefusedCancelled
	default:
		return forge.RefusedSuperseded
	}
}

// auditForeign: a lease that exists but not for this tuple is somebody else's.
func auditForeign(lease *Row[Lease]) Audit {
	if lease.Found {
		return AuditForeignAttempt
	}
	return AuditNone
}

// silenced reports whether the server has decided that the runner is to hold nothing.
func (r *Rows) silenced() bool { return r.Runner.Value.Disabled || r.Runner.Value.Revoked }

// cancelOf is what a holder is told beside its grant: a user's wish before the server's.
func (r *Rows) cancelOf(requested bool) forge.CancelReason {
	switch {
	case requested:
		return forge.CancelUser
	case r.silenced():
		return forge.CancelDisabled
	}
	return forge.CancelNone
}

// renew counts one renewal of an accepted lease and returns what it grants. A lease that has lived its life is told to
// stop and is not renewed: it ends by itself. Only what this daemon watched since the very renewal that stands in the
// row counts as lived; the time before the first one was an offer's.
func renew(l *Lease, seen Watched, cancel forge.CancelReason) forge.LeaseVerdict {
	if l.Renewals > 0 && seen.Renewals == l.Renewals {
		l.Lived += seen.For
	}
	verdict := forge.LeaseVerdict{Lease: l.Context.Lease, Verdict: forge.VerdictContinue, HardTTL: l.HardTTL, Cancel: cancel}
	if l.Lived >= l.MaxLifetime {
		verdict.Verdict, verdict.HardTTL = forge.VerdictCancel, 0
		if cancel == forge.CancelNone {
			verdict.Cancel = forge.CancelMaxLifetime
		}
		return verdict
	}
	l.Renewals++
	return verdict
}

// Heartbeat renews the leases that an agent names. Leases that it does not name are merely not renewed.
type Heartbeat struct {
	Fence   Fence
	Leases  []forge.LeaseID // sorted, each once: the order in which their rows are locked
	Watched []Watched       // one for each, in the same order
}

// Keys implements Command.
func (c *Heartbeat) Keys(dst []Key) []Key {
	dst = append(dst, c.Fence.key(),
		Key{Table: TableBeat, Lock: Update, ID: c.Fence.Runner.ULID},
		Key{Table: TableRunner, Lock: Read, ID: c.Fence.Runner.ULID})
	for _, id := range c.Leases {
		dst = append(dst, Key{Table: TableHeld, Lock: Update, ID: id.ULID})
	}
	return dst
}

// Apply implements Command.
func (c *Heartbeat) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	beat := rows.Beat.write()
	beat.Runner = c.Fence.Runner
	beat.Count++
	answer := Answer{Done: true, Verdicts: make([]forge.LeaseVerdict, len(c.Leases))}
	for i := range rows.Held {
		held := &rows.Held[i]
		if !c.holds(&held.Lease) {
			answer.Verdicts[i] = forge.LeaseVerdict{Lease: c.Leases[i], Verdict: forge.VerdictStale}
			continue
		}
		answer.Verdicts[i] = renew(&held.Lease.Value, c.Watched[i], rows.cancelOf(held.Cancel))
		held.Lease.Dirty = true
	}
	return answer
}

func (c *Heartbeat) holds(l *Row[Lease]) bool {
	return l.Found && l.Value.State == forge.LeaseAccepted &&
		l.Value.Context.Session == c.Fence.Session && l.Value.Context.Runner == c.Fence.Runner
}

// Touch counts a resync as a sign of life, whatever it names.
type Touch struct{ Fence Fence }

// Keys implements Command.
func (c *Touch) Keys(dst []Key) []Key {
	return append(dst, c.Fence.key(), Key{Table: TableBeat, Lock: Update, ID: c.Fence.Runner.ULID})
}

// Apply implements Command.
func (c *Touch) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	beat := rows.Beat.write()
	beat.Runner = c.Fence.Runner
	beat.Count++
	return Answer{Done: true}
}
