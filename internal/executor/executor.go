// Package executor is the contract between an agent and whatever runs the steps of an attempt: a group of processes
// (executor/process), a sandbox of our own, a container engine. executor/executortest is the suite that each passes.
//
// An executor runs one decoded specification in a folder that was prepared for it, and reports output, events and one
// typed outcome. It fetches nothing, uploads nothing, talks to no daemon and decides nothing about leases, with one
// exception that keeps the promise of package watchdog: each workload holds its own copy of its lease's deadline, in a
// process other than the agent, so that nothing of it is alive at the deadline even while the agent is stopped or gone.
package executor

import (
	"context"
	"errors"
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxWrite is the most bytes that an Output is given at once: several frames of a log, so that a workload that prints much
// costs few calls and few writes to the disk.
const MaxWrite = 256 << 10

// ErrTooLate is returned by Start where the deadline is too near to start anything.
var ErrTooLate = errors.New("executor: too late to start")

// Executor makes workloads. Its methods may be called from several goroutines at once.
type Executor interface {
	// Sandbox says what kind of confinement this is, and which walls it really gives on this machine.
	Sandbox() forge.Sandbox
	// KillLeftovers ends every process that workloads of earlier agent processes on the same state folder have left, and
	// returns once none of them is alive. It is called before anything is prepared.
	KillLeftovers(ctx context.Context) error
	// Prepare sets up everything but the first step: after it, Start only has to let go. Nothing of the spec runs yet. An
	// error is a *SetupError. ctx bounds the preparation, not the workload.
	Prepare(ctx context.Context, order Order) (Workload, error)
}

// Order is what a workload is made of.
type Order struct {
	Context  forge.AttemptContext
	Spec     forge.JobSpec
	Folder   string            // of this attempt alone, absolute: what the spec calls forge.WorkRoot
	Inputs   []Input           // what of the spec's inputs is on this machine: all of them
	Env      []forge.EnvVar    // of the agent, FORGEYARD_ names included; stronger than the spec's
	Policy   forge.LeasePolicy // of the watchdog
	Deadline forge.Instant     // at which nothing of it may be alive, on the host's BOOTTIME clock
	Output   Output
}

// Input is a tree of files that the workload finds when its first step begins. Whatever the workload does, the tree itself
// stays as it is: other attempts read it too.
type Input struct {
	Mount string // below Order.Folder; no mount lies within another
	Tree  string // the folder of the tree on this machine, absolute; its owner's, and read-only
	Mode  forge.InputMode
}

// Output takes what a workload has to say, in order. A call that waits holds the workload back, which is what a full
// spool wants. The two streams and the events share one order: an event stands behind all output that was read before it.
type Output interface {
	// Write takes bytes of LogStdout or LogStderr, at most MaxWrite. It keeps no part of p.
	Write(stream forge.LogStream, p []byte)
	// Event takes a StepStarted, StepFinished or Notice.
	Event(e forge.StepEvent)
}

// Secret is a value that a workload gets when it starts and not before.
type Secret struct {
	Use   forge.SecretUse
	Value forge.Secret
}

// Workload is one attempt's processes. Its methods may be called from several goroutines at once and at any time; what
// comes too late has no effect.
type Workload interface {
	// Start releases the first step. It is called at most once, and returns once the step runs, or with ErrTooLate or a
	// *SetupError if it will not; then Done closes too. The caller wipes the secrets.
	Start(secrets []Secret) error
	// MoveDeadline passes a later deadline on.
	MoveDeadline(deadline forge.Instant)
	// Stop ends the workload for a reason: a soft signal to all of it, the spec's grace, a hard kill. A workload that was not
	// started ends at once. The first reason counts.
	Stop(reason forge.CancelReason)
	// Bite ends it for its deadline: the soft signal, or the hard one.
	Bite(soft bool)
	// Kill ends it at once, without a signal that it could handle.
	Kill()
	// Done closes when no process of the workload is alive and none can come to life again, and all of its output has been
	// handed over.
	Done() <-chan struct{}
	// Outcome says how it ended. It may be called once Done is closed.
	Outcome() Outcome
	// Files opens what the workload has left below forge.WorkRoot, its inputs with what it has changed of them. It may be
	// called once Done is closed and until Close is called. The caller closes the root, before Close.
	Files() (*os.Root, error)
	// Close gives back what the workload holds. It kills what still runs, and waits for Done.
	Close() error
}

// Outcome is how a workload ended.
type Outcome struct {
	Result   forge.Result
	StopSeen forge.CancelReason // of the Stop whose signal was sent before the last step had ended by itself, or before Start
	Bitten   bool               // a watchdog signalled it
}

// SetupError says that a workload could not be made. Its class is one of the infrastructure classes, or one of the user's
// where the spec asks for what cannot be (PathIncompatible).
type SetupError struct {
	Class forge.Class
	Err   error
}

func (e *SetupError) Error() string { return "set up: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }
