package sim

// State is an interesting state of a schedule: something that the invariants are really about. A run of many schedules
// counts only if each was reached often; a test that stopped testing shows here.
type State int

// The states.
const (
	ClaimAccepted          State = 0  // an offer was accepted
	ClaimAnsweredAgain     State = 1  // an acceptance came again and was answered by a renewal
	ClaimRefusedCancelled  State = 2  // the job was cancelled while the acceptance was on its way
	ClaimRefusedExpired    State = 3  // the offer had expired
	ClaimRefusedSuperseded State = 4  // the lease had ended otherwise
	ResyncContinued        State = 5  // a running lease went on over a new connection
	ResyncStale            State = 6  // a lease had ended meanwhile
	ResyncAccepted         State = 7  // an item of a resync was the acceptance
	AbsentLost             State = 8  // a resync did not name an accepted lease
	AcceptedExpired        State = 9  // an accepted lease expired
	OfferExpired           State = 10 // nobody took an offer
	ExpiryOutrun           State = 11 // a renewal or an end came before the expiry
	OfferRevoked           State = 12
	RevokeOutrun           State = 13 // the offer was accepted or ended before it was revoked
	ReadyCancelled         State = 14 // a ready or waiting job ended by its cancel
	HeldCancelled          State = 15 // the cancel met an open lease
	RecoveredEnded         State = 16 // a restarted agent's word ended a lease
	RecoveredWaits         State = 17 // its word was not enough
	RecoveredApplied       State = 18 // the completion had been accepted before the crash
	CompletionTaken        State = 19
	CompletionRepeated     State = 20 // DuplicateAccepted
	CompletionLate         State = 21 // StaleRejected
	CompletionForged       State = 22 // InvalidRejected
	CompletionBeforeRef    State = 23 // NOT_YET for an output
	SessionReplaced        State = 24 // a newer process of the folder took over
	OldConnectionLate      State = 25 // a registration arrived after a newer connection's
	OldProcessLate         State = 26 // a registration of a superseded process
	CloneRefused           State = 27
	FolderReplaced         State = 28 // another folder took over from a dead session
	MessageFenced          State = 29 // a message of a connection without authority
	RetriedFree            State = 30
	RetriedInfra           State = 31
	RetriedUser            State = 32
	FailedOutOfBudget      State = 33
	CancelledUnstarted     State = 34 // the cancel came before the workload
	ResultStood            State = 35 // a result had happened before the cancel was seen
	LifetimeSpent          State = 36 // a lease was told that it has lived its life
	DisabledTold           State = 37 // a disabled runner's lease was told to stop
	LogAppendedAfterEnd    State = 38 // the rest of a log arrived after its attempt had ended
	AcceptedGivenBack      State = 39 // a rejection after the acceptance
	LockWaited             State = 40
	FrameLost              State = 41
	FrameFromTheDead       State = 42 // a frame arrived whose sender had died
	LogOverlapCut          State = 43 // a batch of frames was partly stored already
	OfferBackedOff         State = 44
	SandboxOrphaned        State = 45 // agent and launcher died, the sandbox lived on
	OrphanKilledAtStart    State = 46 // the next process found a workload alive
	OutboxHeldBack         State = 47 // the control stream took nothing for a while
	StartHeldBack          State = 48 // the start took a while to reach pid 1
	StartTooLate           State = 49 // pid 1 found the deadline too near
	PreparationFailed      State = 50
	DeadlineKill           State = 51
	OldDeadlineArrived     State = 52 // a deadline overtaken by a later one
	RunningStopped         State = 53
	UploadFailedOnce       State = 54
	CancelAskedTwice       State = 55
	SpecCorrupted          State = 56
	LeaseGivenBack         State = 57
	PausedPastDeadline     State = 58 // an agent slept through its deadline
	WorkloadLostLate       State = 59 // a lost attempt asked for acceptance all the same
	LogStreamReset         State = 60 // frames could not be made durable; the spool sends them again
	ContinuedElsewhere     State = 61 // a lease went on at another daemon than the one that renewed it last
	OutputRedelivered      State = 62 // an output that was lost came a second time
	OutputGone             State = 63 // or could not
	RedeliveryLate         State = 64 // because the time for uploads was over
	states                       = 65
)

var stateNames = [states]string{
	ClaimAccepted:          "claim accepted",
	ClaimAnsweredAgain:     "claim answered again",
	ClaimRefusedCancelled:  "claim refused: cancelled",
	ClaimRefusedExpired:    "claim refused: expired",
	ClaimRefusedSuperseded: "claim refused: superseded",
	ResyncContinued:        "resync continued",
	ResyncStale:            "resync stale",
	ResyncAccepted:         "resync accepted",
	AbsentLost:             "absent lost",
	AcceptedExpired:        "accepted expired",
	OfferExpired:           "offer expired",
	ExpiryOutrun:           "expiry outrun",
	OfferRevoked:           "offer revoked",
	RevokeOutrun:           "revoke outrun",
	ReadyCancelled:         "ready cancelled",
	HeldCancelled:          "held cancelled",
	RecoveredEnded:         "recovered: ended",
	RecoveredWaits:         "recovered: waits",
	RecoveredApplied:       "recovered: applied",
	CompletionTaken:        "completion taken",
	CompletionRepeated:     "completion repeated",
	CompletionLate:         "completion late",
	CompletionForged:       "completion forged",
	CompletionBeforeRef:    "completion before ref",
	SessionReplaced:        "session replaced",
	OldConnectionLate:      "old connection late",
	OldProcessLate:         "old process late",
	CloneRefused:           "clone refused",
	FolderReplaced:         "folder replaced",
	MessageFenced:          "message fenced",
	RetriedFree:            "retried free",
	RetriedInfra:           "retried infra",
	RetriedUser:            "retried user",
	FailedOutOfBudget:      "failed out of budget",
	CancelledUnstarted:     "cancelled unstarted",
	ResultStood:            "result stood",
	LifetimeSpent:          "lifetime spent",
	DisabledTold:           "disabled told",
	LogAppendedAfterEnd:    "log appended after end",
	AcceptedGivenBack:      "accepted given back",
	LockWaited:             "lock waited",
	FrameLost:              "frame lost",
	FrameFromTheDead:       "frame from the dead",
	LogOverlapCut:          "log overlap cut",
	OfferBackedOff:         "offer backed off",
	SandboxOrphaned:        "sandbox orphaned",
	OrphanKilledAtStart:    "orphan killed at start",
	OutboxHeldBack:         "outbox held back",
	StartHeldBack:          "start held back",
	StartTooLate:           "start too late",
	PreparationFailed:      "preparation failed",
	DeadlineKill:           "deadline kill",
	OldDeadlineArrived:     "old deadline arrived",
	RunningStopped:         "running stopped",
	UploadFailedOnce:       "upload failed",
	CancelAskedTwice:       "cancel asked twice",
	SpecCorrupted:          "spec corrupted",
	LeaseGivenBack:         "lease given back",
	PausedPastDeadline:     "paused past deadline",
	WorkloadLostLate:       "lost completion sent",
	LogStreamReset:         "log stream reset",
	ContinuedElsewhere:     "continued at another daemon",
	OutputRedelivered:      "output redelivered",
	OutputGone:             "output gone",
	RedeliveryLate:         "redelivery late",
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
