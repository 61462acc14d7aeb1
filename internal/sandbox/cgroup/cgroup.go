// Package cgroup bounds what the processes of one attempt may use, together: memory with
// swap, processor time and the number of processes. It counts what they used, kills all of
// them at once, and removes what dead agents left behind. It speaks version 1 and version 2
// of the kernel's control groups, whichever the machine has.
//
//	<parent>                              the cgroup in which the agent was started
//	<parent>/forgeyard-<mark>.agent       the agent itself, version 2 only
//	<parent>/forgeyard-<mark>/<name>      one group: the processes of one attempt
//
// The mark is made of the agent's state folder, and the process that made the Tree holds a lock
// on the folder of its mark for as long as it lives. So two agents on one machine do not sweep
// what is the other's, and any agent sweeps what a dead one left, even if that one's state
// folder is never used again. Below one mark there is one owner: whoever holds the lock of the
// state folder. A child that is started by exec does not share the lock.
//
// The package needs rights that not every machine gives. Without them Open answers a nil Tree,
// and a Report that says for each controller why and what mends it; what is there is used
// even when something else is missing. It never mounts anything, never changes a cgroup that
// it has not made, except that version 2 demands to enable controllers in the parent, and
// never moves a process that does not belong to the agent.
//
// It starts no goroutine. All methods may be called concurrently.
package cgroup

import (
	"errors"
	"log/slog"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// ErrAlive is wrapped by the error of a Kill or Remove that gave up: after patience and
// SIGKILL some process still lives, in a system call that cannot be interrupted.
var ErrAlive = errors.New("processes are still alive")

// ErrName is wrapped by the error for a group's name that is not a plain word.
var ErrName = errors.New("not a name for a cgroup")

// Config is what Open must know.
type Config struct {
	// State is the agent's state folder. It must exist; the mark is made of it.
	State string
	// Agent is the process id of the agent, where the caller is a helper of it; 0 means the
	// caller. On version 2 the agent, the caller and their descendants may be moved into a
	// cgroup of their own below the present one.
	Agent int
	// Log may be nil.
	Log *slog.Logger
}

// Limits bounds one group. A zero bounds nothing.
type Limits struct {
	Memory forge.Bytes    // memory and swap together: there is no swap beyond it
	CPU    forge.MilliCPU // processor time in each period of 100 ms; at least 10 count
	Pids   int            // processes and threads
}

// Usage is what a group has used so far, and the limits that held. What the machine does not
// count is zero.
type Usage struct {
	MemoryPeak  forge.Bytes
	MemoryLimit forge.Bytes // zero when no limit was set
	OOMKills    uint64      // processes that the kernel killed for want of memory

	CPUTime   time.Duration  // of all processors together
	CPULimit  forge.MilliCPU // zero when no limit was set
	Throttled uint64         // periods of 100 ms in which the group had to wait

	PidsPeak    int
	PidsLimit   int    // zero when no limit was set
	PidsRefused uint64 // forks that the limit refused
}

// OutOfMemory says whether the kernel killed a process of the group for want of memory.
func (u Usage) OutOfMemory() bool { return u.OOMKills > 0 }

// OutOfPids says whether a fork was refused because of the group's limit.
func (u Usage) OutOfPids() bool { return u.PidsRefused > 0 }

// Version says which interface of the kernel is used.
type Version int

const (
	None Version = 0 // no control groups, or no right to any
	V1   Version = 1 // one hierarchy for each controller
	V2   Version = 2 // one hierarchy for all
)

// Grant says whether one thing is given on this machine and, when it is not, why and what
// gives it.
type Grant struct {
	Given bool
	Why   string // a sentence for people; empty when given
	Mend  string // a command or a setting; empty when given or when nothing helps
}

// Report says what this machine gives to the agent, controller by controller.
type Report struct {
	Version Version
	Parent  string // where groups are made, as a path; of version 1 that of the memory controller

	Memory Grant
	Swap   Grant // whether the limit of memory holds for swap as well
	CPU    Grant
	Pids   Grant
	Freeze Grant // whether a group can be stopped as one while it is killed, or killed as one
}

// Any says whether at least one resource can be bounded.
func (r Report) Any() bool { return r.Memory.Given || r.CPU.Given || r.Pids.Given }
