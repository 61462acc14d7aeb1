// Package authority is the daemon's side of the question who holds a job.
//
// It has the rows that authority rests on and, for each thing that may change them, a rule: a Command whose Keys names
// the rows that its transaction locks, in order, and whose Apply turns the locked rows into changed rows and an answer.
// A store carries a rule out as begin, lock and load, Apply, write, commit; the answer may leave the daemon only when
// the commit is known to have happened. Nothing else is authority: not a connection, not a timer, not a daemon's memory.
//
//	table    key              locked by
//	Session  runner           every message of an agent (share), Register (update)
//	Folder   runner, folder   Register
//	Beat     runner           heartbeat, resync
//	Runner   runner           whatever opens or ends a lease
//	Job      job              whatever changes a job
//	Lease    lease            whatever changes a lease or its attempt; the attempt's row is under the same lock
//	Log      attempt          whatever changes a log
//
// Locks are always taken in the order of that table. There is one way in, Offer, and one way out, end: released,
// refused, revoked, expired and lost leases all pass through it, and it alone decides what becomes of the job.
//
// A Watch says when a lease may be expired: by having seen its renewals stand still, never by a clock's reading.
//
// The rules are design/leases.md as code; docs/adr/ says where they differ. Pure: no clock, no I/O, no goroutine.
package authority
