package cgroup_test

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

const bombMiB = 256 // what a memory bomb wants, far above its limit

// memoryLimit is room for a Go program, and not for a bomb.
const memoryLimit = 64 * forge.MiB

// Claim: memory is bounded, and the kill is counted with limit and peak.
func TestAMemoryBombIsKilledAndCounted(t *testing.T) {
	tree, given := open(t)
	need(t, given.Memory)
	g := group(t, tree, "bomb", cgroup.Limits{Memory: memoryLimit})
	v := startIn(t, g, "eat", bombMiB)
	if status := v.end(); status.Signal() != syscall.SIGKILL {
		t.Errorf("the bomb ended with %v, want to be killed", status)
	}
	u := usage(t, g)
	if !u.OutOfMemory() || u.MemoryLimit != memoryLimit {
		t.Errorf("usage %+v, want an out-of-memory kill and the limit", u)
	}
	if u.MemoryPeak < memoryLimit/2 || u.MemoryPeak > memoryLimit+forge.MiB { // The kernel counts in batches.
		t.Errorf("peak %s, want it near the limit of %s and not far above", u.MemoryPeak, memoryLimit)
	}
}

// What waits in sockets is memory as well. On version 1 it has a count of its own, at which a socket takes no more; on version
// 2 it is in the one count of all memory, at which the kernel kills.
func TestWhatWaitsInSocketsIsBounded(t *testing.T) {
	tree, given := open(t)
	need(t, given.Memory)
	g := group(t, tree, "post", cgroup.Limits{Memory: memoryLimit})
	v := startIn(t, g, "post", 128)
	if given.Version == cgroup.V2 {
		if status, u := v.end(), usage(t, g); status.Signal() != syscall.SIGKILL || !u.OutOfMemory() {
			t.Errorf("it ended with %v and used %+v, want an out-of-memory kill", status, u)
		}
		return
	}
	waiting, err := strconv.Atoi(v.says("waiting"))
	if err != nil {
		t.Fatal(err)
	}
	if status := v.end(); status.ExitStatus() != 0 {
		t.Errorf("it ended with %v", status)
	}
	if most := int(memoryLimit >> 20); waiting == 0 || waiting > most {
		t.Errorf("%d MiB wait in sockets, want some and at most %d", waiting, most)
	}
}

func TestAKillThatTheParentSwallowsIsCountedAsWell(t *testing.T) {
	tree, given := open(t)
	need(t, given.Memory)
	g := group(t, tree, "swallow", cgroup.Limits{Memory: memoryLimit})
	v := startIn(t, g, "swallow", bombMiB)
	if told := v.says("swallowed"); told != "signal: killed" {
		t.Errorf("the child ended with %q, want it killed", told)
	}
	if status := v.end(); status.ExitStatus() != 0 {
		t.Errorf("the parent ended with %v, want success", status)
	}
	if u := usage(t, g); u.OOMKills != 1 {
		t.Errorf("%d kills counted, want 1", u.OOMKills)
	}
}

func TestWorkBelowTheLimitsIsLeftAlone(t *testing.T) {
	tree, given := open(t)
	need(t, given.Memory)
	g := group(t, tree, "modest", cgroup.Limits{Memory: 4 * memoryLimit, Pids: 100})
	v := startIn(t, g, "eat", 32)
	v.says("ate")
	if status := v.end(); status.ExitStatus() != 0 {
		t.Errorf("it ended with %v, want success", status)
	}
	u := usage(t, g)
	if u.OutOfMemory() || u.OutOfPids() {
		t.Errorf("usage %+v, want nothing refused", u)
	}
	if u.MemoryPeak < 32*forge.MiB || u.CPUTime <= 0 {
		t.Errorf("usage %+v, want at least 32 MiB and some time", u)
	}
}

func TestAForkBombIsBoundedAndCounted(t *testing.T) {
	tree, given := open(t)
	need(t, given.Pids)
	const limit = 40
	g := group(t, tree, "forks", cgroup.Limits{Pids: limit})
	v := startIn(t, g, "fork", 4*limit)
	got, err := strconv.Atoi(v.says("children"))
	if err != nil {
		t.Fatal(err)
	}
	if got == 0 || got >= limit {
		t.Errorf("it had %d children, want some and fewer than %d", got, limit)
	}
	u := usage(t, g)
	if !u.OutOfPids() || u.PidsLimit != limit {
		t.Errorf("usage %+v, want refused forks and the limit", u)
	}
	if u.PidsPeak != 0 && u.PidsPeak != limit { // Zero on kernels that have no peak.
		t.Errorf("peak %d, want %d", u.PidsPeak, limit)
	}
}

func TestProcessorTimeIsBounded(t *testing.T) {
	tree, given := open(t)
	need(t, given.CPU)
	const limit = 100 // A tenth of a processor.
	g := group(t, tree, "spin", cgroup.Limits{CPU: limit})
	startIn(t, g, "spin", 0)
	var u cgroup.Usage
	for u.Throttled == 0 { // The test's own deadline ends this.
		u = usage(t, g)
	}
	if u.CPULimit != limit || u.CPUTime <= 0 {
		t.Errorf("usage %+v, want the limit and some time", u)
	}
}

func TestLimitsThatComeLaterHold(t *testing.T) {
	tree, given := open(t)
	need(t, given.Memory)
	g := group(t, tree, "later", cgroup.Limits{})
	v := start(t, "eat", bombMiB)
	if err := g.Add(v.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := g.Limit(cgroup.Limits{Memory: memoryLimit, Pids: 50}); err != nil {
		t.Fatal(err)
	}
	v.begin()
	if status := v.end(); status.Signal() != syscall.SIGKILL {
		t.Errorf("the bomb ended with %v, want to be killed", status)
	}
	if u := usage(t, g); !u.OutOfMemory() || u.MemoryLimit != memoryLimit {
		t.Errorf("usage %+v, want an out-of-memory kill and the limit", u)
	}
}

func TestNoLimitIsNone(t *testing.T) {
	tree, _ := open(t)
	g := group(t, tree, "free", cgroup.Limits{})
	v := startIn(t, g, "eat", bombMiB)
	v.says("ate")
	if u := usage(t, g); u.MemoryLimit != 0 || u.PidsLimit != 0 || u.CPULimit != 0 || u.OutOfMemory() {
		t.Errorf("usage %+v, want no limits and no kill", u)
	}
}
