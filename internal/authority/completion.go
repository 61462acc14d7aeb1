package authority

import (
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// Phase records a significant phase of a running attempt (07§65–68). It is idempotent by Seq and only goes forward.
type Phase struct {
	Fence   Fence
	Context forge.AttemptContext
	Seq     uint64
	Phase   forge.AttemptState
}

// Keys implements Command.
func (c *Phase) Keys(dst []Key) []Key {
	return append(dst, c.Fence.key(), Key{Table: TableLease, Lock: Update, ID: c.Context.Lease.ULID})
}

// Apply implements Command.
func (c *Phase) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	if !ownOpen(rows, c.Context, c.Fence) || rows.Lease.Value.State != forge.LeaseAccepted {
		return Answer{Audit: foreign(rows, c.Context, c.Fence)}
	}
	advance(rows, c.Phase, c.Seq)
	return Answer{Done: true}
}

// advance brings an attempt to a later phase; anything else leaves it as it is.
func advance(rows *Rows, to forge.AttemptState, seq uint64) {
	a := &rows.Attempt.Value
	event, ok := lifecycle.Phase(to)
	if !ok || seq <= a.EventSeq || !lifecycle.Attempt.Can(a.State, event) {
		return
	}
	a = rows.Attempt.write()
	a.State = mustNext(lifecycle.Attempt, a.State, event)
	a.EventSeq = seq
}

// AppendLog makes frames of an attempt's log durable. It changes no outcome, so it needs the runner but no session: after
// an attempt has ended, any process of the same runner may append the rest. A frame is stored once: Next is the fence.
type AppendLog struct {
	Runner  forge.RunnerID // as authenticated
	Attempt forge.AttemptID
	First   forge.LogSeq
	Count   uint64
	Bytes   uint64        // of the frames from First
	Hash    digest.Digest // over all stored bytes, these included
}

// Keys implements Command.
func (c *AppendLog) Keys(dst []Key) []Key {
	return append(dst, Key{Table: TableLog, Lock: Update, ID: c.Attempt.ULID})
}

// Apply implements Command. Next tells how far the log is stored; Done is false where nothing was appended.
func (c *AppendLog) Apply(rows *Rows) Answer {
	log := &rows.Log
	if !log.Found || log.Value.Runner != c.Runner {
		return Answer{Audit: AuditForeignAttempt}
	}
	if log.Value.Sealed || c.First != log.Value.Next || c.Count == 0 {
		return Answer{Next: log.Value.Next}
	}
	l := log.write()
	l.Next += forge.LogSeq(c.Count)
	l.Bytes += c.Bytes
	l.Hash = c.Hash
	return Answer{Done: true, Next: l.Next}
}

// SealLog closes a log (LogFinal). It is acknowledged before the completion that repeats its hash.
type SealLog struct {
	Fence   Fence
	Context forge.AttemptContext
	Seal    forge.LogSeal
}

// Keys implements Command.
func (c *SealLog) Keys(dst []Key) []Key {
	return append(dst, c.Fence.key(), Key{Table: TableLog, Lock: Update, ID: c.Context.Attempt.ULID})
}

// Apply implements Command.
func (c *SealLog) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	log := &rows.Log
	switch {
	case !log.Found || log.Value.Runner != c.Fence.Runner:
		return Answer{Audit: AuditForeignAttempt}
	case log.Value.Sealed:
		return Answer{Done: log.Value.Seal == c.Seal}
	case log.Value.Next != c.Seal.Last+1 || log.Value.Bytes != c.Seal.Bytes || log.Value.Hash != c.Seal.Hash:
		return Answer{NotYet: forge.ErrorNotYetLog, Next: log.Value.Next}
	}
	l := log.write()
	l.Sealed, l.Seal = true, c.Seal
	return Answer{Done: true}
}

// CloseLog ends a log that its runner never sealed, a while after its attempt was lost. The log of an attempt that has
// not ended is its agent's to seal.
type CloseLog struct {
	Lease   forge.LeaseID
	Attempt forge.AttemptID
}

