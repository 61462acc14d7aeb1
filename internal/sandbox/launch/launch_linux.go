// Package launch is the launcher process, which makes the sandboxes of one agent, and the init half of each of them.
//
//	agent's request ──▶ loop ──▶ cell: clone → Setup → ready (waits in the pool) → Order → runs → ended
//	                     │         │                 ◀────── init half, pid 1 ──────▶
//	                     alarm     one thread clones them all, and never ends
//
// The launcher has its own session, mount namespace and lock; package sandbox starts it. Its loop owns all state and never
// waits for a sandbox, a disk or the agent. It kills every sandbox and ends when its agent has gone. It keeps its own copy of
// each deadline, a little later than pid 1's, so that pid 1 can say what it has done.
//
// The init half builds the view, waits for an order, shows the attempt's folder, confines itself and calls the guest. It
// refuses to do anything unless it is pid 1 of a namespace of its own, and in a user and a mount namespace other than the
// launcher's: the calls that it makes would take the host apart.
//
// In the launcher the loop's goroutines are a reader of requests, a writer of answers, a reader of the alarm, one for the
// clones and one that copies the program and is done; each cell has one for its life, and two below it that read what pid 1 says and prints, which it joins. All of
// them end with the process at the latest.
package launch

import (
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Guest is what runs as pid 1 of a sandbox once its walls stand. Its result is pid 1's exit code; everything else of the
// sandbox dies with it. It is called on a thread of its own and must start and signal steps from that one alone: where the
// kernel cannot put all threads of a process into one Landlock domain, each has its own, and none may signal what another
// has started.
type Guest func(Room) int

// Room is what a guest finds.
type Room struct {
	Keeper   *os.File
	Stdout   *os.File
	Stderr   *os.File
	Order    []byte               // sandbox.Order.Guest
	Moves    <-chan forge.Instant // later deadlines that came by the launcher, the last one counts; the process ends with the launcher
	Policy   forge.LeasePolicy
	Deadline forge.Instant
	UID, GID int    // of steps
	Switch   bool   // pid 1 has another id than steps, and gives them theirs
	Secrets  string // folder in memory for secrets that are files
	Network  forge.Network
	Path     []string        // the view's folders for PATH
	LookedUp func() []string // names that were asked for in vain since the last call, each once, bounded
}

// Main becomes the launcher or the init half of a sandbox, and does not return, if this process was started as one. Every
// main, and every TestMain of tests that make sandboxes, calls it before anything else. Pid 1 calls what is to be done ahead
// while there is no order yet, with more rights than the guest has: that is for what only takes time, and neither opens nor
// changes anything.
func Main(guest Guest, ahead ...func()) {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case sandbox.LauncherArg:
		os.Exit(runLauncher())
	case initArg:
		os.Exit(runInit(guest, ahead))
	case idleArg:
		os.Exit(runIdle())
	}
}
