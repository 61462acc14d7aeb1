// Package sandbox gives attempts a Linux machine of their own that is made of walls: namespaces, a root file system that
// holds what it must and no more, no capabilities, a filter of system calls, Landlock, and a control group.
//
//	agent ──socket pair── launcher ──clone──▶ pid 1 of a sandbox: init half, then the guest
//	  │                      │ own session, own mount namespace, small heap, the privileges
//	  └── what the order carries: a socket and two pipes that end in the guest
//
// This package is the agent's end: it starts the launcher, orders sandboxes and hears how they ended. Package launch is the
// launcher and the init half. The guest is whatever the program gives to launch.Main; this package does not know what it
// runs. It refuses orders that it cannot keep rather than weaken a wall, and says in its Report which walls there are.
//
// Nothing of a sandbox outlives it, and no sandbox outlives the launcher or the agent: the launcher ends at the end of its
// socket, pid 1 dies with the launcher, and the kernel kills a pid namespace with its pid 1. The launcher and pid 1 each hold
// the deadline themselves.
//
// A Launcher has a goroutine that reads what the launcher says, one that reads what it prints, one that waits for its
// end, and a few that take disks down; Close joins them.
package sandbox

import (
	"log/slog"
	"os"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// What the inside of every sandbox looks like (D10).
const (
	StepUID    = 1000 // of everything that is not pid 1
	StepGID    = 1000
	StepUser   = "forgeyard"
	HostName   = "forgeyard"
	WorkDir    = "/work" // the attempt's folder
	HomeDir    = WorkDir + "/home"
	TempDir    = "/tmp" // the folder tmp of the attempt's folder
	SecretsDir = "/run/forgeyard/secrets"
	OwnDir     = ".forgeyard"       // in the attempt's folder
	LayersDir  = OwnDir + "/layers" // what is written over layers; the sandbox has an empty folder there
)

// Bounds and defaults.
const (
	DefaultUIDBase = 1_879_048_192 // of the host's ids that sandboxes use
	SlotIDs        = 65_536        // ids of one sandbox
	DefaultSlots   = 64
	MaxSlots       = 4096
	DefaultPool    = 2
	MaxPool        = 64
	DefaultShm     = 64 * forge.MiB
	MaxName        = 64
	MaxGuest       = 16 << 20 // bytes of Order.Guest
	MaxMounts      = 256      // of a View
	MaxLayers      = 256
	MaxLayerText   = 64 << 10 // bytes of the paths of all layers
)

// Config is how a launcher is to be.
type Config struct {
	State     string // folder of this launcher alone: its lock, and records of what lives; it exists, only its owner reaches it
	Program   string // is the launcher and pid 1, by launch.Main: absolute, of the same build; "" is this program itself
	View      View
	Pool      int    // sandboxes that wait ready
	Slots     int    // sandboxes that run at once
	UIDBase   uint32 // as root: first of the host's ids, SlotIDs for each sandbox; 0 means DefaultUIDBase
	Rootless  bool   // a single id even though this is root
	NoCgroups bool   // use no control groups, even where they can be had
	NoImages  bool   // make no disks of their own for attempts, even where they can be had
	Log       *slog.Logger
	Switches  Switches
}

// Order is what one sandbox is made for.
type Order struct {
	Name     string // letters, digits and hyphens, at most MaxName: of the control group, and in messages
	Folder   string // of the attempt, absolute; it holds the folders home and tmp
	Network  forge.Network
	Limits   Limits
	Policy   forge.LeasePolicy
	Deadline forge.Instant
	Keeper   *os.File // a socket
	Stdout   *os.File // writing ends
	Stderr   *os.File
	Guest    []byte  // for the guest, at most MaxGuest
	Need     []Level // walls without which it must not run
	Layers   []Layer // what is in the attempt's folder besides what is there
}

// Layer is a folder of this machine that a sandbox has at a place of its own in the attempt's folder. Whatever the sandbox
// does, the folder itself stays as it is.
type Layer struct {
	Mount    string // below Order.Folder, with slashes; no mount lies within another or within OwnDir
	Folder   string // absolute
	Writable bool   // what the sandbox writes lands in LayersDir; else it cannot write there
}

// Limits bound what a sandbox uses. Zero is no limit, except for Shm.
type Limits struct {
	Memory forge.Bytes // with swap
	CPU    forge.MilliCPU
	Pids   int
	Shm    forge.Bytes // of /dev/shm; 0 means DefaultShm
	Disk   forge.Bytes // of what is written below the folder; only where Box.Disk says so
}

// End is how a sandbox ended. It holds once nothing of it is alive.
type End struct {
	Exit     int            // of pid 1
	Signal   syscall.Signal // that ended pid 1, or 0
	Bitten   bool           // the launcher's watchdog killed it
	Killed   bool           // Kill was called, or the launcher ended
	Usage    cgroup.Usage   // as far as it was measured
	SetupErr string         // what pid 1 printed, which it does only where it breaks
}
