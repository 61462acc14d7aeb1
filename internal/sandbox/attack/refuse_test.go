//go:build linux && forgeyard_unsafe

package attack_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsThatRunJobsRefuseToStartFromThisBuild builds them as this test was built.
func TestProgramsThatRunJobsRefuseToStartFromThisBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for _, name := range []string{"forgeyard", "forgeyard-agent"} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			build := exec.Command("go", "build", "-tags", "forgeyard_unsafe", "-o", program, "../../../cmd/"+name)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			out, err := exec.Command(program, "--help").CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() == 0 {
				t.Errorf("it started: %v", err)
			}
			if !strings.Contains(string(out), "built for proofs") {
				t.Errorf("it does not say why: %q", out)
			}
		})
	}
}
