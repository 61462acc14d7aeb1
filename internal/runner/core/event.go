package core

import (
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Event is something that happened to the agent.
type Event interface{ event() }

type (
	// Started is the first event of a process.
	Started struct{}
	// LeftoversKilled says that no process of an earlier agent process is alive.
	LeftoversKilled struct{}
	// Tick says that the time has come which Wake asked for. It may come at any other time too.
	Tick struct{}

	// Connected says that the connection dialled as Seq stands: authenticated and negotiated, nothing more.
	Connected struct{ Seq uint64 }
	// Closed says that a connection, or the attempt at one, has ended.
	Closed struct {
		Seq    uint64
		Reason forge.CloseReason
	}
	// Received is a frame from the control stream of a connection. An offer whose spec does not travel inline is fed once
	// the shell has fetched and inlined the bytes that SpecRef names.
	Received struct {
		Seq   uint64
		Frame forge.Frame
	}
	// Writable says that the control stream takes a frame now. It answers Want, once.
	Writable struct{ Seq uint64 }
	// Reconnect asks for a new connection beside the present one, for a new certificate.
	Reconnect struct{}

	// Journaled says that the record of an attempt is durable as it was when WriteRecord asked. There is no answer for a
	// failure: a shell that cannot write tries again, and a process that cannot write at all ends, so that its next one
	// cleans up.
	Journaled struct {
		Attempt forge.AttemptID
		Version uint64
	}
	// Prepared says that the workspace and the sandbox of an attempt are ready.
	Prepared struct{ Attempt forge.AttemptID }
	// WorkloadStarted says that the workload runs.
	WorkloadStarted struct{ Attempt forge.AttemptID }
	// WorkloadEnded says that no process of the workload is alive, or ever was.
	WorkloadEnded struct {
		Attempt  forge.AttemptID
		Result   forge.Result
		StopSeen forge.CancelReason // of the stop that reached pid 1 before the workload ended
		Bitten   bool               // a watchdog had signalled it
	}
	// Delivered says that the outputs are stored, or why not, and how the log ends.
	Delivered struct {
		Attempt forge.AttemptID
		Outputs []forge.OutputRef
		Capture forge.Class // Succeeded, or why outputs are missing
		Log     forge.LogSeal
	}
	// Redelivered says that the daemon has all of the outputs again, or that it cannot have them any more.
	Redelivered struct {
		Attempt forge.AttemptID
		Failed  bool
	}
	// CleanedUp says that nothing of an attempt is left on this machine.
	CleanedUp struct{ Attempt forge.AttemptID }

	// Command is what the runner's owner asks for.
	Command struct {
		Kind      CommandKind
		Attempt   forge.AttemptID    // with CommandReject
		Reason    forge.RejectReason // with CommandReject
		Admission forge.Admission    // with CommandAdmission
	}
)

// CommandKind says what a Command is.
type CommandKind uint8

// The commands.
const (
	CommandDrain     CommandKind = 1
	CommandResume    CommandKind = 2
	CommandStop      CommandKind = 3 // drain, then end
	CommandForce     CommandKind = 4 // end now
	CommandReject    CommandKind = 5 // give one lease back, if nothing of it was started
	CommandAdmission CommandKind = 6 // what the machine can or may run has changed
)

func (Started) event()         {}
func (LeftoversKilled) event() {}
func (Tick) event()            {}
func (Connected) event()       {}
func (Closed) event()          {}
func (Received) event()        {}
func (Writable) event()        {}
func (Reconnect) event()       {}
func (Journaled) event()       {}
func (Prepared) event()        {}
func (WorkloadStarted) event() {}
func (WorkloadEnded) event()   {}
func (Delivered) event()       {}
func (Redelivered) event()     {}
func (CleanedUp) event()       {}
func (Command) event()         {}
