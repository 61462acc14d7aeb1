package native

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Executor runs attempts in sandboxes. It may be used by several goroutines at once.
type Executor struct {
	cfg       Config
	launchers *launchers
	report    sandbox.Report
	path      []string    // PATH of steps
	flat      atomic.Bool // inputs are copied, because layers cannot be had

	live keeper.Live
}

// Open returns an executor on a state folder, on which no other process may have one at the same time. It ends what
// earlier ones have left there, and builds a first sandbox: an error says why none can be built on this machine, unless it
// is a *BadView. ctx bounds the opening alone. The caller closes it.
func Open(ctx context.Context, cfg Config) (*Executor, error) {
	if !filepath.IsAbs(cfg.State) {
		return nil, fmt.Errorf("state folder %q: give an absolute path", cfg.State)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.State, 0o700); err != nil {
		return nil, fmt.Errorf("state folder of the sandboxes: %w", err)
	}
	if cfg.Rootless && os.Geteuid() == 0 {
		cfg.Log.Warn("sandboxes share one id with the agent, which is root, as the configuration asks; without that each has ids of its own")
	}
	view := viewOf(&cfg)
	if err := checkView(&view); err != nil {
		return nil, err
	}
	launchers, err := openLaunchers(ctx, sandbox.Config{
		State: cfg.State, Program: cfg.Program, View: view, Pool: cfg.Pool, Slots: cfg.Slots, UIDBase: cfg.UIDBase,
		Rootless: cfg.Rootless, NoCgroups: cfg.NoCgroups, NoImages: !cfg.DiskImages, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	e := &Executor{
		cfg: cfg, launchers: launchers, report: launchers.current.Report(), path: unique(append(view.Path, systemPath()...)),
	}
	e.flat.Store(!e.report.Has(sandbox.LevelOverlay))
	return e, nil
}

// unique drops what is there a second time.
func unique(folders []string) []string {
	var once []string
	for _, folder := range folders {
		if !slices.Contains(once, folder) {
			once = append(once, folder)
		}
	}
	return once
}

// Close ends every sandbox and waits for it. It may be called more than once.
func (e *Executor) Close() error { return e.launchers.close() }

// Report says which walls this machine gives, and why not the others.
func (e *Executor) Report() sandbox.Report { return e.report }

// Sandbox says which walls this machine gives.
func (e *Executor) Sandbox() forge.Sandbox {
	s := forge.Sandbox{Kind: forge.SandboxNative}
	for _, level := range e.report.Levels {
		s.Levels = append(s.Levels, string(level))
	}
	return s
}

// KillLeftovers has nothing left to do: Open has ended what there was before it took the state folder's lock.
func (e *Executor) KillLeftovers(context.Context) error { return nil }

// Prepare makes a sandbox, and tells its keeper everything but the secrets.
func (e *Executor) Prepare(ctx context.Context, order executor.Order) (executor.Workload, error) {
	if err := errors.Join(keeper.Check(&order), check(&order, e.cfg.Policy, &e.report)); err != nil {
		return nil, keeper.Setup(err)
	}
	if err := keeper.MakeFolders(order.Folder, len(order.Spec.Steps)); err != nil {
		return nil, keeper.Setup(err)
	}
	attempt := order.Context.Attempt
	if err := e.live.Take(attempt); err != nil {
		return nil, keeper.Setup(err)
	}
	opened := false
	w, err := keeper.Prepare(ctx, keeper.Job{
		Order: &order, Plan: e.plan(&order), Log: e.cfg.Log,
		Open: func(ends keeper.Ends) (keeper.Host, error) {
			h, err := e.open(ctx, &order, ends)
			if err != nil {
				return nil, err
			}
			opened = true
			return h, nil
		},
		Over: func() { e.live.Drop(attempt) },
	})
	if err != nil && !opened {
		e.live.Drop(attempt)
	}
	return w, err
}

// plan is the order as the inside sees it.
func (e *Executor) plan(order *executor.Order) *keeper.Plan {
	room := keeper.Room{Folder: sandbox.WorkDir, Temp: sandbox.TempDir, Path: e.path}
	if keeper.HasSecretFiles(order) {
		room.Secrets = secretsDir
	}
	return keeper.NewPlan(order, room)
}

// secretsDir is a new folder in the sandbox's own for secrets, so that its being there already would be noticed.
const secretsDir = sandbox.SecretsDir + "/files"

var _ executor.Executor = (*Executor)(nil)
