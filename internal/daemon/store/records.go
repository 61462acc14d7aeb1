package store

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Project is a name under which runs are kept.
type Project struct {
	Name    forge.ProjectName
	Created forge.WallTime
}

// Run is a run as stored.
type Run struct {
	forge.Run
	Sequence        uint64 // order of submission, from 1; the cursor of listings
	Name            string // a title for people, or empty
	Key             string // idempotency key of its submission, or empty
	Actor           string // who submitted it
	CancelRequested bool
	CancelActor     string      // who asked for that
	Lane            string      // runs of one lane in a project run one after the other; empty: it is in none
	Behind          forge.RunID // only where a run is settled: the older one of its lane that has not ended
	Started         forge.WallTime
	Ended           forge.WallTime // zero until then
	RetryOf         forge.RunID    // the run of which it tries jobs again; zero: of none
}

// NewRun is a submission: the run and the whole of its graph.
type NewRun struct {
	ID      forge.RunID
	Project forge.ProjectName // made if it is not there
	Trust   forge.TrustClass
	Name    string // a title for people
	Key     string // idempotency key: unique within the project where it is not empty
	Actor   string
	Lane    string
	Replace bool    // of its lane it ends the older runs; else it waits for them
	Origin  *Origin // nil: the jobs were submitted with their specs
	Jobs    []NewJob
	RetryOf forge.RunID   // the run of which it tries jobs again; zero: of none
	Taken   []forge.JobID // jobs of it, or of those that it has taken over itself, whose results count in this one
}

// Origin is what a run was planned from. Facts are of whoever plans: the store does not look into them.
type Origin struct {
	Pipeline []byte
	Facts    []byte
}

// NewJob is one job of a submission. It starts Waiting; a Settle plans it.
type NewJob struct {
	ID    forge.JobID
	Key   forge.JobKey
	Title string // for people
	Leg   forge.Leg
	Needs []forge.JobNeed
	Draft forge.JobSpecID // what it was submitted with; Settle makes it the spec by planning the job; zero with an Origin
	Bytes []byte          // of Draft, stored once for each id
	Terms Terms
}

// Terms are what the spec says about leases on a job.
type Terms struct {
	HardTTL     time.Duration
	MaxLifetime time.Duration
	Retry       forge.RetryPolicy
}

// Job is a job as stored: its place in the graph, and its row of authority.
type Job struct {
	forge.Job
	Authority authority.Job
	Project   forge.ProjectName
	Trust     forge.TrustClass
	Sequence  uint64 // of its run
	Position  int    // within its run, from 0
	Draft     forge.JobSpecID
	Title     string // for people, or empty
	Lane      string // jobs of one lane in a project run one after the other
	Created   forge.WallTime
	Ready     forge.WallTime // when it was planned
	Started   forge.WallTime // when its first attempt was accepted
	Ended     forge.WallTime
	Changed   forge.WallTime // when its state last changed; of a Ready job: since when it has waited
	Excused   bool           // it has failed, and that counts as a success
	Reason    string         // why it was skipped or could not be planned, for people
}

// Attempt is an attempt as stored, with its lease and its log.
type Attempt struct {
	Authority    authority.Attempt
	Lease        authority.Lease
	Log          authority.Log
	Reject       forge.RejectReason // where its runner refused it
	CancelSeen   bool               // with Result
	Capture      forge.Class        // with Result
	Result       *forge.Result      // of the accepted completion; nil without one
	Outputs      []forge.OutputRef
	Created      forge.WallTime // offered
	Accepted     forge.WallTime
	Started      forge.WallTime // Running
	Ended        forge.WallTime
	LeaseExpires forge.WallTime // for display only: the last renewal plus the hard TTL
}

// Runner is a runner as stored.
type Runner struct {
	forge.Runner
	Slots          int
	Revoked        bool
	Created        forge.WallTime
	LastReject     forge.RejectReason
	LastRejectJob  forge.JobID
	LastRejectAt   forge.WallTime
	Session        authority.Session
	Seen           forge.WallTime // last beat
	Summary        forge.ResourceSummary
	Health         forge.Health
	Capabilities   forge.Capabilities
	CapabilitiesAt forge.WallTime // zero: none were reported yet
	CapabilityID   digest.Digest
}

// NewRunner is a runner to be made, with its empty session.
type NewRunner struct {
	ID       forge.RunnerID
	Name     string // unique among the runners that are not deleted
	Pool     string
	Trust    forge.TrustClass
	Labels   []string
	Slots    int
	Reserved forge.Resources
}

// RunnerChange is what an administrator changes of a runner; nil leaves a field as it is. Flags that authority knows are
// changed by authority.SetRunner.
type RunnerChange struct {
	Name     *string
	Pool     *string
	Trust    *forge.TrustClass
	Labels   *[]string
	Slots    *int
	Reserved *forge.Resources
}

// OpenLease is a lease that takes room on a runner.
type OpenLease struct {
	Lease   authority.Lease
	Job     forge.JobKey
	Run     forge.RunID
	Project forge.ProjectName
}

// ReadyJob is a job that waits for a runner, as the scheduler needs it. Its Need comes from the bytes of its spec.
type ReadyJob struct {
	ID           forge.JobID
	Run          forge.RunID
	Project      forge.ProjectName
	Trust        forge.TrustClass
	Sequence     uint64
	Spec         forge.JobSpecID
	FreeRetries  uint32
	InfraRetries uint32           // that faults of machines have used up
	Changed      forge.WallTime   // when it became ready again
	Refused      []forge.RunnerID // that refused an attempt of it
}

// Token is an enrolment token. Only the hash of its secret is stored.
type Token struct {
	Hash    digest.Digest
	Runner  forge.RunnerID // that it is bound to, or that it has made; zero: it will make one
	Name    string         // of the runner that it makes; empty: the agent may wish for one
	Pool    string
	Trust   forge.TrustClass
	Labels  []string
	Slots   int
	Creator string
	Created forge.WallTime // set by the store
	Expires forge.WallTime
	UsedBy  digest.Digest // the public key that redeemed it
	UsedAt  forge.WallTime
}

// Certificate is a certificate that was issued to a runner. Nothing in it is secret.
type Certificate struct {
	Serial     string // lower-case hexadecimal
	Runner     forge.RunnerID
	Key        digest.Digest // of its public key
	NotBefore  forge.WallTime
	NotAfter   forge.WallTime
	Issued     forge.WallTime // set by the store, with Used and Superseded
	Used       forge.WallTime // first
	Superseded bool           // by a newer one that is in use
}

// AuditEvent is something that somebody may have to look at later. Detail never holds a secret.
type AuditEvent struct {
	Sequence uint64 // order of the log, from 1; set by the store
	At       forge.WallTime
	Kind     string
	Actor    string
	Runner   forge.RunnerID
	Subject  string // what it is about: an id or a name
	Detail   string
}
