package authority

import "github.com/forgeyard/forgeyard/internal/forge"

// Command is one rule with its arguments. It carries everything that it needs: ids and watched durations come in with
// it, never from a clock or a random source.
type Command interface {
	// Keys appends the statements of the transaction, in lock order.
	Keys(dst []Key) []Key
	// Apply decides. It changes rows in place and marks those to be written; rows that it does not mark are unchanged.
	// It must not be called on rows of anything but a transaction that took exactly the locks of Keys.
	Apply(rows *Rows) Answer
}

// Answer is what a rule says. Its fields are those of the rule's kind; the rest is zero.
type Answer struct {
	// Close is set where the sender has no authority, or none any more: it gets no verdict, only the close.
	Close forge.CloseReason
	// Audit is set where somebody should look.
	Audit Audit
	// Context is the attempt that the rule was about, where the command did not say.
	Context forge.AttemptContext
	// Verdicts answer a heartbeat (one for each lease) or a claim (one).
	Verdicts []forge.LeaseVerdict
	// Refused is set where a claim was an acceptance that is not granted.
	Refused forge.RefuseReason
	// NotYet is set where something else has to be stored first.
	NotYet forge.ErrorCode
	// Completion answers a completion.
	Completion forge.CompletionAnswer
	// Recovery answers about an attempt of a previous process.
	Recovery forge.RecoveryVerdict
	// Next is the first log frame that is not stored.
	Next forge.LogSeq
	// Done reports whether the rule had its effect, now or earlier.
	Done bool
}

// Audit names an event that belongs into the audit log (09§279).
type Audit uint8

// The audit events.
const (
	AuditNone            Audit = 0
	AuditCloneSuspected  Audit = 1
	AuditFolderReplaced  Audit = 2
	AuditForeignAttempt  Audit = 3 // an agent spoke about an attempt that is not its own
	AuditChangedResult   Audit = 4 // one completion id, two results
	AuditSessionReplaced Audit = 5
)

// Fence is the authority that a connection claims for what it sends.
type Fence struct {
	Runner       forge.RunnerID
	Session      forge.AgentSessionID
	TransportSeq uint64
}

// key is the statement that every fenced rule begins with. Holding the row until commit keeps a newer connection or
// process from taking over in the middle of it.
func (f Fence) key() Key { return Key{Table: TableSession, Lock: Share, ID: f.Runner.ULID} }

// check returns why the sender has no authority, or zero.
func (f Fence) check(rows *Rows) forge.CloseReason {
	s := &rows.Session
	switch {
	case !s.Found || s.Value.Session.IsZero() || s.Value.Session != f.Session:
		return forge.CloseSessionSuperseded
	case s.Value.TransportSeq != f.TransportSeq:
		return forge.CloseFenced
	}
	return 0
}

// attemptKeys are the locks that EndAttempt needs after the session: runner, job, lease.
func attemptKeys(dst []Key, c forge.AttemptContext) []Key {
	return append(dst,
		Key{Table: TableRunner, Lock: Update, ID: c.Runner.ULID},
		Key{Table: TableJob, Lock: Update, ID: c.Job.ULID},
		Key{Table: TableLease, Lock: Update, ID: c.Lease.ULID},
	)
}
