//go:build !linux

package process

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// memoryDir is where folders of secrets would be made.
const memoryDir = ""

// Supervise returns: on this system an agent needs no supervisors.
func Supervise() {}

// Prepare readies a workload, of which only the agent itself holds the deadline.
func (e *Executor) Prepare(ctx context.Context, order executor.Order) (executor.Workload, error) {
	return e.prepareLocal(ctx, order)
}

// KillLeftovers has nothing to do on Windows, where a job object dies with its agent. On other systems it does not find
// what an agent left that was killed.
func (e *Executor) KillLeftovers(context.Context) error { return nil }

// forget ends the registration of an attempt.
func (e *Executor) forget(attempt forge.AttemptID) { e.live.Drop(attempt) }
