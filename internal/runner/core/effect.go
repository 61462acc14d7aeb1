package core

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Effect is something that the shell has to do.
type Effect interface{ effect() }

type (
	// KillLeftovers asks for the end of every process that an earlier agent process may have left. Answer: LeftoversKilled.
	KillLeftovers struct{}

	// Dial asks for a connection to an endpoint. Answer: Connected or Closed.
	Dial struct {
		Seq      uint64
		Endpoint int
	}
	// CloseLink ends a connection. Nothing that it still brings is listened to.
	CloseLink struct {
		Seq    uint64
		Reason forge.CloseReason
	}
	// Want asks for one Writable as soon as the control stream takes a frame.
	Want struct{ Seq uint64 }
	// Transmit writes a frame. Its body was built for this moment; it must not be kept back or sent again.
	Transmit struct {
		Seq   uint64
		Frame forge.Frame
	}
	// StreamLog asks for the frames of an attempt's log from From on, over a stream of this connection.
	StreamLog struct {
		Seq     uint64
		Attempt forge.AttemptID
		From    forge.LogSeq
	}

	// WriteRecord makes the record of an attempt durable. Answer: Journaled with the same version.
	WriteRecord struct{ Record Record }
	// DropRecord removes it.
	DropRecord struct{ Attempt forge.AttemptID }

	// Prepare builds workspace and sandbox. Answer: Prepared, or WorkloadEnded with the reason.
	Prepare struct {
		Context  forge.AttemptContext
		Bytes    []byte        // of the spec, exactly as they came: what the executor gets
		Spec     forge.JobSpec // what they say
		Deadline forge.Instant
	}
	// Start releases the workload. Answer: WorkloadStarted, or WorkloadEnded where pid 1 finds that it is too late.
	Start struct{ Attempt forge.AttemptID }
	// MoveDeadline hands a later deadline to launcher and pid 1.
	MoveDeadline struct {
		Attempt  forge.AttemptID
		Deadline forge.Instant
	}
	// Stop ends the workload, or its preparation: soft signal, grace, hard kill. Answer: WorkloadEnded.
	Stop struct {
		Attempt forge.AttemptID
		Reason  forge.CancelReason
	}
	// Kill ends it at once. Answer: WorkloadEnded.
	Kill struct {
		Attempt forge.AttemptID
		Bite    bool // for the deadline
		Soft    bool // with Bite: the soft signal; the hard one follows
	}
	// Deliver captures and uploads the outputs and finishes the log. Answer: Delivered.
	Deliver struct {
		Attempt forge.AttemptID
		Outcome forge.Class // which outputs are wanted
	}
	// Redeliver brings to the daemon what it misses of the outputs that were delivered, within a time. Answer: Redelivered.
	Redeliver struct {
		Attempt forge.AttemptID
		Within  time.Duration // more than zero
	}
	// CleanUp removes everything of an attempt. Answer: CleanedUp.
	CleanUp struct{ Attempt forge.AttemptID }

	// Exit ends the process.
	Exit struct{ Code ExitCode }
)

// ExitCode says how the process ends. Service managers must not restart after ExitSuperseded and ExitRevoked.
type ExitCode uint8

// The exit codes.
const (
	ExitStopped    ExitCode = 0 // asked to, and everything is done
	ExitForced     ExitCode = 1
	ExitSuperseded ExitCode = 78 // a newer process speaks for this runner
	ExitRevoked    ExitCode = 77
)

// Record is what the journal keeps of one attempt: enough to clean up, to be honest about it after a restart, and to
// send its completion until that is acknowledged. It holds no secret.
type Record struct {
	Context    forge.AttemptContext
	Version    uint64 // counts the writes
	State      forge.AttemptState
	Completion *forge.Completion // frozen: complete if State is Completing
}

func (KillLeftovers) effect() {}
func (Dial) effect()          {}
func (CloseLink) effect()     {}
func (Want) effect()          {}
func (Transmit) effect()      {}
func (StreamLog) effect()     {}
func (WriteRecord) effect()   {}
func (DropRecord) effect()    {}
func (Prepare) effect()       {}
func (Start) effect()         {}
func (MoveDeadline) effect()  {}
func (Stop) effect()          {}
func (Kill) effect()          {}
func (Deliver) effect()       {}
func (Redeliver) effect()     {}
func (CleanUp) effect()       {}
func (Exit) effect()          {}
