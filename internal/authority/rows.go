package authority

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Session is the current session of a runner: who may speak for it. There is one row per runner, made with the runner,
// so that there is always a row to lock; a zero Session field means that nobody has registered yet.
type Session struct {
	Runner           forge.RunnerID
	Session          forge.AgentSessionID
	StateFolder      forge.StateFolderID
	Boot             forge.BootID
	StartCounter     uint64
	TransportSeq     uint64
	Version          string
	CapabilityDigest digest.Digest
}

// Folder remembers the highest start counter that was ever accepted from one state folder of a runner. It outlives the
// session, so that a process that was once superseded stays so.
type Folder struct {
	Runner      forge.RunnerID
	StateFolder forge.StateFolderID
	Highest     uint64
}

// Beat counts the heartbeats and resyncs of a runner's sessions. Its only use is to be seen moving, or not.
type Beat struct {
	Runner forge.RunnerID
	Count  uint64
}

// Runner is what the server has decided about a runner.
type Runner struct {
	ID         forge.RunnerID
	Slots      int // leases that it may hold at once
	Disabled   bool
	Revoked    bool
	Draining   bool
	LastReject forge.RejectReason
}

// Job is a job that can be offered.
type Job struct {
	ID              forge.JobID
	State           forge.JobState
	CancelRequested bool
	Spec            forge.JobSpecID
	HardTTL         time.Duration      // what each renewal of a lease on it grants
	MaxLifetime     time.Duration      // of one lease, renewals included
	Retry           *forge.RetryPolicy // of the spec; never changed
	Attempts        uint32             // made so far
	FreeRetries     uint32             // ended before anything could have run; they cost nothing (D09)
	InfraRetries    uint32
	UserRetries     uint32
	Outcome         forge.Class          // of the attempt that ended last
	Open            forge.AttemptContext // of its open lease, or zero
}

// Attempt is one try at a job.
type Attempt struct {
	ID         forge.AttemptID
	Job        forge.JobID
	Number     uint32 // from 1 within the job
	State      forge.AttemptState
	EventSeq   uint64 // of the latest phase
	Outcome    forge.Class
	Completion forge.MessageID // of the completion that was accepted
	ResultHash digest.Digest
}

// Lease is one grant of an attempt. It has no expiry time: Renewals standing still is what ends it.
type Lease struct {
	Context      forge.AttemptContext
	StateFolder  forge.StateFolderID // of its session, with Boot and StartCounter: what a later process must prove
	Boot         forge.BootID
	StartCounter uint64
	State        forge.LeaseState
	Renewals     uint64
	HardTTL      time.Duration
	Lived        time.Duration // watched by the daemons that renewed it
	MaxLifetime  time.Duration
}

// Log is the stored log of an attempt.
type Log struct {
	Attempt forge.AttemptID
	Runner  forge.RunnerID
	Next    forge.LogSeq // the first frame that is not stored yet
	Bytes   uint64
	Hash    digest.Digest // over the stored bytes; the store of segments keeps it
	Sealed  bool
	Seal    forge.LogSeal
}

// RefState is what the store knows of one output reference of a completion.
type RefState struct {
	Known bool // uploaded by this attempt, or part of its input closure
	Live  bool // readable: complete, verified, durable
}

// Row is a row inside a transaction.
type Row[T any] struct {
	Value T
	Found bool
	Dirty bool // to be written; with Found false, to be inserted
}

func (r *Row[T]) write() *T {
	r.Dirty = true
	return &r.Value
}

// HeldLease is a lease that a heartbeat names, with its job's cancel flag, which is read without a lock.
type HeldLease struct {
	Lease  Row[Lease]
	Cancel bool
}

// Rows is the working set of one transaction: what Keys asked for, filled by the store, changed by Apply.
type Rows struct {
	Session    Row[Session]
	Folder     Row[Folder]
	Beat       Row[Beat]
	Runner     Row[Runner]
	OpenLeases int // of the runner, counted in a statement after its row was locked
	Job        Row[Job]
	Lease      Row[Lease]
	Attempt    Row[Attempt]
	Log        Row[Log]
	Held       []HeldLease
	Refs       []RefState
}

// Table names a kind of row. The order of the numbers is the lock order.
type Table uint8

// The tables. TableOpenLeases and TableRefs are reads, not rows.
const (
	TableSession    Table = 1
	TableFolder     Table = 2
	TableBeat       Table = 3
	TableRunner     Table = 4
	TableOpenLeases Table = 5 // the number of open leases of a runner
	TableJob        Table = 6
	TableLease      Table = 7 // with its attempt
	TableHeld       Table = 8 // one of several leases, with its job's cancel flag
	TableLog        Table = 9
	TableRefs       Table = 10
)

// Lock says how a row is locked while the transaction lasts.
type Lock uint8

// The lock modes.
const (
	Read   Lock = 0 // not at all
	Share  Lock = 1
	Update Lock = 2
)

// Key is one statement of a transaction: lock a row of Table in this mode and load it.
type Key struct {
	Table Table
	Lock  Lock
	ID    forge.ULID // of the runner, job, lease or attempt
	Sub   forge.ULID // the state folder, with TableFolder
}

// Snapshot is one consistent reading of the rows that daemons watch, as of some moment between asking and returning.
type Snapshot struct {
	Sessions []SeenSession
	Leases   []Lease // the open ones
	Cancel   []bool  // for each lease: a user wants its job stopped
}

// SeenSession is a runner's session as read.
type SeenSession struct {
	Session Session
	Beats   uint64
	Runner  Runner
}
