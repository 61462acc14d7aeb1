package sandbox

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// LauncherArg is the argument by which an executable knows that it is to be the launcher.
const LauncherArg = "launch-sandboxes"

// Descriptors of the launcher besides those of every process.
const (
	LauncherFDAgent = 3 // socket to the agent, of package packet
	LauncherFDLock  = 4 // the locked file LockFile; pid 1 of each sandbox holds it too, so that the lock says that they live
)

// Names in Config.State.
const (
	LockFile     = "launcher.lock" // its content is a Record of the launcher
	RecordSuffix = ".sandbox"      // of files that each hold a Record of pid 1 of a sandbox
)

// Request is one packet from the agent to the launcher. Exactly one field is set.
type Request struct {
	Configure *Configure   `json:",omitempty"` // the first, and only the first
	View      *View        `json:",omitempty"`
	Make      *MakeRequest `json:",omitempty"` // with files: keeper, stdout, stderr, and one that holds Order.Guest
	Move      *MoveRequest `json:",omitempty"`
	Kill      uint64       `json:",omitempty"`
	Usage     uint64       `json:",omitempty"` // answered by Used, or by Ended
}

// Configure is the part of a Config that the launcher needs.
type Configure struct {
	State     string
	View      View
	Pool      int
	Slots     int
	UIDBase   uint32
	Rootless  bool
	NoCgroups bool
	NoImages  bool
	Switches  Switches
	Agent     int    // process id
	MountNS   uint64 // the agent's, which is not the launcher's
}

// MakeRequest is an Order. Its Folder, and those of its layers, have no symbolic links.
type MakeRequest struct {
	ID       uint64 // of this launcher's sandboxes, never 0, never used again
	Name     string
	Folder   string
	Network  forge.Network
	Limits   Limits
	Policy   forge.LeasePolicy
	Deadline forge.Instant
	Need     []Level
	Layers   []Layer `json:",omitempty"`
}

// MoveRequest moves a deadline.
type MoveRequest struct {
	ID       uint64
	Deadline forge.Instant
}

// Answer is one packet from the launcher to the agent. Exactly one field is set. For each MakeRequest there is either one
// Refused, or one Made and then one Ended.
type Answer struct {
	Speaks  uint64   `json:",omitempty"` // Revision; the first, and only the first
	Ready   *Report  `json:",omitempty"` // after Configure
	Failed  string   `json:",omitempty"` // after Configure: no sandbox can be built, and the launcher ends
	Made    *Made    `json:",omitempty"` // with a pidfd of pid 1, and the other files that it names
	Refused *Refused `json:",omitempty"`
	Ended   *Ended   `json:",omitempty"`
	Used    *Used    `json:",omitempty"`
	Notice  string   `json:",omitempty"` // for the agent's log
}

// Made says that a guest runs.
type Made struct {
	ID   uint64
	Pid  int
	Tree bool   `json:",omitempty"` // with the attempt's folder, because it is not what it was
	Disk string `json:",omitempty"` // with a file of the file system that only the attempt writes, on this loop device
}

// Refused says that a sandbox was not made, and that nothing of it is alive.
type Refused struct {
	ID     uint64
	Level  Level `json:",omitempty"`
	NoSlot bool  `json:",omitempty"`
	NoDisk bool  `json:",omitempty"`
	Flat   bool  `json:",omitempty"` // layers cannot be had here
	Text   string
}

// Ended says that nothing of a sandbox is alive.
type Ended struct {
	ID  uint64
	End End
}

// Used says what a sandbox has used so far.
type Used struct {
	ID    uint64
	Usage cgroup.Usage
}

// Record names a process while it lives, across the end of its launcher and agent.
type Record struct {
	Boot  string // of the machine
	PID   int
	Start uint64 // in clock ticks after the boot
	Place string // of the folder that the record was written into; a copy of it elsewhere says nothing about the copy's processes
}
