package forge

import "fmt"

// Class says how an attempt ended. It is what a retry policy, an exit code and a person asking "why" work with.
type Class uint8

// The classes. Numbers are stored and travel; they are only ever added.
const (
	Succeeded        Class = 1
	ExitCode         Class = 2  // a step ended with a non-zero code
	Signal           Class = 3  // a step died of a signal that we did not send
	TimedOut         Class = 4  // a limit of the spec, or the lease's longest life
	OutOfMemory      Class = 5  // the limit and the peak are in the result
	PidsExhausted    Class = 6  // likewise
	DiskFull         Class = 7  // the workspace reached its quota
	OutputMissing    Class = 8  // a required output matched nothing
	OutputTooLarge   Class = 9  // a declared limit on outputs was passed
	OutputRefused    Class = 10 // a link that escapes, a device, a socket
	Cancelled        Class = 11 // a user's cancel reached the workload, or it never started
	InputFetch       Class = 12 // an input could not be had
	CorruptInput     Class = 13 // an input's bytes are not its digest's
	DiskInsufficient Class = 14 // no room to prepare the workspace
	PathIncompatible Class = 15 // a name that this platform cannot hold
	SandboxSetup     Class = 16 // the sandbox could not be built as asked
	UploadFailed     Class = 17 // outputs could not be stored
	Interrupted      Class = 18 // stopped by the runner's owner: disabled, shut down
	Lost             Class = 19 // the lease's deadline, a crash, a reboot
	Unplanned        Class = 20 // of a job, never of an attempt: its pipeline could not make a specification of it
)

// Fault says who has to act on a failure.
type Fault uint8

// Whose fault an outcome is.
const (
	FaultNone           Fault = 1
	FaultUser           Fault = 2
	FaultInfrastructure Fault = 3
	FaultCancelled      Fault = 4
)

// RetryWord is a word that a pipeline may list under retry.on. An infrastructure failure has none: it draws on a budget
// of its own (D09).
type RetryWord uint8

// The retry words.
const (
	RetryNever   RetryWord = 1 // no word covers it
	RetryExit    RetryWord = 2
	RetrySignal  RetryWord = 3
	RetryTimeout RetryWord = 4
	RetryOOM     RetryWord = 5
	RetryInfra   RetryWord = 6 // the infrastructure budget
)

// classFacts is the one table from a class to its consequences (D03).
var classFacts = [...]struct {
	name  string
	fault Fault
	retry RetryWord
	exit  int
}{
	Succeeded:        {"Succeeded", FaultNone, RetryNever, 0},
	ExitCode:         {"ExitCode", FaultUser, RetryExit, 1},
	Signal:           {"Signal", FaultUser, RetrySignal, 1},
	TimedOut:         {"TimedOut", FaultUser, RetryTimeout, 1},
	OutOfMemory:      {"OutOfMemory", FaultUser, RetryOOM, 1},
	PidsExhausted:    {"PidsExhausted", FaultUser, RetryNever, 1},
	DiskFull:         {"DiskFull", FaultUser, RetryNever, 1},
	OutputMissing:    {"OutputMissing", FaultUser, RetryNever, 1},
	OutputTooLarge:   {"OutputTooLarge", FaultUser, RetryNever, 1},
	OutputRefused:    {"OutputRefused", FaultUser, RetryNever, 1},
	Cancelled:        {"Cancelled", FaultCancelled, RetryNever, 2},
	InputFetch:       {"InputFetch", FaultInfrastructure, RetryInfra, 3},
	CorruptInput:     {"CorruptInput", FaultInfrastructure, RetryInfra, 3},
	DiskInsufficient: {"DiskInsufficient", FaultInfrastructure, RetryInfra, 3},
	PathIncompatible: {"PathIncompatible", FaultUser, RetryNever, 1},
	SandboxSetup:     {"SandboxSetup", FaultInfrastructure, RetryInfra, 3},
	UploadFailed:     {"UploadFailed", FaultInfrastructure, RetryInfra, 3},
	Interrupted:      {"Interrupted", FaultInfrastructure, RetryInfra, 3},
	Lost:             {"Lost", FaultInfrastructure, RetryInfra, 3},
	Unplanned:        {"Unplanned", FaultUser, RetryNever, 1},
}

// Classes lists in order every class with which an attempt can end.
func Classes() []Class {
	var all []Class
	for c := Succeeded; c.Valid(); c++ {
		all = append(all, c)
	}
	return all
}

// Valid reports whether an attempt can end with c.
func (c Class) Valid() bool { return c >= Succeeded && c <= Lost }

// known reports whether c is one of the classes.
func (c Class) known() bool { return c.Valid() || c == Unplanned }

// Fault says whose fault c is. An invalid class is ours.
func (c Class) Fault() Fault {
	if !c.known() {
		return FaultInfrastructure
	}
	return classFacts[c].fault
}

// Retry returns the word or budget under which c may be tried again.
func (c Class) Retry() RetryWord {
	if !c.known() {
		return RetryNever
	}
	return classFacts[c].retry
}

// ExitCode is the exit code of a command that follows a run which ended so: 0, 1 failed, 2 cancelled, 3 infrastructure.
func (c Class) ExitCode() int {
	if !c.known() {
		return 3
	}
	return classFacts[c].exit
}

func (c Class) String() string {
	if !c.known() {
		return fmt.Sprintf("invalid(%d)", uint8(c))
	}
	return classFacts[c].name
}

// AttemptState is the terminal state of an attempt that ended with class c.
func (c Class) AttemptState() AttemptState {
	switch c {
	case Succeeded:
		return AttemptSucceeded
	case Cancelled:
		return AttemptCancelled
	case Lost:
		return AttemptLost
	default:
		return AttemptFailed
	}
}
