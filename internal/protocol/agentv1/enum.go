package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// The enumerations of this family. Each table is the one place where a number on the wire gets its meaning; numbers are
// only ever added. What an unknown number means is said with each type.

type (
	// PhaseV1 is where an attempt stands. An unknown one reads as 0, with which a daemon keeps the phase it has.
	PhaseV1 uint8
	// AgentStateV1 is where an agent process stands. An unknown one reads as 0: nothing was said.
	AgentStateV1 uint8
	// RejectReasonV1 says why an agent does not take a lease. An unknown one reads as Other.
	RejectReasonV1 uint8
	// RefuseReasonV1 says why a daemon does not grant. An unknown one reads as Unknown; all have the same effect.
	RefuseReasonV1 uint8
	// CancelReasonV1 says why a workload is to stop; 0 is no cancel. An unknown one stops it like a disabled runner's:
	// without a user's word nothing becomes cancelled.
	CancelReasonV1 uint8
	// VerdictV1 is what a daemon says of a lease. An unknown one refuses the message.
	VerdictV1 uint8
	// RecoveryVerdictV1 is what a daemon says of an attempt of an earlier process. An unknown one refuses the message.
	RecoveryVerdictV1 uint8
	// AnswerV1 answers a completion. An unknown one refuses the message.
	AnswerV1 uint8
	// ClassV1 is how a workload or a step ended. An unknown one refuses the message.
	ClassV1 uint8
	// PressureV1 is what a runner is short of. An unknown one reads as Critical: no new work.
	PressureV1 uint8
	// ToolchainSourceV1 says where a toolchain comes from. An unknown one refuses the message.
	ToolchainSourceV1 uint8
	// SandboxKindV1 says what confines a job. An unknown one refuses the message.
	SandboxKindV1 uint8
	// HealthStatusV1 says how far a runner can be used. An unknown one refuses the message.
	HealthStatusV1 uint8
	// HealthCheckV1 is what a health check looks at. An unknown one refuses the message.
	HealthCheckV1 uint8
)

var (
	phases = protocol.Enum[forge.AttemptState]{
		1: forge.AttemptOffered, 2: forge.AttemptAccepted, 3: forge.AttemptPreparing, 4: forge.AttemptRunning,
		5: forge.AttemptUploading, 6: forge.AttemptCompleting, 7: forge.AttemptSucceeded, 8: forge.AttemptFailed,
		9: forge.AttemptCancelled, 10: forge.AttemptLost, 11: forge.AttemptRefused,
	}
	agentStates = protocol.Enum[forge.AgentState]{
		1: forge.AgentStarting, 2: forge.AgentConnecting, 3: forge.AgentRegistering, 4: forge.AgentOnline,
		5: forge.AgentDraining, 6: forge.AgentReconnecting, 7: forge.AgentShuttingDown, 8: forge.AgentOffline,
	}
	rejectReasons = protocol.Enum[forge.RejectReason]{
		1: forge.RejectOther, 2: forge.RejectDraining, 3: forge.RejectResourcePressure, 4: forge.RejectCapabilityChanged,
		5: forge.RejectDiskInsufficient, 6: forge.RejectUnsupportedSpec, 7: forge.RejectLocalPolicy,
		8: forge.RejectPreparation, 9: forge.RejectSpecMismatch, 10: forge.RejectAlreadyTaken,
	}
	refuseReasons = protocol.Enum[forge.RefuseReason]{
		1: forge.RefusedUnknown, 2: forge.RefusedCancelled, 3: forge.RefusedExpired, 4: forge.RefusedSuperseded,
	}
	cancelReasons = protocol.Enum[forge.CancelReason]{
		1: forge.CancelUser, 2: forge.CancelMaxLifetime, 3: forge.CancelDisabled,
	}
	verdicts = protocol.Enum[forge.Verdict]{
		1: forge.VerdictContinue, 2: forge.VerdictCancel, 3: forge.VerdictStale,
	}
	recoveryVerdicts = protocol.Enum[forge.RecoveryVerdict]{
		1: forge.RecoveryApplied, 2: forge.RecoveryEnded, 3: forge.RecoveryWaits,
	}
	answers = protocol.Enum[forge.CompletionAnswer]{
		1: forge.CompletionAccepted, 2: forge.CompletionDuplicate, 3: forge.CompletionStale, 4: forge.CompletionInvalid,
	}
	classes = protocol.Enum[forge.Class]{
		1: forge.Succeeded, 2: forge.ExitCode, 3: forge.Signal, 4: forge.TimedOut, 5: forge.OutOfMemory,
		6: forge.PidsExhausted, 7: forge.DiskFull, 8: forge.OutputMissing, 9: forge.OutputTooLarge,
		10: forge.OutputRefused, 11: forge.Cancelled, 12: forge.InputFetch, 13: forge.CorruptInput,
		14: forge.DiskInsufficient, 15: forge.PathIncompatible, 16: forge.SandboxSetup, 17: forge.UploadFailed,
		18: forge.Interrupted, 19: forge.Lost,
	}
	pressures = protocol.Enum[forge.ResourcePressure]{
		1: forge.PressureNormal, 2: forge.PressureCPU, 3: forge.PressureMemory, 4: forge.PressureDisk,
		5: forge.PressureThermal, 6: forge.PressureCritical,
	}
	toolchainSources = protocol.Enum[forge.ToolchainSource]{1: forge.ToolchainManaged, 2: forge.ToolchainHost}
	sandboxKinds     = protocol.Enum[forge.SandboxKind]{1: forge.SandboxNative, 2: forge.SandboxOCI, 3: forge.SandboxProcess}
	healthStatuses   = protocol.Enum[forge.HealthStatus]{1: forge.Healthy, 2: forge.Degraded, 3: forge.Unhealthy}
	healthChecks     = protocol.Enum[forge.HealthCheckKind]{
		1: forge.CheckDiskSpace, 2: forge.CheckCASAccess, 3: forge.CheckSandbox, 4: forge.CheckExecutor,
		5: forge.CheckToolchainStore, 6: forge.CheckDeviceDaemon, 7: forge.CheckClock, 8: forge.CheckCredential,
	}

	// Names for values whose domain type prints none.
	verdictNames  = protocol.Enum[string]{1: "Continue", 2: "Cancel", 3: "Stale"}
	recoveryNames = protocol.Enum[string]{1: "Applied", 2: "Ended", 3: "Waits"}
	answerNames   = protocol.Enum[string]{1: "Accepted", 2: "DuplicateAccepted", 3: "StaleRejected", 4: "InvalidRejected"}
)

func (n PhaseV1) String() string           { return phases.Name(uint8(n)) }
func (n AgentStateV1) String() string      { return agentStates.Name(uint8(n)) }
func (n RejectReasonV1) String() string    { return rejectReasons.Name(uint8(n)) }
func (n RefuseReasonV1) String() string    { return refuseReasons.Name(uint8(n)) }
func (n CancelReasonV1) String() string    { return cancelReasons.Name(uint8(n)) }
func (n VerdictV1) String() string         { return verdictNames.Name(uint8(n)) }
func (n RecoveryVerdictV1) String() string { return recoveryNames.Name(uint8(n)) }
func (n AnswerV1) String() string          { return answerNames.Name(uint8(n)) }
func (n ClassV1) String() string           { return classes.Name(uint8(n)) }
func (n PressureV1) String() string        { return pressures.Name(uint8(n)) }
func (n ToolchainSourceV1) String() string { return toolchainSources.Name(uint8(n)) }
func (n SandboxKindV1) String() string     { return sandboxKinds.Name(uint8(n)) }
func (n HealthStatusV1) String() string    { return healthStatuses.Name(uint8(n)) }
func (n HealthCheckV1) String() string     { return healthChecks.Name(uint8(n)) }

// domain returns the domain value under the rule of the enumeration.
func (n PhaseV1) domain() forge.AttemptState    { return phases.Or(uint8(n), 0) }
func (n AgentStateV1) domain() forge.AgentState { return agentStates.Or(uint8(n), 0) }
func (n ClassV1) domain() forge.Class           { return classes.Or(uint8(n), 0) }
func (n RejectReasonV1) domain() forge.RejectReason {
	return rejectReasons.Or(uint8(n), forge.RejectOther)
}

func (n RefuseReasonV1) domain() forge.RefuseReason {
	return refuseReasons.Or(uint8(n), forge.RefusedUnknown)
}

func (n CancelReasonV1) domain() forge.CancelReason {
	if n == 0 {
		return forge.CancelNone
	}
	return cancelReasons.Or(uint8(n), forge.CancelDisabled)
}

func newPhase(s forge.AttemptState) PhaseV1         { return PhaseV1(phases.Wire(s)) }
func newClass(c forge.Class) ClassV1                { return ClassV1(classes.Wire(c)) }
func newCancel(r forge.CancelReason) CancelReasonV1 { return CancelReasonV1(cancelReasons.Wire(r)) }
