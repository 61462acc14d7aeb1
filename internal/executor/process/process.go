// Package process runs steps as processes on the host, confined by nothing: they see the machine as the agent's user does.
// It is for machines and jobs that trust each other, and says so at the head of every log.
//
// What it does promise is the end. On Linux each attempt has a supervisor, a small process in a session of its own, made
// from the agent's executable; main must call Supervise before anything else. All processes of the attempt descend from the
// supervisor and can not leave it, because it is a child subreaper: when the kernel tells it that it has no child left,
// nothing of the attempt lives. It holds the lease's deadline in a watchdog of its own.
//
//		agent ──socket pair: plan, start, secrets, stop, deadlines──▶ supervisor ──▶ step ──▶ its children
//		  ▲  ◀──steps that began and ended, the outcome──────────────    │ reaps, signals, kills all
//		  └──────────two pipes: what the steps print─────────────────────┘
//
//	  - The agent dies: the supervisor sees the end of the socket and kills everything at once.
//	  - The agent is stopped: the supervisor's watchdog kills in time.
//	  - The supervisor is killed: the attempt ends with that signal; its first children die with it, and the agent looks for
//	    the others by a mark in their environment.
//	  - The supervisor is stopped: a kill that it does not carry out within a moment is carried out by the agent.
//	  - All of them died: KillLeftovers of the next agent on the same state folder finds what is left by the same mark.
//
// A process is known by its id and start time together, and is signalled through a pidfd that was checked against both.
//
// On other systems the steps' process groups, on Windows a job object, stand in for the supervisor; a second watchdog and
// children that leave their group are not covered there.
//
// Secrets travel over the socket pair only, and into the environment of the steps or into files on a file system in memory.
//
// What the supervisor does for an attempt, and how its agent speaks with it, is package keeper's; so are the goroutines of a
// workload.
package process

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Config is what an Executor needs.
type Config struct {
	State      string   // a folder of the agent's state that nothing else uses; made if it is missing
	Toolchains []string // folders that come first in PATH (D11)
	Log        *slog.Logger
}

// Executor runs attempts as processes. It may be used by several goroutines at once.
type Executor struct {
	cfg  Config
	mark string // of this state folder, in the environment of everything that it starts

	live keeper.Live // which a sweep leaves alone
}

// New returns an executor on a state folder, on which no other process may have one at the same time.
func New(cfg Config) (*Executor, error) {
	if !filepath.IsAbs(cfg.State) {
		return nil, fmt.Errorf("state folder %q: give an absolute path", cfg.State)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.State, 0o700); err != nil {
		return nil, fmt.Errorf("state folder of the process executor: %w", err)
	}
	mark, err := readMark(cfg.State)
	if err != nil {
		return nil, fmt.Errorf("mark of the process executor: %w", err)
	}
	return &Executor{cfg: cfg, mark: mark}, nil
}

// Sandbox says that this is no sandbox.
func (e *Executor) Sandbox() forge.Sandbox { return forge.Sandbox{Kind: forge.SandboxProcess} }

// warning is the first thing in every log.
const warning = "This job runs as ordinary processes of the agent's user. Nothing confines it: " +
	"it can read and change what that user can."

var _ executor.Executor = (*Executor)(nil)
