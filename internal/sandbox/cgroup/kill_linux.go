package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

const (
	killPatience = 5 * time.Second       // after which Kill gives up
	killPollMin  = time.Millisecond      // between two looks at who is left, at first
	killPollMax  = 50 * time.Millisecond // and later
	killAtOnce   = 256                   // processes that are held by descriptor at one time
)

// Kill ends every process of the group, also those that are stopped, that ignore signals or
// that fork as fast as they can, and returns when none is left. It gives up after five
// seconds with ErrAlive: then a process hangs in the kernel. Killing an empty group, or
// twice, is harmless. What forks are refused from the first blow on is not counted in Usage.
func (g *Group) Kill() error {
	g.killing.Lock()
	defer g.killing.Unlock()
	for start, pause := time.Now(), killPollMin; ; pause = min(2*pause, killPollMax) {
		alive, err := g.members()
		if err != nil {
			return fmt.Errorf("kill cgroup %s: %w", g.name, err)
		}
		if len(alive) == 0 {
			return nil
		}
		if time.Since(start) > killPatience {
			return fmt.Errorf("kill cgroup %s: %w after %s: %v", g.name, ErrAlive, killPatience, alive)
		}
		if err := g.strike(); err != nil {
			return fmt.Errorf("kill cgroup %s: %w", g.name, err)
		}
		time.Sleep(pause)
	}
}

// members lists the processes of the group and of what is below it, each once. A folder that
// is gone has none.
func (g *Group) members() ([]int, error) {
	var all []int
	for _, dir := range g.dirs {
		pids, err := cgroups.GetAllPids(dir)
		if err != nil && !gone(err) {
			return nil, err
		}
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// strike sends SIGKILL to every member once. Where the kernel can do that as one act it does;
// elsewhere forks are refused and the group is held still while its members are signalled, so
// that none escapes by having a child in between.
func (g *Group) strike() error {
	if dir, one := g.dirs[ctrlUnified]; one {
		err := cgroups.WriteFile(dir, "cgroup.kill", "1")
		if err == nil || gone(err) && !cgroups.PathExists(dir) {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // Kernels before 5.14 do not have the file.
			return err
		}
	}
	g.refuseForks()
	frozen := g.freeze(cgroups.Frozen)
	err := g.signalAll()
	if frozen {
		g.freeze(cgroups.Thawed) // On version 1 the frozen die when they are thawed.
	}
	return err
}

// refuseForks lets no member have a child any more, where processes are counted. Refusals so
// far are kept, because those from now on are ours and not the workload's.
func (g *Group) refuseForks() {
	if !g.tree.host.report.Pids.Given {
		return
	}
	var before Usage
	if err := g.countPids(&before); err == nil {
		g.mu.Lock()
		if g.refused == nil {
			g.refused = &before.PidsRefused
		}
		g.mu.Unlock()
	}
	if err := cgroups.WriteFile(g.dir(ctrlPids), "pids.max", "0"); err != nil {
		g.tree.log.Debug("forks are not refused while a cgroup is killed", "cgroup", g.name, "error", err)
	}
}

// freeze stops or releases the group and says whether it did. Without it the kill is repeated
// more often, no more.
func (g *Group) freeze(state cgroups.FreezerState) bool {
	if !g.tree.host.report.Freeze.Given {
		return false
	}
	if err := g.manager.Freeze(state); err != nil && !gone(err) {
		g.tree.log.Debug("a cgroup is killed without being frozen", "cgroup", g.name, "state", state, "error", err)
		return state == cgroups.Frozen // It may be half frozen, and must be thawed.
	}
	return true
}

// signalAll sends SIGKILL to those who are members now.
func (g *Group) signalAll() error {
	pids, err := g.members()
	if err != nil {
		return err
	}
	var errs []error
	for some := range slices.Chunk(pids, killAtOnce) {
		errs = append(errs, g.signal(some))
	}
	return errors.Join(errs...)
}

// signal sends SIGKILL to some members. Each is held by a descriptor first and looked up
// again after, so that a process which took over the id of an ended member is not hit.
func (g *Group) signal(pids []int) error {
	held := make(map[int]int, len(pids))
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			held[pid] = fd
		} else if !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("hold process %d: %w", pid, err)
		}
	}
	still, err := g.members()
	if err != nil {
		return err
	}
	for _, pid := range still {
		fd, ok := held[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

// gone says whether an error means that a cgroup is not there any more.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
