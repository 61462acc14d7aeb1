//go:build linux

package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// processesOf lists the living processes that have to do with a folder: whose environment or arguments name it, that see
// something below it as a mount of their own, or that hold a file in it and do not descend from one of the given processes.
// Zombies have none of these and are not listed.
func processesOf(folder string, alive map[int]bool) []int {
	var found []int
	for _, pid := range processes() {
		if names(pid, folder) || holds(pid, folder) && !descends(pid, alive) {
			found = append(found, pid)
		}
	}
	return found
}

func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// names reports whether a process has to do with a folder. One that ends meanwhile has not. In a sandbox the folder of an
// attempt is a mount; where a file system begins below the root, its path in the list of mounts is shorter, so that only its
// end is looked for.
func names(pid int, folder string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	end := filepath.Join("/", filepath.Base(filepath.Dir(folder)), filepath.Base(folder))
	for file, text := range map[string]string{"environ": folder, "cmdline": folder, "mountinfo": end} {
		content, err := os.ReadFile(filepath.Join(proc, file))
		if err == nil && bytes.Contains(content, []byte(text+string(filepath.Separator))) {
			return true
		}
	}
	return false
}

// holds reports whether a process has a file in a folder open.
func holds(pid int, folder string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if path, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(path, folder+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// descends reports whether a process is one of some, or below one.
func descends(pid int, from map[int]bool) bool {
	for ; pid > 1; pid = parent(pid) {
		if from[pid] {
			return true
		}
	}
	return false
}

// Keepers lists the processes that an agent keeps beside its workloads: its own children, and theirs, which are the first
// processes of sandboxes.
func (a *Agent) Keepers() []int {
	agent := a.PID()
	if agent == 0 {
		return nil
	}
	var children, all []int
	for _, pid := range processes() {
		if parent(pid) == agent {
			children = append(children, pid)
		}
	}
	for _, pid := range processes() {
		if slices.Contains(children, parent(pid)) {
			all = append(all, pid)
		}
	}
	return append(all, children...)
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
