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
