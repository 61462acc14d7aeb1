package keeper

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/folder"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// checkInputs refuses inputs that have no place.
func checkInputs(inputs []executor.Input) error {
	for _, in := range inputs {
		switch {
		case in.Mount == "." || !filepath.IsLocal(filepath.FromSlash(in.Mount)):
			return fmt.Errorf("an input at %q, which is no path below %s", in.Mount, forge.WorkRoot)
		case strings.HasPrefix(in.Mount+"/", executor.OwnDir+"/"):
			return fmt.Errorf("an input at %q; that folder of %s is the agent's own", in.Mount, forge.WorkRoot)
		case !filepath.IsAbs(in.Tree):
			return fmt.Errorf("the tree of the input at %q is %q, which is no absolute path", in.Mount, in.Tree)
		case !in.Mode.Valid():
			return fmt.Errorf("the input at %q is neither read-only nor to be written", in.Mount)
		}
	}
	return nil
}

// CopyInputs copies an order's inputs into the attempt's folder, for executors that cannot show the trees themselves. Nothing
// of the attempt is at work there yet. Of a read-only one nobody may write the copy who keeps to modes.
func CopyInputs(ctx context.Context, order *executor.Order) error {
	for _, in := range order.Inputs {
		to := filepath.Join(order.Folder, filepath.FromSlash(in.Mount))
		if err := os.MkdirAll(to, 0o755); err != nil {
			return fmt.Errorf("input at %s: %w", in.Mount, err)
		}
		style := folder.Plain
		if in.Mode == forge.InputReadOnly {
			style = folder.Frozen
		}
		if err := folder.Copy(ctx, in.Tree, to, style); err != nil {
			return fmt.Errorf("input at %s: %w", in.Mount, err)
		}
	}
	return nil
}
