package core

import (
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// ConnID names a connection within one daemon process. Zero is none.
type ConnID uint64

// TxID names a transaction within one daemon process.
type TxID uint64

// Event is something that happened to the daemon.
type Event interface{ event() }

type (
	// Tick says that the time has come which Wake asked for. It may come at any other time too.
	Tick struct{}
	// Opened says that a connection stands: the runner is authenticated and a version was negotiated.
	Opened struct {
		Conn   ConnID
		Runner forge.RunnerID // of the certificate
	}
	// Received is a frame from its control stream, in order.
	Received struct {
		Conn  ConnID
		Frame forge.Frame
	}
	// Closed says that it has ended.
	Closed struct{ Conn ConnID }
	// Done says how a transaction ended. Committed is known to be so; else nothing was changed, or, with Unknown, nobody
	// can say.
	Done struct {
		Tx        TxID
		Committed bool
		Unknown   bool
		Answer    authority.Answer
	}
	// Loaded brings a reading that Load asked for. Snapshot is nil where the store could not be read.
	Loaded struct {
		Tx       TxID
		Snapshot *authority.Snapshot
	}
	// Place is the scheduler's wish that a job be offered to a runner. The ids are new.
	Place struct {
		Job     forge.JobID
		Runner  forge.RunnerID
		Attempt forge.AttemptID
		Lease   forge.LeaseID
	}
)

// Effect is something that the shell has to do.
type Effect interface{ effect() }

type (
	// Begin runs a rule as one transaction. Answer: Done.
	Begin struct {
		Tx      TxID
		Command authority.Command
	}
	// Load reads the rows that are watched: of one runner, or all with a zero Runner. Answer: Loaded.
	Load struct {
		Tx     TxID
		Runner forge.RunnerID
	}
	// Send writes a frame to the control stream of a connection.
	Send struct {
		Conn  ConnID
		Frame forge.Frame
	}
	// SendOffer writes a LeaseOffer with the bytes of the job's spec.
	SendOffer struct {
		Conn    ConnID
		ID      forge.MessageID
		Context forge.AttemptContext
	}
	// Close ends a connection.
	Close struct {
		Conn   ConnID
		Reason forge.CloseReason
	}
	// Audit records an event that somebody should look at: what was asked, and by which authenticated runner. Runner is
	// zero where its connection is gone.
	Audit struct {
		Kind    authority.Audit
		Runner  forge.RunnerID
		Command authority.Command
	}
	// Capabilities passes a runner's new capability snapshot on to the scheduler.
	Capabilities struct {
		Runner forge.RunnerID
		Update *forge.CapabilityUpdate
	}
)

func (Tick) event()     {}
func (Opened) event()   {}
func (Received) event() {}
func (Closed) event()   {}
func (Done) event()     {}
func (Loaded) event()   {}
func (Place) event()    {}

func (Begin) effect()        {}
func (Load) effect()         {}
func (Send) effect()         {}
func (SendOffer) effect()    {}
func (Close) effect()        {}
func (Audit) effect()        {}
func (Capabilities) effect() {}
