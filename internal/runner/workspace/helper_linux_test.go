package workspace_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

const helperDir = "FORGEYARD_TEST_WORKSPACE_DIR"

var helpers = map[string]func(){"sweep": sweep, "mounts": mounts, "full": full}

// sweep sweeps a folder twice and says what it heard.
func sweep() {
	failed := 0
	r, err := workspace.Open(os.Getenv(helperDir), workspace.Options{Failed: func(error) { failed++ }})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("begins")
	for range 2 {
		removed, err := r.Sweep(context.Background(), none)
		fmt.Printf("removed %d, failed %d, %v\n", removed, failed, err)
	}
	if err := r.Close(); err != nil {
		fmt.Println(err)
	}
}

// helper is the test's program as one of the helpers, on a folder.
func helper(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"="+what, helperDir+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}
