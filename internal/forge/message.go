package forge

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// Message is what an agent and a daemon say to each other, as domain values. The protocol packages turn each into bytes
// and back; the cores on both sides see only these.
type Message interface{ message() }

// Frame is a message with the ids that link it to others. ID is stable across retries of the same message; Re is the ID
// of the request that this one answers, or zero.
type Frame struct {
	ID   MessageID
	Re   MessageID
	Body Message
}

// Nonce ties an answer that grants time to the one transmission that asked for it. The deadline counts from the moment
// before that transmission, so an answer to an older one must never be taken for an answer to a newer one.
type Nonce uint64

// Bounds of the lists in messages.
const (
	MaxAttemptsPerAgent = 256
	MaxRecovered        = 256
)

type (
	// Register opens the dialogue (07§13): who the agent is, which process, which folder, which boot.
	Register struct {
		Runner           RunnerID
		Session          AgentSessionID
		StateFolder      StateFolderID
		Boot             BootID
		StartCounter     uint64 // process starts on this state folder, from 1
		TransportSeq     uint64 // connections opened by this process, from 1
		Version          string
		Capabilities     Capabilities
		CapabilityDigest digest.Digest
	}
	// RegistrationAccepted ends registration well (07§14). The connection is synced only after Resync.
	RegistrationAccepted struct {
		ServerTime WallTime // for diagnostics
		Policy     LeasePolicy
		Transport  TransportSessionID
	}
	// RegistrationRejected says why not (07§15); the connection is closed for the same reason.
	RegistrationRejected struct{ Reason CloseReason }

	// Resync is the first message after registration (07§118): every lease of which anything is left on the agent.
	Resync struct {
		Runner           RunnerID
		Session          AgentSessionID
		Nonce            Nonce
		Attempts         []ResyncItem // at most MaxAttemptsPerAgent
		CapabilityDigest digest.Digest
	}
	// ResyncItem is one lease. An item in state Offered is an acceptance whose answer never came.
	ResyncItem struct {
		Job      JobID
		Attempt  AttemptID
		Lease    LeaseID
		Spec     JobSpecID
		Phase    AttemptState
		EventSeq uint64
		LogNext  LogSeq // first frame that the agent still holds unacknowledged
	}
	// ResyncReply has a verdict for each item of the Resync, in its order.
	ResyncReply struct {
		Nonce    Nonce
		Verdicts []LeaseVerdict
	}
	// LeaseVerdict is what the store says of one lease.
	LeaseVerdict struct {
		Lease   LeaseID
		Verdict Verdict
		HardTTL time.Duration // with VerdictContinue: what this renewal grants
		Cancel  CancelReason  // stop the workload; with VerdictContinue the grant stands until it has ended
	}

	// RecoverAttempts names what a previous process on this folder held, after every process of it was killed (07§107).
	RecoverAttempts struct {
		Runner   RunnerID
		Session  AgentSessionID
		Previous []RecoveredAttempt // at most MaxRecovered
	}
	// RecoveredAttempt is one of them, with its pending completion if it had one.
	RecoveredAttempt struct {
		Context    AttemptContext // the old session's
		Killed     bool
		Completion MessageID
		Hash       digest.Digest
	}
	// RecoveryDecisions answers, in order.
	RecoveryDecisions struct{ Decisions []RecoveryDecision }
	// RecoveryDecision is about one attempt. Whatever it is, the agent cleans up (07§108).
	RecoveryDecision struct {
		Attempt AttemptID
		Verdict RecoveryVerdict
	}

	// LeaseOffer offers an attempt (07§29). It may come more than once.
	LeaseOffer struct {
		Context AttemptContext
		Spec    []byte     // the exact bytes, or nil where SpecRef is set
		SpecRef digest.Ref // where the bytes are, if they are too large to travel inline
	}
	// LeaseAccept takes an offer (07§31). No workload starts before the answer says granted.
	LeaseAccept struct {
		Context AttemptContext
		Nonce   Nonce
	}
	// LeaseAcceptAck answers it.
	LeaseAcceptAck struct {
		Lease   LeaseID
		Nonce   Nonce
		Granted bool
		HardTTL time.Duration // with Granted
		Cancel  CancelReason  // with Granted: do not start
		Refused RefuseReason  // without
	}
	// LeaseReject declines an offer, or gives back a lease of which nothing was started (07§32).
	LeaseReject struct {
		Context AttemptContext
		Reason  RejectReason
	}

	// Heartbeat renews (07§26, 09§70). Its body is built when it is written, never earlier.
	Heartbeat struct {
		Runner           RunnerID
		Session          AgentSessionID
		Nonce            Nonce
		State            AgentState
		Attempts         []HeartbeatItem // at most MaxAttemptsPerAgent
		CapabilityDigest digest.Digest
		Resources        ResourceSummary
	}
	// HeartbeatItem is one granted lease.
	HeartbeatItem struct {
		Attempt AttemptID
		Lease   LeaseID
		Phase   AttemptState
	}
	// HeartbeatAck has a verdict for each item, in order. A lease that is absent is merely not renewed.
	HeartbeatAck struct {
		Nonce    Nonce
		Verdicts []LeaseVerdict
	}

	// PhaseChange reports a significant phase (07§65–68). Seq grows with each of an attempt.
	PhaseChange struct {
		Context AttemptContext
		Seq     uint64
		Phase   AttemptState
	}
	// PhaseAck acknowledges it and everything before.
	PhaseAck struct {
		Attempt AttemptID
		Seq     uint64
	}

	// LogFinal seals a log whose frames were all acknowledged.
	LogFinal struct {
		Context AttemptContext
		Seal    LogSeal
	}
	// LogFinalAck says that the log is sealed.
	LogFinalAck struct{ Attempt AttemptID }
	// LogAck says that everything before Next is durable where every daemon reads.
	LogAck struct {
		Attempt AttemptID
		Next    LogSeq
	}

	// CompletionAck answers a Completion (07§90).
	CompletionAck struct {
		Attempt AttemptID
		Message MessageID
		Answer  CompletionAnswer
	}

	// Cancel asks for the end of a workload (09§72). Every later answer that grants time repeats it.
	Cancel struct {
		Attempt AttemptID
		Lease   LeaseID
		Reason  CancelReason
	}
	// CancelAck says that it arrived.
	CancelAck struct {
		Attempt AttemptID
		Lease   LeaseID
	}

	// CapabilityUpdate replaces the capability snapshot (09§94).
	CapabilityUpdate struct {
		Runner           RunnerID
		Session          AgentSessionID
		Capabilities     Capabilities
		CapabilityDigest digest.Digest
	}
	// Error answers a request that cannot be answered otherwise (09§263). Text is static and safe to show.
	Error struct {
		Code  ErrorCode
		Retry RetryClass
		Text  string
	}
	// GoAway announces the end of a connection (09§226).
	GoAway struct {
		After     time.Duration // reconnect not before
		Spread    time.Duration // then within
		Endpoints []string
	}
	// Drain asks the agent to take no new lease (07§100).
	Drain struct{ CancelActive bool }
	// Resume ends a drain.
	Resume struct{}
	// RefreshCapabilities asks for a new snapshot.
	RefreshCapabilities struct{}
)

