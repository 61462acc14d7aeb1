//go:build linux

// Package launch is the inside of the launcher process and the init half of each sandbox. A program that opens
// sandbox.Launcher calls Main first of all; in these two processes it does not return.
package launch

import (
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Guest is what runs as pid 1 of a sandbox once its walls stand. Its result is pid 1's exit code; everything else of the
// sandbox dies with it. It runs on the process's main thread.
type Guest func(Room) int

// Room is what a guest finds.
type Room struct {
	Keeper   *os.File
	Stdout   *os.File
	Stderr   *os.File
	Order    []byte               // sandbox.Order.Guest
	Moves    <-chan forge.Instant // later deadlines that came by the launcher; the process ends when the launcher does
	Policy   forge.LeasePolicy
	Deadline forge.Instant
	UID, GID int    // of steps
	Switch   bool   // pid 1 has another id than steps, and sets theirs
	Secrets  string // folder in memory for secrets that are files
	Network  forge.Network
	Path     []string        // the view's folders for PATH
	LookedUp func() []string // names that were asked for in vain since the last call, each once, bounded
}

// Main becomes the launcher or the init half of a sandbox, and does not return, if this process was started as one. Every
// main, and every TestMain of tests that make sandboxes, calls it before anything else.
func Main(guest Guest) { _ = guest }
