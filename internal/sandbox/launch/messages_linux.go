package launch

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// Arguments by which an executable knows what it is to be.
const (
	initArg = "be-first-in-sandbox"
	idleArg = "hold-ids-of-sandbox"
)

// Descriptors of the init half besides those of every process.
const (
	fdLauncher = 3
	fdLock     = 4
)

// toInit is one packet from the launcher to the init half. Exactly one field is set.
type toInit struct {
	Setup *setup        `json:",omitempty"` // the first; with the launcher's namespaces, mount and user, and then view.Open's files
	Order *order        `json:",omitempty"` // the second; with folder, keeper, stdout, stderr and guest
	Move  forge.Instant `json:",omitempty"`
}

// setup is what does not depend on the attempt.
type setup struct {
	Plan     view.Plan
	Mapped   bool
	Network  forge.Network
	Path     []string
	Filter   []byte // of system calls, assembled
	Switches sandbox.Switches
}

// order is what does.
type order struct {
	Policy    forge.LeasePolicy
	Deadline  forge.Instant
	Processes uint64 // bound on processes where no control group counts them, or 0
}

// Files of an order, by their place.
const (
	fileFolder = 0
	fileKeeper = 1
	fileStdout = 2
	fileStderr = 3
	fileGuest  = 4
	orderFiles = 5
)

// fromInit is one packet from the init half.
type fromInit struct {
	Ready   bool   `json:",omitempty"` // the view stands, an order can come
	Hidden  bool   `json:",omitempty"` // with Ready: /proc hides processes of other ids
	Running bool   `json:",omitempty"` // everything stands, the guest is called next
	Failed  string `json:",omitempty"` // and it ends
}
