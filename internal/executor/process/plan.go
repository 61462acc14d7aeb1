package process

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// goBin is where the distribution of Go is installed by default (D11).
const goBin = "/usr/local/go/bin"

// newPlan turns an order into a plan, makes the folders that every step finds, and copies the inputs there.
func (e *Executor) newPlan(ctx context.Context, order *executor.Order) (*keeper.Plan, error) {
	if err := check(order); err != nil {
		return nil, keeper.Setup(err)
	}
	if err := keeper.MakeFolders(order.Folder, len(order.Spec.Steps)); err != nil {
		return nil, keeper.Setup(err)
	}
	if err := keeper.CopyInputs(ctx, order); err != nil {
		return nil, keeper.Setup(err)
	}
	return keeper.NewPlan(order, keeper.Room{
		Folder: order.Folder, Secrets: e.secretsDir(order), Path: e.path(),
		Own: []forge.EnvVar{{Name: envMark, Value: e.markOf(order.Context.Attempt)}},
	}), nil
}

func check(order *executor.Order) error {
	switch {
	case order.Spec.Sandbox.Kind != forge.SandboxProcess:
		return fmt.Errorf("the job wants a sandbox of kind %v; plain processes would not confine it", order.Spec.Sandbox.Kind)
	case len(order.Spec.Sandbox.Levels) > 0:
		return fmt.Errorf("the job wants the walls %v; plain processes have none", order.Spec.Sandbox.Levels)
	}
	return keeper.Check(order)
}

// path is the PATH of a step that sets none.
func (e *Executor) path() []string {
	folders := slices.Clone(e.cfg.Toolchains)
	if info, err := os.Stat(goBin); err == nil && info.IsDir() {
		folders = append(folders, goBin)
	}
	return append(folders, hostPath()...)
}
