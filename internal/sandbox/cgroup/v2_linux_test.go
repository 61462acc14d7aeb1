package cgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// service makes a cgroup of version 2 like that of a service, owned by a user, and skips the
// test on other machines.
func service(t *testing.T, uid int) string {
	t.Helper()
	_, given := open(t)
	if given.Version != cgroup.V2 || os.Geteuid() != 0 {
		t.Skip("this machine's control groups are not of version 2, or not ours")
	}
	root := "/sys/fs/cgroup"
	for _, controller := range []string{"memory", "cpu", "pids"} {
		if err := cgroups.WriteFile(root, "cgroup.subtree_control", "+"+controller); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "forgeyard-test.service")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // As systemd makes them.
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cgroups.RemovePath(dir); err != nil {
			t.Error(err)
		}
	})
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(dir, file), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// in starts a victim in a cgroup that is not one of ours.
func in(t *testing.T, dir string) func(*exec.Cmd) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
}

// Version 2 lets no cgroup have processes and hand out controllers at once.
func TestAnAgentAloneInItsCgroupMovesBesideItsWorkloads(t *testing.T) {
	for name, uid := range map[string]int{"root": 0, "another user": nobody} {
		t.Run(name, func(t *testing.T) {
			dir, state := service(t, uid), stateFolder(t)
			if err := os.Chmod(states, 0o755); err != nil { //nolint:gosec // Another user looks into it.
				t.Fatal(err)
			}
			if err := os.Chown(state, uid, uid); err != nil {
				t.Fatal(err)
			}
			answer := ask(t, state, as(uint32(uid)), in(t, dir))
			r := answer.Report
			if !answer.Tree || r.Parent != dir || !r.Memory.Given || !r.Swap.Given || !r.CPU.Given || !r.Pids.Given {
				t.Errorf("%+v, want everything below %s", answer, dir)
			}
			if !strings.Contains(answer.Cgroup, "/forgeyard-test.service/forgeyard-") || !strings.HasSuffix(answer.Cgroup, ".agent\n") {
				t.Errorf("the agent is in %q, want a leaf of its own", answer.Cgroup)
			}
		})
	}
}

func TestAStrangerInTheCgroupIsNotMoved(t *testing.T) {
	dir, state := service(t, nobody), stateFolder(t)
	if err := os.Chmod(states, 0o755); err != nil { //nolint:gosec // Another user looks into it.
		t.Fatal(err)
	}
	if err := os.Chown(state, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	stranger := start(t, "wait", 0, in(t, dir))
	answer := ask(t, state, as(nobody), in(t, dir))
	if answer.Tree || !strings.Contains(answer.Report.Memory.Why, "process "+strconv.Itoa(stranger.cmd.Process.Pid)) {
		t.Errorf("%+v, want nothing because of process %d", answer, stranger.cmd.Process.Pid)
	}
	pids, err := cgroups.GetPids(dir)
	if err != nil || len(pids) != 1 || pids[0] != stranger.cmd.Process.Pid {
		t.Errorf("in the cgroup are %v, %v; want the stranger", pids, err)
	}
	if err := stranger.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	stranger.end()
}
