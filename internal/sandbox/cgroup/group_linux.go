package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"
	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	periodMicros   = 100_000 // in which a quota of processor time is counted
	minQuotaMicros = 1_000   // the least that the kernel takes
	microsPerMilli = periodMicros / 1000
)

// Group is the cgroup of one attempt.
type Group struct {
	tree    *Tree
	name    string
	dirs    map[string]string // controller to the group's folder; read-only after create
	manager manager

	killing sync.Mutex // held by the one that kills, so that nobody thaws what another froze

	mu      sync.Mutex
	limits  Limits
	refused *uint64 // forks refused before Kill refused them all; nil before that
}

// Name is the name that Make was given.
func (g *Group) Name() string { return g.name }

// Add moves a process into the group, and lets the kernel prefer it over others when memory
// runs out. Children that it starts from then on are in the group too; those that it has
// already are not.
func (g *Group) Add(pid int) error {
	if err := g.manager.AddPid("", pid); err != nil {
		return fmt.Errorf("add process %d to cgroup %s: %w", pid, g.name, err)
	}
	if err := expose(pid); err != nil {
		g.tree.log.Debug("a workload keeps its score for the out-of-memory killer", "pid", pid, "error", err)
	}
	return nil
}

// Limit sets limits for a group that was made before they were known. It cannot lift any.
func (g *Group) Limit(limits Limits) error {
	if err := g.set(g.tree.resources(limits)); err != nil {
		return fmt.Errorf("limits of cgroup %s: %w", g.name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = limits
	return nil
}

// bounds returns the limits.
func (g *Group) bounds() Limits {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limits
}

// Remove removes the group. It must be empty, else the error says so: call Kill first. A
// process that is just ending is waited for, about a second. Removing twice is harmless.
func (g *Group) Remove() error {
	if err := g.rmdir(); err != nil {
		return fmt.Errorf("remove cgroup %s: %w", g.name, err)
	}
	g.tree.forget(g.name)
	return nil
}

// Discard removes a group that should be empty, and kills what is in it if it is not.
func (g *Group) Discard() error {
	for _, dir := range g.dirs {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return errors.Join(g.Kill(), g.Remove())
		}
	}
	g.tree.forget(g.name)
	return nil
}

// Usage reads what the group has used. After Remove it is an error.
func (g *Group) Usage() (Usage, error) {
	u, err := g.usage()
	if err != nil {
		return Usage{}, fmt.Errorf("usage of cgroup %s: %w", g.name, err)
	}
	return u, nil
}

// usage is Usage without the name in its error.
func (g *Group) usage() (Usage, error) {
	given, limits := g.tree.host.report, g.bounds()
	stats, err := g.manager.Stats(&cgroups.StatsOptions{Controllers: cgroups.Memory | cgroups.CPU | cgroups.Pids})
	if err != nil {
		return Usage{}, err
	}
	u := Usage{
		CPUTime:   time.Duration(stats.CpuStats.CpuUsage.TotalUsage),
		Throttled: stats.CpuStats.ThrottlingData.ThrottledPeriods,
	}
	if given.CPU.Given {
		u.CPULimit = limits.CPU
	}
	if given.Memory.Given {
		u.MemoryLimit, u.MemoryPeak = limits.Memory, forge.Bytes(stats.MemoryStats.Usage.MaxUsage)
		if u.OOMKills, err = g.manager.OOMKillCount(); err != nil {
			return Usage{}, err
		}
	}
	if given.Pids.Given {
		u.PidsLimit = limits.Pids
		err = g.countPids(&u)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused != nil {
		u.PidsRefused = *g.refused
	}
	return u, err
}

// countPids reads the figures about processes that the library leaves out. Kernels before
// 6.1 have no peak; it stays zero.
func (g *Group) countPids(u *Usage) error {
	dir := g.dir(ctrlPids)
	peak, err := fscommon.GetCgroupParamUint(dir, "pids.peak")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	u.PidsPeak = int(peak)
	u.PidsRefused, err = fscommon.GetValueByKey(dir, "pids.events", "max")
	return err
}

// dir is the group's folder in a controller's hierarchy.
func (g *Group) dir(controller string) string {
	if dir, one := g.dirs[ctrlUnified]; one {
		return dir
	}
	return g.dirs[controller]
}

// create makes the folders and sets the limits. A folder that is there already was left by an
// agent that died: Sweep takes it.
func (g *Group) create(r *cgroups.Resources) error {
	made := map[string]bool{}
	for _, dir := range g.dirs {
		if made[dir] {
			continue // Two controllers share one hierarchy.
		}
		if err := os.Mkdir(dir, dirMode); err != nil {
			return err
		}
		made[dir] = true
	}
	return g.set(r)
}

// set sets limits.
func (g *Group) set(r *cgroups.Resources) error {
	err := g.manager.Set(r)
	if errors.Is(err, unix.EINVAL) && r.CpuQuota != 0 {
		// Version 1 refuses a quota above the parent's, which is the tighter one and holds.
		g.tree.log.Warn("the limit of processor time is above that of the agent, which holds", "cgroup", g.name)
		r.CpuQuota, r.CpuPeriod = 0, 0
		err = g.manager.Set(r)
	}
	return errors.Join(err, g.setSockets(r.Memory))
}

// socketsPart is the part of a group's memory that what waits in sockets may take besides, on version 1.
const socketsPart = 4

// setSockets bounds what waits in sockets, which version 1 counts apart from other memory and only if it is told to. Without
// it a job without a network fills the machine's memory by writing to itself, and the machine's sockets fail.
func (g *Group) setSockets(memory int64) error {
	dir, v1 := g.dirs[ctrlMemory]
	if !v1 || memory <= 0 {
		return nil
	}
	err := cgroups.WriteFile(dir, "memory.kmem.tcp.limit_in_bytes", strconv.FormatInt(memory/socketsPart, 10))
	if errors.Is(err, os.ErrNotExist) {
		return nil // The kernel was built without.
	}
	return err
}

// rmdir removes the folders, with what is below them, up to the first that is in use.
func (g *Group) rmdir() error {
	for _, dir := range g.dirs {
		err := cgroups.RemovePath(dir)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%w: %w", ErrAlive, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resources turns limits into the library's terms, leaving out what is not given.
func (t *Tree) resources(l Limits) *cgroups.Resources {
	given, r := t.host.report, &cgroups.Resources{SkipDevices: true}
	if given.Memory.Given && l.Memory > 0 {
		r.Memory = int64(l.Memory)
	}
	if given.Swap.Given {
		r.MemorySwap = r.Memory
	}
	if given.CPU.Given && l.CPU > 0 {
		r.CpuPeriod = periodMicros
		r.CpuQuota = max(minQuotaMicros, int64(l.CPU)*microsPerMilli)
	}
	if given.Pids.Given && l.Pids > 0 {
		limit := int64(l.Pids)
		r.PidsLimit = &limit
	}
	return r
}
