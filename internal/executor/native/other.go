//go:build !linux

package native

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Main returns: on this system there are no sandboxes.
func Main() {}

// Executor is what this system does not have.
type Executor struct{}

// Open says so.
func Open(context.Context, Config) (*Executor, error) {
	return nil, errors.New("sandboxes are made of what the Linux kernel has; this system has none")
}

// Close does nothing.
func (*Executor) Close() error { return nil }

// Report has no walls.
func (*Executor) Report() sandbox.Report { return sandbox.Report{} }

// Sandbox has no walls.
func (*Executor) Sandbox() forge.Sandbox { return forge.Sandbox{Kind: forge.SandboxNative} }

// KillLeftovers has nothing to do.
func (*Executor) KillLeftovers(context.Context) error { return nil }

// Prepare refuses.
func (*Executor) Prepare(_ context.Context, order executor.Order) (executor.Workload, error) {
	return nil, &executor.SetupError{Class: forge.SandboxSetup, Err: check(&order, forge.LocalPolicy{}, &sandbox.Report{})}
}

var _ executor.Executor = (*Executor)(nil)
