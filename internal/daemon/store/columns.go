package store

import (
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Each list of columns stands beside what it is read into and written from, in one order.

const sessionColumns = `s.runner, s.session, s.state_folder, s.boot, s.start_counter, s.transport_seq, s.version, s.capability_digest`

func sessionInto(s *authority.Session) []any {
	return []any{
		id(&s.Runner.ULID), id(&s.Session.ULID), id(&s.StateFolder.ULID), id(&s.Boot.ULID), num(&s.StartCounter),
		num(&s.TransportSeq), &s.Version, hash(&s.CapabilityDigest),
	}
}

func sessionFrom(s *authority.Session) []any {
	return []any{
		s.Session.ULID[:], s.StateFolder.ULID[:], s.Boot.ULID[:], toInt(s.StartCounter), toInt(s.TransportSeq), s.Version,
		s.CapabilityDigest[:], s.Runner.ULID[:],
	}
}

const rulerColumns = `r.id, r.slots, r.disabled, r.revoked, r.draining, r.last_reject`

func rulerInto(r *authority.Runner) []any {
	return []any{id(&r.ID.ULID), num(&r.Slots), flag{&r.Disabled}, flag{&r.Revoked}, flag{&r.Draining}, num(&r.LastReject)}
}

const jobColumns = `j.id, j.state, j.cancel_requested, j.spec, j.hard_ttl, j.max_lifetime, j.retry, j.attempts, j.free_retries,
	j.infra_retries, j.user_retries, j.outcome, j.open_attempt, j.open_lease, j.open_runner, j.open_session`

// jobInto reads all but what Open repeats of the job itself; see fillOpen.
func jobInto(j *authority.Job) []any {
	j.Retry = new(forge.RetryPolicy)
	return []any{
		id(&j.ID.ULID), num(&j.State),
		flag{&j.CancelRequested},
		specID(&j.Spec), num(&j.HardTTL), num(&j.MaxLifetime),
		doc(j.Retry), num(&j.Attempts), num(&j.FreeRetries), num(&j.InfraRetries), num(&j.UserRetries), num(&j.Outcome),
		id(&j.Open.Attempt.ULID), id(&j.Open.Lease.ULID), id(&j.Open.Runner.ULID), id(&j.Open.Session.ULID),
	}
}

func fillOpen(j *authority.Job) {
	if !j.Open.Lease.IsZero() {
		j.Open.Job, j.Open.Spec = j.ID, j.Spec
	}
}

func jobFrom(j *authority.Job) []any {
	return []any{
		toInt(j.State), toFlag(j.CancelRequested), j.Spec[:], toInt(j.HardTTL), toInt(j.MaxLifetime), toText(j.Retry),
		toInt(j.Attempts), toInt(j.FreeRetries), toInt(j.InfraRetries), toInt(j.UserRetries), toInt(j.Outcome),
		j.Open.Attempt.ULID[:], j.Open.Lease.ULID[:], j.Open.Runner.ULID[:], j.Open.Session.ULID[:],
	}
}

// stamps are the times of a job that its changes of state set.
type stamps struct{ ready, started, ended, changed forge.WallTime }

const stampColumns = `j.ready_at, j.started_at, j.ended_at, j.changed_at`

func (s *stamps) into() []any {
	return []any{num(&s.ready), num(&s.started), num(&s.ended), num(&s.changed)}
}

func (s *stamps) from() []any {
	return []any{toInt(s.ready), toInt(s.started), toInt(s.ended), toInt(s.changed)}
}

// set notes a change of state.
func (s *stamps) set(from, to forge.JobState, now forge.WallTime) {
	if from == to {
		return
	}
	s.changed = now
	switch {
	case to == forge.JobReady && s.ready == 0:
		s.ready = now
	case to == forge.JobActive && s.started == 0:
		s.started = now
	case to.Ended():
		s.ended = now
	}
}

const leaseColumns = `l.id, l.job, l.attempt, l.spec, l.runner, l.session, l.state_folder, l.boot, l.start_counter, l.state,
	l.renewals, l.hard_ttl, l.lived, l.max_lifetime`

func leaseInto(l *authority.Lease) []any {
	c := &l.Context
	return []any{
		id(&c.Lease.ULID), id(&c.Job.ULID), id(&c.Attempt.ULID), specID(&c.Spec), id(&c.Runner.ULID), id(&c.Session.ULID),
		id(&l.StateFolder.ULID), id(&l.Boot.ULID), num(&l.StartCounter), num(&l.State), num(&l.Renewals), num(&l.HardTTL),
		num(&l.Lived), num(&l.MaxLifetime),
	}
}

func leaseFrom(l *authority.Lease) []any {
	c := &l.Context
	return []any{
		c.Lease.ULID[:], c.Job.ULID[:], c.Attempt.ULID[:], c.Spec[:], c.Runner.ULID[:], c.Session.ULID[:],
		l.StateFolder.ULID[:], l.Boot.ULID[:], toInt(l.StartCounter), toInt(l.State), toInt(l.Renewals), toInt(l.HardTTL),
		toInt(l.Lived), toInt(l.MaxLifetime),
	}
}

const attemptColumns = `a.id, a.job, a.number, a.state, a.event_seq, a.outcome, a.completion, a.result_hash`

func attemptInto(a *authority.Attempt) []any {
	return []any{
		id(&a.ID.ULID), id(&a.Job.ULID), num(&a.Number), num(&a.State), num(&a.EventSeq), num(&a.Outcome),
		id(&a.Completion.ULID), hash(&a.ResultHash),
	}
}

func attemptFrom(a *authority.Attempt) []any {
	return []any{
		a.ID.ULID[:], a.Job.ULID[:], toInt(a.Number), toInt(a.State), toInt(a.EventSeq), toInt(a.Outcome),
		a.Completion.ULID[:], a.ResultHash[:],
	}
}

// marks are the times of an attempt that its changes of state set.
type marks struct{ accepted, started, ended forge.WallTime }

const markColumns = `a.accepted_at, a.started_at, a.ended_at`

func (m *marks) into() []any { return []any{num(&m.accepted), num(&m.started), num(&m.ended)} }

// set notes a change of state. A late phase may come without the ones before it.
func (m *marks) set(to forge.AttemptState, now forge.WallTime) {
	if to.Ended() {
		m.ended = now
		return
	}
	if to >= forge.AttemptAccepted && m.accepted == 0 {
		m.accepted = now
	}
	if to >= forge.AttemptRunning && m.started == 0 {
		m.started = now
	}
}

const logColumns = `g.attempt, g.runner, g.next, g.bytes, g.hash, g.sealed, g.seal_last, g.seal_bytes, g.seal_hash`

func logInto(l *authority.Log) []any {
	return []any{
		id(&l.Attempt.ULID), id(&l.Runner.ULID), num(&l.Next), num(&l.Bytes), hash(&l.Hash),
		flag{&l.Sealed},
		num(&l.Seal.Last), num(&l.Seal.Bytes), hash(&l.Seal.Hash),
	}
}
