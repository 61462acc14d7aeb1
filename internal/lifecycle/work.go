package lifecycle

import "github.com/forgeyard/forgeyard/internal/forge"

// Events of a run.
const (
	RunStart   Event = "start"   // its first job became active
	RunSucceed Event = "succeed" // every job ended well or was skipped
	RunFail    Event = "fail"
	RunCancel  Event = "cancel"
	RunAbort   Event = "abort" // we could not plan or keep it
)

// Run is the machine of a run.
var Run = newTable("run", join(
	fan(RunStart, forge.RunRunning, forge.RunPlanned),
	fan(RunSucceed, forge.RunSucceeded, forge.RunPlanned, forge.RunRunning),
	fan(RunFail, forge.RunFailed, forge.RunPlanned, forge.RunRunning),
	fan(RunCancel, forge.RunCancelled, forge.RunPlanned, forge.RunRunning),
	fan(RunAbort, forge.RunError, forge.RunPlanned, forge.RunRunning),
)...)

// Events of a job.
const (
	JobPlan    Event = "plan" // its needs ended and its spec is fixed
	JobSkip    Event = "skip"
	JobOffer   Event = "offer"
	JobAccept  Event = "accept"
	JobRequeue Event = "requeue" // the attempt ended and another may follow
	JobSucceed Event = "succeed"
	JobFail    Event = "fail"
	JobCancel  Event = "cancel"
)

// Job is the machine of a job. A job that ended never comes back: a retry by hand is a new run.
var Job = newTable("job", join(
	fan(JobPlan, forge.JobReady, forge.JobWaiting),
	fan(JobSkip, forge.JobSkipped, forge.JobWaiting),
	fan(JobOffer, forge.JobOffered, forge.JobReady),
	fan(JobAccept, forge.JobActive, forge.JobOffered),
	fan(JobRequeue, forge.JobReady, forge.JobOffered, forge.JobActive),
	fan(JobSucceed, forge.JobSucceeded, forge.JobActive),
	fan(JobFail, forge.JobFailed, forge.JobWaiting, forge.JobOffered, forge.JobActive),
	fan(JobCancel, forge.JobCancelled, forge.JobWaiting, forge.JobReady, forge.JobOffered, forge.JobActive),
)...)

// Events of an attempt.
const (
	AttemptGrant    Event = "grant"
	AttemptPrepare  Event = "prepare"
	AttemptStart    Event = "start"    // the workload runs
	AttemptUpload   Event = "upload"   // the workload has ended, or will never start
	AttemptComplete Event = "complete" // everything is stored; the completion is on its way
	AttemptSucceed  Event = "succeed"
	AttemptFail     Event = "fail"
	AttemptCancel   Event = "cancel"
	AttemptLose     Event = "lose"
	AttemptRefuse   Event = "refuse"
)

// held are the states in which an agent holds the lease of the attempt.
var held = []forge.AttemptState{forge.AttemptAccepted, forge.AttemptPreparing, forge.AttemptRunning, forge.AttemptUploading, forge.AttemptCompleting}

// Attempt is the machine of an attempt. A daemon may hear of a late phase without the earlier ones: phases only ever go
// forward, and each may be skipped.
var Attempt = newTable("attempt", join(
	fan(AttemptGrant, forge.AttemptAccepted, forge.AttemptOffered),
	fan(AttemptPrepare, forge.AttemptPreparing, forge.AttemptAccepted),
	fan(AttemptStart, forge.AttemptRunning, forge.AttemptAccepted, forge.AttemptPreparing),
	fan(AttemptUpload, forge.AttemptUploading, forge.AttemptAccepted, forge.AttemptPreparing, forge.AttemptRunning),
	fan(AttemptComplete, forge.AttemptCompleting, forge.AttemptAccepted, forge.AttemptPreparing, forge.AttemptRunning, forge.AttemptUploading),
	fan(AttemptSucceed, forge.AttemptSucceeded, held...),
	fan(AttemptFail, forge.AttemptFailed, held...),
	fan(AttemptCancel, forge.AttemptCancelled, append([]forge.AttemptState{forge.AttemptOffered}, held...)...),
	fan(AttemptLose, forge.AttemptLost, append([]forge.AttemptState{forge.AttemptOffered}, held...)...),
	fan(AttemptRefuse, forge.AttemptRefused, forge.AttemptOffered, forge.AttemptAccepted, forge.AttemptPreparing),
)...)

// Phase returns the event that brings an attempt to a phase that an agent reports, and whether there is one.
func Phase(to forge.AttemptState) (Event, bool) {
	switch to {
	case forge.AttemptPreparing:
		return AttemptPrepare, true
	case forge.AttemptRunning:
		return AttemptStart, true
	case forge.AttemptUploading:
		return AttemptUpload, true
	case forge.AttemptCompleting:
		return AttemptComplete, true
	}
	return "", false
}

// Terminal returns the event that ends an attempt in a terminal state.
func Terminal(to forge.AttemptState) Event {
	switch to {
	case forge.AttemptSucceeded:
		return AttemptSucceed
	case forge.AttemptCancelled:
		return AttemptCancel
	case forge.AttemptLost:
		return AttemptLose
	case forge.AttemptRefused:
		return AttemptRefuse
	default:
		return AttemptFail
	}
}

// Events of a lease.
const (
	LeaseAccept  Event = "accept"
	LeaseRelease Event = "release" // its completion was accepted
	LeaseRefuse  Event = "refuse"
	LeaseRevoke  Event = "revoke"
	LeaseExpire  Event = "expire"
	LeaseLose    Event = "lose"
)

// Lease is the machine of a lease. There is one way in, and once ended there is no way out.
var Lease = newTable("lease", join(
	fan(LeaseAccept, forge.LeaseAccepted, forge.LeaseOffered),
	fan(LeaseRelease, forge.LeaseReleased, forge.LeaseAccepted),
	fan(LeaseRefuse, forge.LeaseRefused, forge.LeaseOffered, forge.LeaseAccepted),
	fan(LeaseRevoke, forge.LeaseRevoked, forge.LeaseOffered),
	fan(LeaseExpire, forge.LeaseExpired, forge.LeaseOffered, forge.LeaseAccepted),
	fan(LeaseLose, forge.LeaseLost, forge.LeaseAccepted),
)...)
