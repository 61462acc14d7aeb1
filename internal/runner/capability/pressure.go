package capability

import (
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// When a machine is short of something. The shares are of the last ten seconds in which somebody, or everybody, had to
// wait; jobs that use all of a processor are no shortage, so its bound is high.
const (
	cpuWaits      = 97.0 // per cent, some
	memoryWaits   = 25.0
	memoryStands  = 20.0 // per cent, all: nothing gets on
	lowMemory     = 20   // one part in
	noMemory      = 50
	minFreeMemory = 64 * forge.MiB
)

// stalls is what the kernel says about waiting (PSI). Where it says nothing, all are zero.
type stalls struct{ cpuSome, memorySome, memoryFull float64 }

// memory is what the machine has, within the limit that is set for us.
type memory struct{ total, available forge.Bytes }

// pressureOf says what the machine is short of, the worst first.
func pressureOf(s stalls, m memory, disk, diskAll forge.Bytes) forge.ResourcePressure {
	switch {
	case s.memoryFull >= memoryStands, m.total > 0 && m.available < max(m.total/noMemory, minFreeMemory):
		return forge.PressureCritical
	case diskAll > 0 && disk < fullDisk:
		return forge.PressureDisk
	case s.memorySome >= memoryWaits, m.total > 0 && m.available < m.total/lowMemory:
		return forge.PressureMemory
	case s.cpuSome >= cpuWaits:
		return forge.PressureCPU
	default:
		return forge.PressureNormal
	}
}

// parseStall reads the avg10 of a line of /proc/pressure that begins with a word.
func parseStall(text, word string) float64 {
	for l := range strings.Lines(text) {
		fields := strings.Fields(l)
		if len(fields) < 2 || fields[0] != word {
			continue
		}
		value, ok := strings.CutPrefix(fields[1], "avg10=")
		n, err := strconv.ParseFloat(value, 64)
		if ok && err == nil {
			return n
		}
	}
	return 0
}

// parseMeminfo reads an amount of /proc/meminfo.
func parseMeminfo(text, key string) forge.Bytes {
	for l := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(l, key+":")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0
		}
		n, err := strconv.ParseUint(fields[0], 10, 50)
		if err != nil {
			return 0
		}
		return forge.Bytes(n) * forge.KiB
	}
	return 0
}
