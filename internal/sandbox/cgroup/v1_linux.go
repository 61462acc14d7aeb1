package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	cgroups1 "github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fscommon"
	"golang.org/x/sys/unix"
)

// controllersV1 are those that are used, in the order in which they are looked for. The
// accounting of processor time may be mounted together with its limit, or not.
var controllersV1 = []string{ctrlMemory, ctrlCPU, ctrlCPUAcct, ctrlPids, ctrlFreezer}

// findV1 claims a folder in the hierarchy of each controller, below the cgroup in which this
// process is, so that the limits of that one hold as well. On version 1 a cgroup may have
// processes and children at once; the agent stays where it is.
func findV1(mark string) hierarchy {
	h := hierarchy{base: map[string]string{}, roots: map[string]string{}, manage: manageV1}
	grants := map[string]Grant{}
	for _, controller := range controllersV1 {
		grants[controller] = h.claimV1(controller, mark)
	}
	h.report = Report{
		Version: V1, Parent: filepath.Dir(h.base[ctrlMemory]),
		Memory: grants[ctrlMemory], CPU: grants[ctrlCPU], Pids: grants[ctrlPids], Freeze: grants[ctrlFreezer],
	}
	h.report.Swap = swapV1(h.base[ctrlMemory], h.report.Memory)
	if !h.report.Any() {
		h.discard()
	}
	return h
}

// claimV1 claims the folder for one controller.
func (h *hierarchy) claimV1(controller, mark string) Grant {
	root, _, err := cgroups.FindCgroupMountpointAndRoot("", controller)
	own := ""
	if err == nil {
		own, err = cgroups.GetOwnCgroupPath(controller)
	}
	if err != nil {
		return Grant{
			Why:  fmt.Sprintf("the control group controller %q is not mounted: %v", controller, err),
			Mend: fmt.Sprintf("mkdir -p /sys/fs/cgroup/%[1]s && mount -t cgroup -o %[1]s cgroup /sys/fs/cgroup/%[1]s", controller),
		}
	}
	base := filepath.Join(own, folder(mark))
	held, err := claim(base, unix.CGROUP_SUPER_MAGIC)
	if err != nil {
		return Grant{
			Why:  err.Error(),
			Mend: fmt.Sprintf("run the agent as root, or give it a group of its own: mkdir -p %[1]s/forgeyard && chown -R %[2]s %[1]s/forgeyard, and start it in there", own, userName()),
		}
	}
	h.roots[controller], h.base[controller], h.held = root, base, append(h.held, held)
	return Grant{Given: true}
}

// swapV1 says whether the kernel counts swap.
func swapV1(base string, memory Grant) Grant {
	if !memory.Given {
		return memory
	}
	if cgroups.PathExists(filepath.Join(base, "memory.memsw.limit_in_bytes")) {
		return memory
	}
	return Grant{
		Why:  "the kernel does not count swap, so that a limit of memory can be evaded by swapping",
		Mend: "boot with swapaccount=1, or swapoff -a",
	}
}

// managerV1 is the library's manager for folders of version 1, but reads no more than is needed: the library reads some
// twenty files, one of which makes the kernel add up what each processor has counted.
type managerV1 struct {
	manager
	dirs map[string]string
}

func manageV1(dirs map[string]string, r *cgroups.Resources) (manager, error) {
	m, err := cgroups1.NewManager(&cgroups.Cgroup{Resources: r}, dirs)
	if err != nil {
		return nil, err
	}
	return managerV1{m, dirs}, nil
}

// Stats reads the time used, how often it was held back, and the most memory used, of those that there are.
func (m managerV1) Stats(*cgroups.StatsOptions) (*cgroups.Stats, error) {
	stats := &cgroups.Stats{}
	for _, figure := range []struct {
		controller string
		read       func(dir string) error
	}{
		{ctrlCPUAcct, func(dir string) (err error) {
			stats.CpuStats.CpuUsage.TotalUsage, err = fscommon.GetCgroupParamUint(dir, "cpuacct.usage")
			return err
		}},
		{ctrlCPU, func(dir string) (err error) {
			stats.CpuStats.ThrottlingData.ThrottledPeriods, err = fscommon.GetValueByKey(dir, "cpu.stat", "nr_throttled")
			if errors.Is(err, fs.ErrNotExist) { // a kernel that limits no time
				return nil
			}
			return err
		}},
		{ctrlMemory, func(dir string) (err error) {
			stats.MemoryStats.Usage.MaxUsage, err = fscommon.GetCgroupParamUint(dir, "memory.max_usage_in_bytes")
			return err
		}},
	} {
		dir, given := m.dirs[figure.controller]
		if !given {
			continue
		}
		if err := figure.read(dir); err != nil {
			return nil, err
		}
	}
	return stats, nil
}

// userName is who runs this, for a command that the reader can copy.
func userName() string {
	if who, err := user.Current(); err == nil {
		return who.Username
	}
	return fmt.Sprint(os.Getuid())
}
