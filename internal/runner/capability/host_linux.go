package capability

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func readStalls() stalls {
	memory := read("/proc/pressure/memory")
	return stalls{
		cpuSome:    parseStall(read("/proc/pressure/cpu"), "some"),
		memorySome: parseStall(memory, "some"), memoryFull: parseStall(memory, "full"),
	}
}

func readMemory() memory {
	info := read("/proc/meminfo")
	m := memory{total: parseMeminfo(info, "MemTotal"), available: parseMeminfo(info, "MemAvailable")}
	// In a container the limit of our group is what there is.
	limit, err := strconv.ParseUint(strings.TrimSpace(read("/sys/fs/cgroup/memory.max")), 10, 64)
	if err == nil && forge.Bytes(limit) < m.total {
		used, err := strconv.ParseUint(strings.TrimSpace(read("/sys/fs/cgroup/memory.current")), 10, 64)
		m.total = forge.Bytes(limit)
		if err == nil {
			m.available = min(m.available, subtract(m.total, forge.Bytes(used)))
		}
	}
	return m
}

func systemVersion() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// read returns a file of the kernel, or nothing: not every kernel has every one.
func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}
