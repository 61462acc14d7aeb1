package sim

// State is an interesting state of a schedule: something that the invariants are really about. A run of many schedules
// counts only if each was reached often; a test that stopped testing shows here.
type State int

// The states.
const (
	ClaimAccepted           State = 0  // an offer was accepted
	ClaimAnsweredAgain      State = 1  // an acceptance came again and was answered by a renewal
	ClaimRefusedCancelled   State = 2  // the job was cancelled while the acceptance was on its way
	ClaimRefusedExpired     State = 3  // the offer had expired
	ClaimRefusedSuperseded  State = 4  // the lease had ended otherwise
	ResyncContinued         State = 5  // a running lease went on over a new connection
	ResyncStale             State = 6  // a lease had ended meanwhile
	ResyncAccepted          State = 7  // an item of a resync was the acceptance
	AbsentLost              State = 8  // a resync did not name an accepted lease
	AcceptedExpired         State = 9  // an accepted lease expired
	OfferExpired            State = 10 // nobody took an offer
	ExpiryOutrun            State = 11 // a renewal or an end came before the expiry
	OfferRevoked            State = 12
	RevokeOutrun            State = 13 // the offer was accepted or ended before it was revoked
	ReadyCancelled          State = 14 // a ready or waiting job ended by its cancel
	HeldCancelled           State = 15 // the cancel met an open lease
	RecoveredEnded          State = 16 // a restarted agent's word ended a lease
	RecoveredWaits          State = 17 // its word was not enough
	RecoveredApplied        State = 18 // the completion had been accepted before the crash
	CompletionTaken         State = 19
	CompletionRepeated      State = 20 // DuplicateAccepted
	CompletionLate          State = 21 // StaleRejected
	CompletionForged        State = 22 // InvalidRejected
	CompletionBeforeSeal    State = 23 // NOT_YET for the log
	CompletionBeforeRef     State = 24 // NOT_YET for an output
	SessionReplaced         State = 25 // a newer process of the folder took over
	OldConnectionLate       State = 26 // a registration arrived after a newer connection's
	OldProcessLate          State = 27 // a registration of a superseded process
	CloneRefused            State = 28
	FolderReplaced          State = 29 // another folder took over from a dead session
	MessageFenced           State = 30 // a message of a connection without authority
	RetriedFree             State = 31
	RetriedInfra            State = 32
	RetriedUser             State = 33
	FailedOutOfBudget       State = 34
	CancelledUnstarted      State = 35 // the cancel came before the workload
	ResultStood             State = 36 // a result had happened before the cancel was seen
	LifetimeSpent           State = 37 // a lease was told that it has lived its life
	DisabledTold            State = 38 // a disabled runner's lease was told to stop
	LogAppendedAfterEnd     State = 39 // the rest of a log arrived after its attempt had ended
	AcceptedGivenBack       State = 40 // a rejection after the acceptance
	LockWaited              State = 41
	UniqueIndexRefused      State = 42
	FrameLost               State = 43
	FrameFromTheDead        State = 44 // a frame arrived whose sender had died
	LogOverlapCut           State = 45 // a batch of frames was partly stored already
	OfferBackedOff          State = 46
	SandboxOrphaned         State = 47 // agent and launcher died, the sandbox lived on
	OrphanKilledAtStart     State = 48 // the next process found a workload alive
	OutboxHeldBack          State = 49 // the control stream took nothing for a while
	StartHeldBack           State = 50 // the start took a while to reach pid 1
	StartTooLate            State = 51 // pid 1 found the deadline too near
	PreparationFailed       State = 52
	DeadlineKill            State = 53
	OldDeadlineArrived      State = 54 // a deadline overtaken by a later one
	RunningStopped          State = 55
	UploadFailedOnce        State = 56
	CancelAskedTwice        State = 57
	SpecCorrupted           State = 58
	LeaseGivenBack          State = 59
	PausedPastDeadline      State = 60 // an agent slept through its deadline
	WorkloadLostLate        State = 61 // a lost attempt asked for acceptance all the same
	TransactionOutlivedTurn State = 62 // a session changed while a message of it was being handled
	LogStreamReset          State = 63 // frames could not be made durable; the spool sends them again
	states                        = 64
)

var stateNames = [states]string{
	"claim accepted", "claim answered again", "claim refused: cancelled", "claim refused: expired", "claim refused: superseded",
	"resync continued", "resync stale", "resync accepted", "absent lost", "accepted expired", "offer expired", "expiry outrun",
	"offer revoked", "revoke outrun", "ready cancelled", "held cancelled", "recovered: ended", "recovered: waits",
	"recovered: applied", "completion taken", "completion repeated", "completion late", "completion forged",
	"completion before seal", "completion before ref", "session replaced", "old connection late", "old process late",
	"clone refused", "folder replaced", "message fenced", "retried free", "retried infra", "retried user",
	"failed out of budget", "cancelled unstarted", "result stood", "lifetime spent", "disabled told", "log appended after end",
	"accepted given back", "lock waited", "unique index refused", "frame lost", "frame from the dead", "log overlap cut",
	"offer backed off", "sandbox orphaned", "orphan killed at start", "outbox held back", "start held back", "start too late",
	"preparation failed", "deadline kill", "old deadline arrived", "running stopped", "upload failed", "cancel asked twice",
	"spec corrupted", "lease given back", "paused past deadline", "lost completion sent", "session changed meanwhile",
	"log stream reset",
}

func (s State) String() string { return stateNames[s] }

// States lists them all.
func States() []State {
	all := make([]State, states)
	for i := range all {
		all[i] = State(i)
	}
	return all
}

// FaultKinds lists them all.
func FaultKinds() []FaultKind {
	all := make([]FaultKind, faultKinds)
	for i := range all {
		all[i] = FaultKind(i)
	}
	return all
}