// Keys implements Command.
func (c *CloseLog) Keys(dst []Key) []Key {
	return append(dst, Key{Table: TableLease, Lock: Share, ID: c.Lease.ULID}, Key{Table: TableLog, Lock: Update, ID: c.Attempt.ULID})
}

// Apply implements Command.
func (c *CloseLog) Apply(rows *Rows) Answer {
	lease := rows.Lease
	if !rows.Log.Found || rows.Log.Value.Sealed ||
		!lease.Found || lease.Value.Context.Attempt != c.Attempt || !lease.Value.State.Ended() {
		return Answer{}
	}
	l := rows.Log.write()
	l.Sealed = true
	l.Seal = forge.LogSeal{Last: l.Next - 1, Bytes: l.Bytes, Hash: l.Hash}
	return Answer{Done: true}
}

// Complete asks for the acceptance of a result (07§89).
type Complete struct {
	Fence      Fence
	Completion *forge.Completion
}

// Keys implements Command.
func (c *Complete) Keys(dst []Key) []Key {
	dst = attemptKeys(append(dst, c.Fence.key()), c.Completion.Context)
	return append(dst,
		Key{Table: TableLog, Lock: Share, ID: c.Completion.Context.Attempt.ULID},
		Key{Table: TableRefs, Lock: Read, ID: c.Completion.Context.Attempt.ULID},
	)
}

// Refs lists the objects whose presence TableRefs is about, in the order of Rows.Refs.
func (c *Complete) Refs() []forge.OutputRef { return c.Completion.Outputs }

// Apply implements Command.
func (c *Complete) Apply(rows *Rows) Answer {
	if reason := c.Fence.check(rows); reason != 0 {
		return Answer{Close: reason}
	}
	m := c.Completion
	lease, attempt := &rows.Lease, &rows.Attempt.Value
	switch {
	case !lease.Found || lease.Value.Context != m.Context || m.Context.Runner != c.Fence.Runner:
		return Answer{Completion: forge.CompletionInvalid, Audit: auditForeign(lease)}
	case attempt.Completion == m.Message && attempt.ResultHash == m.Hash:
		return Answer{Completion: forge.CompletionDuplicate, Done: true}
	case attempt.Completion == m.Message:
		return Answer{Completion: forge.CompletionInvalid, Audit: AuditChangedResult}
	case lease.Value.State.Ended() || m.Context.Session != c.Fence.Session:
		return Answer{Completion: forge.CompletionStale}
	case lease.Value.State != forge.LeaseAccepted:
		return Answer{Completion: forge.CompletionInvalid}
	}
	if answer := c.evidence(rows); answer != (evidence{}) {
		return Answer{NotYet: answer.notYet, Completion: answer.answer}
	}
	a := rows.Attempt.write()
	a.Completion, a.ResultHash = m.Message, m.Hash
	end(rows, lifecycle.LeaseRelease, m.Outcome(), &m.Result)
	return Answer{Completion: forge.CompletionAccepted, Done: true}
}

// evidence is what is missing or wrong about what the completion rests on.
type evidence struct {
	notYet forge.ErrorCode
	answer forge.CompletionAnswer
}

// evidence checks that the log is sealed as claimed and that every output is this attempt's and readable.
func (c *Complete) evidence(rows *Rows) evidence {
	switch {
	case !rows.Log.Found || !rows.Log.Value.Sealed:
		return evidence{notYet: forge.ErrorNotYetLog}
	case rows.Log.Value.Seal != c.Completion.Log:
		return evidence{answer: forge.CompletionInvalid}
	case len(rows.Refs) != len(c.Completion.Outputs):
		return evidence{notYet: forge.ErrorNotYetRef} // the store could not tell of all of them
	}
	for _, ref := range rows.Refs {
		if !ref.Known {
			return evidence{answer: forge.CompletionInvalid}
		}
	}
	for _, ref := range rows.Refs {
		if !ref.Live {
			return evidence{notYet: forge.ErrorNotYetRef}
		}
	}
	return evidence{}
}
