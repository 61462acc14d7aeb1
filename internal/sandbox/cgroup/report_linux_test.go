package cgroup_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

const nobody = 65534

// told is what a victim reports of its own Open.
type told struct {
	Tree   bool
	Report cgroup.Report
	Cgroup string
}

// ask lets another process open a tree.
func ask(t *testing.T, state string, change ...func(*exec.Cmd)) told {
	t.Helper()
	change = append(change, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "STATE="+state) })
	v := start(t, "report", 0, change...)
	v.begin()
	var answer told
	if err := json.Unmarshal([]byte(v.says("")), &answer); err != nil {
		t.Fatal(err)
	}
	v.end()
	return answer
}

func TestWithoutRightsEveryAbsenceHasAReasonAndARemedy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	if err := os.Chmod(states, 0o755); err != nil { //nolint:gosec // Another user looks into it.
		t.Fatal(err)
	}
	state := stateFolder(t)
	if err := os.Chown(state, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	answer := ask(t, state, as(nobody))
	if answer.Tree || answer.Report.Any() || answer.Report.Version != cgroup.None {
		t.Fatalf("%+v, want nothing", answer)
	}
	r := answer.Report
	for name, g := range map[string]cgroup.Grant{"memory": r.Memory, "swap": r.Swap, "cpu": r.CPU, "pids": r.Pids} {
		if g.Given || g.Why == "" || g.Mend == "" {
			t.Errorf("%s: %+v, want a reason and a remedy", name, g)
		}
	}
}

func TestAStateFolderThatIsNotThereGivesNothing(t *testing.T) {
	tree, given := cgroup.Open(cgroup.Config{State: filepath.Join(t.TempDir(), "none")})
	if tree != nil || given.Any() || given.Memory.Why == "" {
		t.Errorf("%v %+v, want nothing with a reason", tree, given)
	}
	if err := tree.Close(); err != nil {
		t.Errorf("close of nothing: %v", err)
	}
}
