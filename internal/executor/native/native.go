// Package native runs steps in a sandbox of our own, which package sandbox makes of what the Linux kernel has. The keeper of
// an attempt is the guest of its sandbox: pid 1, which starts the steps as another user without rights, reaps what they leave,
// and holds the lease's deadline. When it ends, the kernel ends everything else in there.
//
//	agent: Executor ── sandbox.Launcher ──▶ launcher ──▶ pid 1: keeper ──▶ steps, uid 1000
//	          └── socket and two pipes of package keeper ────────┘
//
// What a step finds: its folder at /work, HOME below it, /tmp of its own, the system's programs and the toolchains of
// the configuration read-only, no network unless job and owner both want the host's, nothing of the agent's environment.
//
// The package refuses jobs that insist on a wall that this machine does not have, and never weakens one. It names an end
// for what it was: a step that fails while the kernel kills for want of memory is OutOfMemory, one whose forks are
// refused is PidsExhausted, one whose disk is full is DiskFull, all with limit and peak; where the step swallowed that, a
// notice says so.
//
// Every main, and every TestMain of tests that run attempts, calls Main before anything else.
//
// Goroutines: those of package keeper for each workload, and those of a sandbox.Launcher, which Close joins.
package native

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Config is what an Executor needs.
type Config struct {
	State      string   // a folder of the agent's state that nothing else uses; made if it is missing
	Program    string   // see sandbox.Config
	ReadOnly   []string // files and folders of this machine that steps may read besides the system's: absolute, or SOURCE:TARGET
	Toolchains []string // likewise, and each one's folder bin, or itself where it has none, comes first in PATH
	Hide       []string // files and folders that nothing may show, such as the agent's state and keys
	Path       []string // folders that come next in PATH, those of them that a sandbox shows
	Slots      int      // sandboxes at a time; 0 for sandbox.DefaultSlots
	Pool       int      // sandboxes that wait ready
	UIDBase    uint32   // see sandbox.Config
	Rootless   bool     // a single id even though this is root
	NoCgroups  bool     // no control groups even where they can be had
	DiskImages bool     // each attempt has a disk of its own, where that can be; else the keeper watches what it writes
	Policy     forge.LocalPolicy
	Log        *slog.Logger
}

// exitUnsafe is the exit code of a program whose defences can be switched off.
const exitUnsafe = 70

// RefuseUnsafe ends a program of a build whose defences can be switched off: that is for proofs and not for jobs. What is
// there for work calls it behind Main.
func RefuseUnsafe() {
	if sandbox.Unsafe {
		_, _ = os.Stderr.WriteString("this program was built for proofs, with walls that can be left out; it runs no jobs\n")
		os.Exit(exitUnsafe)
	}
}

// Path returns the folders of toolchains that come first in PATH: of each its folder bin, or itself where it has none.
func Path(toolchains []string) []string {
	var path []string
	for _, folder := range toolchains {
		if bin := filepath.Join(folder, "bin"); isFolder(bin) {
			folder = bin
		}
		path = append(path, folder)
	}
	return path
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// BadView says that the configuration wants steps to see what cannot be shown. It is no lack of the machine.
type BadView struct{ Err error }

func (e *BadView) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BadView) Unwrap() error { return e.Err }

// check refuses orders that cannot be kept here.
func check(order *executor.Order, policy forge.LocalPolicy, report *sandbox.Report) error {
	need := order.Spec.Sandbox
	if need.Kind != forge.SandboxNative {
		return fmt.Errorf("the job wants a sandbox of kind %v; this is %v", need.Kind, forge.SandboxNative)
	}
	if order.Spec.Network == forge.NetworkHost && !policy.AllowHostNetwork {
		return errors.New("the job wants this machine's network, and the owner of the machine does not allow that")
	}
	for _, name := range need.Levels {
		if err := missing(sandbox.Level(name), report); err != nil {
			return err
		}
	}
	return nil
}

// missing says why this machine does not give a wall, or nil if it does.
func missing(level sandbox.Level, report *sandbox.Report) error {
	if report.Has(level) {
		return nil
	}
	i := slices.IndexFunc(report.Missing, func(m sandbox.Missing) bool { return m.Level == level })
	if i < 0 {
		return fmt.Errorf("the job insists on the wall %q, of which this version knows nothing", level)
	}
	m := report.Missing[i]
	err := fmt.Errorf("the job insists on the wall %q, which this machine does not give: %s", level, m.Why)
	if m.Mend != "" {
		err = fmt.Errorf("%w; %s", err, m.Mend)
	}
	return err
}
