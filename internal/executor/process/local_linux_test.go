package process

import (
	"context"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/executortest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// localOnly is the executor of systems without supervisors, tried on this one.
type localOnly struct{ *Executor }

func (e localOnly) Prepare(ctx context.Context, order executor.Order) (executor.Workload, error) {
	return e.prepareLocal(ctx, order)
}

func TestTheExecutorWithoutSupervisorsPassesTheSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("this system has supervisors; the long tests try what others do without")
	}
	executortest.Run(t, executortest.Options{
		Kind: forge.SandboxProcess, Keeps: []string{"mark"},
		New: func(t *testing.T, state string) executor.Executor {
			t.Helper()
			e, err := New(Config{State: state})
			if err != nil {
				t.Fatal(err)
			}
			return localOnly{e}
		},
	})
}
