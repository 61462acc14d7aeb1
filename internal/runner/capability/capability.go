// Package capability looks at the machine: what it has and can do, how much of that is free, what it is short of, and
// how well it is.
//
// Host probes; everything else computes from what a probe found, so that it can be tested without a machine that is
// ill. Nothing here is believed by a daemon beyond what an agent may say of itself (07§18): labels are hints, and there
// is no pool and no trust.
//
// It starts no goroutine that outlives a call.
package capability

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Host is a machine to look at.
type Host struct {
	Executors []executor.Executor
	Disk      func() (free, total forge.Bytes, err error) // where workspaces are
	Labels    []string                                    // as configured
	Features  []string                                    // what else this agent can do
	Slots     uint32                                      // attempts at once
	Reserve   forge.Resources                             // what the agent keeps for itself and the machine's owner
	Memory    string                                      // the file for what tools have said; none if empty
}

// Capabilities probes the machine, which takes as long as the slowest tool takes to say its version. What tools said to an earlier
// process stands for an hour, while their files stay as they were. The snapshot is in its
// canonical form, so that two probes which found the same have the same digest. An error says what could not be seen; the
// rest is there.
func (h *Host) Capabilities(ctx context.Context) (forge.Capabilities, error) {
	c, err := h.Quick()
	c.Toolchains = toolchains(ctx, h.Memory, time.Now())
	return c.Canonical(), err
}

// Quick is Capabilities without toolchains, which takes no time.
func (h *Host) Quick() (forge.Capabilities, error) {
	_, disk, err := h.Disk()
	c := forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema,
		Platform:      forge.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH, Version: line(systemVersion())},
		Resources: forge.Resources{
			CPU:    min(forge.MilliCPU(runtime.NumCPU())*1000, forge.MaxCPU),
			Memory: min(readMemory().total, forge.MaxMemory), Disk: min(disk, forge.MaxDisk), Slots: min(h.Slots, forge.MaxSlots),
		},
		Labels:   slices.Clone(h.Labels),
		Features: slices.Clone(h.Features),
	}
	for _, e := range h.Executors {
		c.Sandboxes = append(c.Sandboxes, e.Sandbox())
	}
	return c.Canonical(), err
}

// Reading is what a look at the machine has found, of what changes from minute to minute.
type Reading struct {
	Disk     forge.Bytes // free
	DiskAll  forge.Bytes
	DiskErr  error
	Pressure forge.ResourcePressure
}

// Read looks at the machine now.
func (h *Host) Read() Reading {
	var r Reading
	r.Disk, r.DiskAll, r.DiskErr = h.Disk()
	r.Pressure = pressureOf(readStalls(), readMemory(), r.Disk, r.DiskAll)
	return r
}

// Summary says what may be given to jobs: what the machine has, less the reserve, less what runs, and of the disk never
// more than is free now. Under critical pressure there is nothing.
func Summary(total, reserve, active forge.Resources, now Reading) forge.ResourceSummary {
	s := forge.ResourceSummary{
		Total: total, Reserved: reserve, Active: active, Pressure: now.Pressure,
		Free: forge.Allocatable(total, reserve, forge.Resources{}, active),
	}
	s.Free.Disk = min(s.Free.Disk, subtract(now.Disk, reserve.Disk))
	if now.Pressure == forge.PressureCritical {
		s.Free = forge.Resources{}
	}
	return s
}

func subtract(a, b forge.Bytes) forge.Bytes { return a - min(a, b) }

// line makes a text fit for one line of a snapshot.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return s[:min(len(s), 128)]
}
