package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs2"
	"golang.org/x/sys/unix"
)

const (
	maxMoves     = 8  // rounds of moving the agent's processes out of its first cgroup
	maxAncestors = 64 // parents that are followed to see whose a process is
)

// delegate is what makes systemd hand over a cgroup, for a service and for a shell.
const delegate = "let systemd hand the agent a group of its own: `systemctl edit forgeyard-agent` and add " +
	"[Service] Delegate=yes, or start it with `systemd-run --user --scope -p Delegate=yes forgeyard-agent`"

// findV2 claims a folder in the one hierarchy of version 2. A cgroup that hands controllers to
// its children may have no processes of its own, except the root. So the agent moves into a
// leaf beside its workloads when the cgroup was its own; when it was not, and we are root, the
// groups are made below the root.
func findV2(cfg Config, mark string) hierarchy {
	h := hierarchy{roots: map[string]string{ctrlUnified: fs2.UnifiedMountpoint}, manage: manageV2}
	parent, err := parentV2(cfg, mark)
	if err != nil {
		h.report = denied(err.Error(), delegate)
		return h
	}
	base := filepath.Join(parent, folder(mark))
	held, err := claim(base, unix.CGROUP2_SUPER_MAGIC)
	if err != nil {
		h.report = denied(err.Error(), delegate)
		return h
	}
	h.base, h.held = map[string]string{ctrlUnified: base}, []*os.File{held}
	h.report = Report{
		Version: V2, Parent: parent,
		Memory: enable(parent, base, ctrlMemory), CPU: enable(parent, base, ctrlCPU), Pids: enable(parent, base, ctrlPids),
		Freeze: Grant{Given: true},
	}
	h.report.Swap = h.report.Memory // Where memory.swap.max is missing, the kernel has no swap.
	if !h.report.Any() {
		h.discard()
	}
	return h
}

// parentV2 finds the cgroup below which groups are made.
func parentV2(cfg Config, mark string) (string, error) {
	own, err := ownV2()
	if err != nil {
		return "", err
	}
	switch {
	case isRoot(own):
		return own, nil
	case filepath.Base(own) == folder(mark)+agentSuffix:
		return filepath.Dir(own), nil // An earlier launcher of this agent has moved it.
	}
	moveErr := settle(own, filepath.Join(own, folder(mark)+agentSuffix), cfg.Agent)
	if moveErr == nil {
		return own, nil
	}
	if root := fs2.UnifiedMountpoint; isRoot(root) && unix.Access(root, unix.W_OK) == nil {
		return root, nil
	}
	return "", moveErr
}

// ownV2 is the folder of the cgroup in which this process is.
func ownV2() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(text) {
		path, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "0::")
		if !ok {
			continue
		}
		if strings.HasPrefix(path, "/..") {
			return "", fmt.Errorf("the control group of this process, %s, is outside of what is mounted here", path)
		}
		return filepath.Join(fs2.UnifiedMountpoint, path), nil
	}
	return "", errors.New("this process is in no control group of version 2")
}

// isRoot says whether a cgroup is the kernel's own root, which alone has no type.
func isRoot(dir string) bool {
	return !cgroups.PathExists(filepath.Join(dir, "cgroup.type"))
}

// settle moves the agent out of a cgroup into a leaf below it. It refuses when a stranger is
// in the cgroup, because that one could not stay and is not ours to move.
func settle(own, leaf string, agent int) error {
	if err := folderIn(leaf, unix.CGROUP2_SUPER_MAGIC); err != nil {
		return err
	}
	err := errors.New("processes keep coming")
	for range maxMoves {
		var pids []int
		if pids, err = cgroups.GetPids(own); err != nil || len(pids) == 0 {
			break
		}
		if err = moveAll(pids, leaf, agent); err != nil {
			break
		}
		err = errors.New("processes keep coming")
	}
	if err != nil {
		_ = os.Remove(leaf) // It stays when somebody has moved already.
		return fmt.Errorf("the control group %s is not the agent's alone: %w", own, err)
	}
	return nil
}

// moveAll moves processes into a leaf, none if one of them is a stranger.
func moveAll(pids []int, leaf string, agent int) error {
	for _, pid := range pids {
		if !ours(pid, agent) {
			return fmt.Errorf("process %d is in it as well", pid)
		}
	}
	for _, pid := range pids {
		if err := cgroups.WriteCgroupProc(leaf, pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// ours says whether a process is this one, the agent, or a descendant of either.
func ours(pid, agent int) bool {
	for range maxAncestors {
		if pid == os.Getpid() || agent > 0 && pid == agent {
			return true
		}
		if pid = parentOf(pid); pid <= 1 {
			return pid == agent && agent > 0
		}
	}
	return false
}

// parentOf is the parent of a process, 0 when it has none or is gone. The name of the program,
// which may hold anything, ends at the last bracket.
func parentOf(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

// enable hands a controller from the parent to our folder and from there to the groups.
func enable(parent, base, controller string) Grant {
	for _, dir := range []string{parent, base} {
		text, err := cgroups.ReadFile(dir, "cgroup.controllers")
		if err == nil && !slices.Contains(strings.Fields(text), controller) {
			err = errors.New("it was not handed the controller")
		}
		if err == nil {
			err = cgroups.WriteFile(dir, "cgroup.subtree_control", "+"+controller)
		}
		if err != nil {
			return Grant{
				Why: fmt.Sprintf("the control group %s cannot hand out %q: %v", dir, controller, err),
				Mend: delegate + "; for a user's own services also: mkdir -p /etc/systemd/system/user@.service.d && " +
					`printf '[Service]\nDelegate=cpu memory pids\n' > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload`,
			}
		}
	}
	return Grant{Given: true}
}

// manageV2 is the library's manager for a folder of version 2.
func manageV2(dirs map[string]string, r *cgroups.Resources) (manager, error) {
	return fs2.NewManager(&cgroups.Cgroup{Resources: r}, dirs[ctrlUnified])
}
