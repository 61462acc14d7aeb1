//go:build linux

package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// processesNaming lists the living processes whose environment, arguments or working folder name a folder. Zombies have
// none of these and are not listed.
func processesNaming(folder string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if names(pid, folder) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// names reports whether a process has to do with a folder. One that ends meanwhile has not.
func names(pid int, folder string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	for _, file := range []string{"environ", "cmdline"} {
		content, err := os.ReadFile(filepath.Join(proc, file))
		if err == nil && bytes.Contains(content, []byte(folder+string(filepath.Separator))) {
			return true
		}
	}
	return false
}

// Keepers lists the processes that an agent keeps beside its workloads: its own children.
func (a *Agent) Keepers() []int {
	agent := a.PID()
	entries, err := os.ReadDir("/proc")
	if err != nil || agent == 0 {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && parent(pid) == agent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parent returns the parent of a process, or 0 where there is none any more. The name in the file may hold anything, so
// the fields are counted from its end.
func parent(pid int) int {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, fields, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	words := bytes.Fields(fields)
	if len(words) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(string(words[1])) // 0 where it is no number
	return ppid
}
