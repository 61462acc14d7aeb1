package sandbox

// Level names a wall. An agent reports those that its machine really gives; a job may insist on any.
type Level string

// The walls.
const (
	LevelUserNamespace    Level = "user-namespace"
	LevelMappedUIDs       Level = "mapped-uids" // each sandbox has host ids of its own; else the agent's single id
	LevelPIDNamespace     Level = "pid-namespace"
	LevelMountNamespace   Level = "mount-namespace"
	LevelNetworkNamespace Level = "network-namespace"
	LevelIPCNamespace     Level = "ipc-namespace"
	LevelUTSNamespace     Level = "uts-namespace"
	LevelHiddenProc       Level = "hidden-proc"
	LevelSeccomp          Level = "seccomp"
	LevelLandlock         Level = "landlock"
	LevelLandlockScopes   Level = "landlock-scopes" // no abstract sockets and signals across; matters with the host's network
	LevelCgroupMemory     Level = "cgroup-memory"
	LevelCgroupCPU        Level = "cgroup-cpu"
	LevelCgroupPids       Level = "cgroup-pids"
	LevelDiskWatch        Level = "disk-watch" // an attempt that writes more than its disk is ended soon after; the agent does it
	LevelDiskImage        Level = "disk-image" // an attempt has a file system of the size of its disk, and cannot write more
	LevelOverlay          Level = "overlay"    // inputs are layers over the one tree that all attempts share; else each has a copy
)

// Levels lists every wall, in the order of reports.
func Levels() []Level {
	return []Level{
		LevelUserNamespace, LevelMappedUIDs, LevelPIDNamespace, LevelMountNamespace, LevelNetworkNamespace, LevelIPCNamespace,
		LevelUTSNamespace, LevelHiddenProc, LevelSeccomp, LevelLandlock, LevelLandlockScopes, LevelCgroupMemory, LevelCgroupCPU,
		LevelCgroupPids, LevelDiskWatch, LevelDiskImage, LevelOverlay,
	}
}

// Report says what this machine gives.
type Report struct {
	Levels  []Level
	Missing []Missing
}

// Missing is a wall that this machine does not give, why, and what mends that.
type Missing struct {
	Level Level
	Why   string
	Mend  string // a command or a setting; "" where nothing can be done
}

// Sorry says why a wall is missing.
func (r *Report) Sorry(l Level) string {
	for _, m := range r.Missing {
		switch {
		case m.Level == l && m.Mend != "":
			return string(l) + ": " + m.Why + " (" + m.Mend + ")"
		case m.Level == l:
			return string(l) + ": " + m.Why
		}
	}
	return string(l) + ": this machine does not give it"
}

// Has reports whether the machine gives a wall.
func (r *Report) Has(l Level) bool {
	for _, have := range r.Levels {
		if have == l {
			return true
		}
	}
	return false
}
