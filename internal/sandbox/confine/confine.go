//go:build linux

// Package confine takes from a process, and from all it will start, what work has no need of.
//
// Prepare and Apply do it to pid 1 of a sandbox: resource limits, no privileges by exec, no capabilities in the bounding set,
// Landlock, and the filter of system calls, on every thread of the process; the bounding set is that of the thread which
// starts the steps. Steps inherit all of it by fork. pid 1 itself keeps three capabilities over its own user namespace where
// its ids are mapped, so that it can give steps their id and end them; steps have none. Prepare comes before an order and
// takes most of the time, Apply after the view is sealed.
//
// The filter is ours as data (profile.go, table.go): what is not listed is refused. Probe says which of these walls this
// kernel has, and what mends those that it has not.
//
// What is confined stays so, until the process ends. Nothing here runs outside of pid 1. No goroutine is started but that of
// AsStep, which joins it.
package confine

// Walls is what Apply builds.
type Walls struct {
	Mapped    bool     // pid 1 is root of a user namespace with ids of its own, and keeps the right to switch to steps' ids
	Writable  []string // folders that may be written to; missing ones are left out
	Devices   []string // folders with devices, pipes of terminals: written to, ioctl allowed
	Processes uint64   // bound on processes of one id where no control group counts them; 0 means none
	Filter    []byte   // what Filter returned; nil for its being assembled here
	Switches  Switches
}

// DefaultWalls are the walls around the view of package view.
func DefaultWalls(mapped bool) Walls {
	return Walls{
		Mapped:   mapped,
		Writable: []string{"/work", "/tmp", "/dev/shm", "/run/forgeyard/secrets"},
		Devices:  []string{"/dev"},
	}
}

// The defences of this package, by the names that Switches knows them by.
const (
	DefenceLimits         = "limits"
	DefenceUndumpable     = "undumpable"   // pid 1's memory and descriptors are not for its id
	DefenceCapabilities   = "capabilities" // bounding, ambient and inheritable sets empty
	DefenceNoNewPrivs     = "no-new-privs"
	DefenceLandlock       = "landlock"
	DefenceLandlockScopes = "landlock-scopes"
	DefenceSeccomp        = "seccomp"
)

// Defences lists them, in the order in which they are built.
func Defences() []string {
	return []string{
		DefenceLimits, DefenceUndumpable, DefenceCapabilities, DefenceNoNewPrivs, DefenceLandlock, DefenceLandlockScopes,
		DefenceSeccomp,
	}
}