// Verdict is what a daemon says of a lease that an agent holds (07§119).
type Verdict uint8

// The verdicts.
const (
	VerdictContinue Verdict = 1 // renewed
	VerdictCancel   Verdict = 2 // not renewed: stop
	VerdictStale    Verdict = 3 // not yours any more
)

// RecoveryVerdict is what a daemon says of an attempt of a previous process.
type RecoveryVerdict uint8

// The recovery verdicts.
const (
	RecoveryApplied RecoveryVerdict = 1 // its completion had been accepted
	RecoveryEnded   RecoveryVerdict = 2 // ended as lost, now or before
	RecoveryWaits   RecoveryVerdict = 3 // not provably dead: its lease waits for expiry
)

// CompletionAnswer is one of the four answers to a completion (07§90).
type CompletionAnswer uint8

// The answers.
const (
	CompletionAccepted  CompletionAnswer = 1
	CompletionDuplicate CompletionAnswer = 2
	CompletionStale     CompletionAnswer = 3
	CompletionInvalid   CompletionAnswer = 4
)

var completionAnswerNames = []string{"", "Accepted", "Duplicate", "Stale", "Invalid"}

func (a CompletionAnswer) String() string { return name(completionAnswerNames, uint8(a)) }

// ErrorCode is the stable code of an Error.
type ErrorCode uint8

// The error codes.
const (
	ErrorUnsupported ErrorCode = 1
	ErrorNotYetLog   ErrorCode = 2 // the log is not sealed, or frames are missing
	ErrorNotYetRef   ErrorCode = 3 // an output is not readable yet
	ErrorRate        ErrorCode = 4
	ErrorInternal    ErrorCode = 5
	ErrorRefused     ErrorCode = 6 // whoever asks may not have it; Text says why
)

func (*Register) message()             {}
func (*RegistrationAccepted) message() {}
func (*RegistrationRejected) message() {}
func (*Resync) message()               {}
func (*ResyncReply) message()          {}
func (*RecoverAttempts) message()      {}
func (*RecoveryDecisions) message()    {}
func (*LeaseOffer) message()           {}
func (*LeaseAccept) message()          {}
func (*LeaseAcceptAck) message()       {}
func (*LeaseReject) message()          {}
func (*Heartbeat) message()            {}
func (*HeartbeatAck) message()         {}
func (*PhaseChange) message()          {}
func (*PhaseAck) message()             {}
func (*LogFinal) message()             {}
func (*LogFinalAck) message()          {}
func (*LogAck) message()               {}
func (*Completion) message()           {}
func (*CompletionAck) message()        {}
func (*Cancel) message()               {}
func (*CancelAck) message()            {}
func (*CapabilityUpdate) message()     {}
func (*Error) message()                {}
func (*GoAway) message()               {}
func (*Drain) message()                {}
func (*Resume) message()               {}
func (*RefreshCapabilities) message()  {}
