package scheduler_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func jobID(n int) forge.JobID { return forge.JobID{ULID: forge.ULID{14: byte(n >> 8), 15: byte(n)}} }

func runnerID(n int) forge.RunnerID {
	return forge.RunnerID{ULID: forge.ULID{14: byte(n >> 8), 15: byte(n)}}
}

// box is an amount of everything: n cores, GiB of memory and disk, and one slot for each.
func box(n int) forge.Resources {
	return forge.Resources{CPU: forge.MilliCPU(n) * 1000, Memory: forge.Bytes(n) * forge.GiB, Disk: forge.Bytes(n) * forge.GiB, Slots: uint32(n)}
}

// newRunner is a runner that takes any plain job.
func newRunner(n, size int) scheduler.Runner {
	return scheduler.Runner{
		Runner: forge.Runner{ID: runnerID(n), Name: fmt.Sprintf("r%d", n), Pool: forge.DefaultPool, Trust: forge.TrustTrusted},
		Capabilities: forge.Capabilities{
			SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"}, Resources: box(size),
			Sandboxes: []forge.Sandbox{{Kind: forge.SandboxNative}},
		},
		Health: forge.Healthy, Connected: true,
	}
}

// newJob is a plain job.
func newJob(n, size int, project string) scheduler.Job {
	return scheduler.Job{
		ID: jobID(n), Project: forge.ProjectName(project), Sequence: uint64(n),
		Need: forge.Need{
			Constraints: forge.Constraints{Pool: forge.DefaultPool, Trust: forge.TrustTrusted},
			Sandbox:     forge.SandboxNeed{Kind: forge.SandboxNative}, Resources: box(size),
		},
	}
}

// rarely draws true one time in n.
func rarely(t *rapid.T, what string, n int) bool { return rapid.IntRange(0, n-1).Draw(t, what) == n-1 }

func few(t *rapid.T, what string, from ...string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(s string) bool { return !rarely(t, what+" "+s, 3) })
}

func anyAmount(t *rapid.T, what string, most int) forge.Resources {
	n := rapid.IntRange(0, most)
	return forge.Resources{
		CPU: forge.MilliCPU(n.Draw(t, what+" cpu")) * 1000, Memory: forge.Bytes(n.Draw(t, what+" memory")) * forge.GiB,
		Disk: forge.Bytes(n.Draw(t, what+" disk")) * forge.GiB, Slots: uint32(n.Draw(t, what+" slots")),
	}
}

func anyDevices(t *rapid.T, what string) []forge.DeviceCount {
	if n := rapid.Uint16Range(0, 2).Draw(t, what); n > 0 && rarely(t, what+" at all", 3) {
		return []forge.DeviceCount{{Kind: "gpu", Count: n}}
	}
	return nil
}

var projects = rapid.SampledFrom([]string{"a", "b", "c"})

func anyWarm(t *rapid.T, what string) []digest.Digest {
	var roots []digest.Digest
	for _, s := range few(t, what, "x", "y") {
		roots = append(roots, digest.Of([]byte(s)))
	}
	return roots
}

func anyRunner(t *rapid.T, n int) scheduler.Runner {
	r := newRunner(n, 1)
	r.Capabilities.Resources = anyAmount(t, "size", 8)
	r.Capabilities.Labels, r.Labels = few(t, "label", "red"), few(t, "given label", "blue")
	r.Capabilities.Devices = anyDevices(t, "devices")
	r.Trust = forge.TrustClass(rapid.Uint8Range(1, 3).Draw(t, "trust"))
	if rarely(t, "other pool", 4) {
		r.Pool = "other"
	}
	if rarely(t, "reserve", 4) {
		r.Reserved = box(1)
	}
	r.Disabled, r.Draining, r.Connected = rarely(t, "disabled", 10), rarely(t, "draining", 10), !rarely(t, "away", 10)
	r.Health = forge.HealthStatus(rapid.Uint8Range(0, 3).Draw(t, "health"))
	r.Summary.Pressure = forge.ResourcePressure(rapid.SampledFrom([]uint8{0, 1, 1, 1, 1, 1, 3}).Draw(t, "pressure"))
	r.Warm = anyWarm(t, "warm")
	for range rapid.IntRange(0, 3).Draw(t, "open") {
		r.Open = append(r.Open, scheduler.Open{
			Project: forge.ProjectName(projects.Draw(t, "open project")), Resources: anyAmount(t, "open", 3), Devices: anyDevices(t, "open devices"),
		})
	}
	return r
}

func anyJob(t *rapid.T, n, runners int) scheduler.Job {
	j := newJob(n, 1, projects.Draw(t, "project"))
	j.Sequence = rapid.Uint64Range(0, 9).Draw(t, "sequence")
	j.Need.Resources = anyAmount(t, "need", 8)
	j.Need.Resources.Slots = max(j.Need.Resources.Slots, 1)
	j.Need.Constraints.Labels = few(t, "wanted label", "red", "blue")
	j.Need.Constraints.Devices = anyDevices(t, "wanted devices")
	j.Need.Constraints.Trust = forge.TrustClass(rapid.Uint8Range(1, 3).Draw(t, "wanted trust"))
	if rarely(t, "wants the other pool", 5) {
		j.Need.Constraints.Pool = "other"
	}
	j.Inputs, j.NotYet = anyWarm(t, "inputs"), rarely(t, "not yet", 8)
	if rarely(t, "was refused", 8) {
		j.Refused = []forge.RunnerID{runnerID(rapid.IntRange(0, runners).Draw(t, "by"))}
	}
	return j
}

func anySnapshot(t *rapid.T) scheduler.Snapshot {
	var s scheduler.Snapshot
	runners := rapid.IntRange(0, 6).Draw(t, "runners")
	for n := range runners {
		s.Runners = append(s.Runners, anyRunner(t, n))
	}
	for n := range rapid.IntRange(0, 12).Draw(t, "jobs") {
		s.Jobs = append(s.Jobs, anyJob(t, n, runners))
	}
	return s
}
