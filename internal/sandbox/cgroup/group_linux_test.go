package cgroup_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// Case B01, threat S13.
func TestKillLeavesNoneOfAHerd(t *testing.T) {
	tree, given := open(t)
	need(t, given.Pids) // It bounds what the herd can do to this machine.
	g := group(t, tree, "herd", cgroup.Limits{Pids: 200})
	v := startIn(t, g, "herd", 20)
	v.says("herd")
	if len(members(t, "herd")) < 20 {
		t.Fatal("the herd is too small to show anything")
	}
	refused := usage(t, g).PidsRefused
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if left := members(t, "herd"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if u := usage(t, g); refused == 0 && u.OutOfPids() {
		t.Errorf("%d refused forks, want none: the kill refused them", u.PidsRefused)
	}
	if err := g.Kill(); err != nil {
		t.Errorf("the second kill: %v", err)
	}
}

// members lists the processes of the groups of a name, by asking the processes.
func members(t *testing.T, name string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "/"+name+"\n") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func TestAGroupWithProcessesIsNotRemoved(t *testing.T) {
	tree, _ := open(t)
	g := group(t, tree, "busy", cgroup.Limits{})
	startIn(t, g, "wait", 0)
	if err := g.Remove(); !errors.Is(err, cgroup.ErrAlive) {
		t.Errorf("remove: %v, want %v", err, cgroup.ErrAlive)
	}
}

func TestADiscardedGroupIsGoneWithWhatWasInIt(t *testing.T) {
	tree, _ := open(t)
	for _, busy := range []bool{false, true} {
		g := group(t, tree, "discarded", cgroup.Limits{})
		if busy {
			startIn(t, g, "wait", 0)
		}
		if err := g.Discard(); err != nil {
			t.Errorf("busy %t: %v", busy, err)
		}
		if left := members(t, "discarded"); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	}
}

func TestARemovedGroupLeavesNothingAndItsNameIsFree(t *testing.T) {
	tree, _ := open(t)
	for range 2 {
		g, err := tree.Make("again", cgroup.Limits{Pids: 10})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(g.Kill(), g.Remove(), g.Remove()); err != nil {
			t.Fatal(err)
		}
	}
	if left := folders(t, "again"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// folders lists the cgroups of a name, in all hierarchies.
func folders(t *testing.T, name string) (found []string) {
	t.Helper()
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestANameIsAPlainWordAndUsedOnce(t *testing.T) {
	tree, _ := open(t)
	for _, name := range []string{"", ".", "..", "a/b", "../a", "a b", "a_b", "ä", strings.Repeat("x", 129)} {
		if _, err := tree.Make(name, cgroup.Limits{}); !errors.Is(err, cgroup.ErrName) {
			t.Errorf("%q: %v, want %v", name, err, cgroup.ErrName)
		}
	}
	group(t, tree, strings.Repeat("x", 128), cgroup.Limits{})
	group(t, tree, "one", cgroup.Limits{})
	if _, err := tree.Make("one", cgroup.Limits{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second of a name: %v, want %v", err, fs.ErrExist)
	}
}

// Invariant I14: no cgroup outlives a restart of the agent.
func TestASweepTakesWhatADeadAgentLeftAndNothingElse(t *testing.T) {
	mine, theirs := stateFolder(t), stateFolder(t)
	tree, _ := openAt(t, mine)
	other, _ := openAt(t, theirs)
	live := group(t, tree, "live", cgroup.Limits{})
	group(t, other, "others", cgroup.Limits{})
	startIn(t, live, "wait", 0)

	dead := start(t, "abandon", 0, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "STATE="+mine) })
	dead.begin()
	child := dead.says("child")
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dead.end()

	if n, err := tree.Sweep(); n < 1 || err != nil { // Agents of other tests may die meanwhile.
		t.Errorf("swept %d, %v; want 1", n, err)
	}
	if left := folders(t, "left"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if _, err := os.Stat("/proc/" + child); err == nil && len(members(t, "left")) > 0 {
		t.Errorf("process %s lives", child)
	}
	if len(folders(t, "live")) == 0 || len(members(t, "live")) != 1 || len(folders(t, "others")) == 0 {
		t.Error("the sweep took what is in use or another agent's")
	}
	if _, err := tree.Sweep(); err != nil || len(folders(t, "live")) == 0 {
		t.Errorf("the second sweep: %v", err)
	}
}

// The state folder of an agent that was killed may never be used again; what it left must not
// stay for ever.
func TestASweepTakesWhatAnyDeadAgentLeftButNotWhileItLives(t *testing.T) {
	tree, _ := open(t)
	v := start(t, "abandon", 0, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "STATE="+stateFolder(t)) })
	v.begin()
	v.says("child")
	if _, err := tree.Sweep(); err != nil || len(members(t, "left")) != 1 {
		t.Fatalf("%v, %v; a group of another agent that lives must stay", members(t, "left"), err)
	}
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	v.end()
	if n, err := tree.Sweep(); n == 0 || err != nil {
		t.Errorf("swept %d, %v; want what the dead agent left", n, err)
	}
	if left := append(folders(t, "left"), members(t, "left")...); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestTheKernelPrefersWorkloadsOverTheAgent(t *testing.T) {
	tree, _ := open(t)
	g := group(t, tree, "scores", cgroup.Limits{})
	agent, work := start(t, "wait", 0), start(t, "wait", 0)
	spared := cgroup.Protect(agent.cmd.Process.Pid)
	if spared != nil && !errors.Is(spared, fs.ErrPermission) {
		t.Fatal(spared)
	}
	if err := g.Add(work.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	a, w := score(t, agent), score(t, work)
	if a >= w || w <= 0 {
		t.Errorf("scores %d of the agent and %d of the workload, want the workload preferred", a, w)
	}
	if spared == nil && a >= 0 {
		t.Errorf("score %d of the agent, want it spared", a)
	}
}

// score reads a process's score for the out-of-memory killer.
func score(t *testing.T, v *victim) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(v.cmd.Process.Pid) + "/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestProtectSaysWhenItMayNot(t *testing.T) {
	if err := cgroup.Protect(1 << 30); err == nil || !strings.Contains(err.Error(), "1073741824") {
		t.Errorf("protect of nobody: %v, want an error that names it", err)
	}
}

// as runs a command as another user.
func as(uid uint32) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
}
