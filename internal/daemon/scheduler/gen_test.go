package scheduler_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// TestMain asks for more checks than rapid's hundred; -rapid.checks asks for another number.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "400"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

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

// The generator keeps most runners and jobs plain, so that they meet, and spoils each in one of many ways now and then.

// even draws a number of so many bits, each as likely as the others; rapid's own ranges prefer small ones.
func even(t *rapid.T, what string, bits int) int {
	n := 0
	for range bits {
		n *= 2
		if rapid.Bool().Draw(t, what) {
			n++
		}
	}
	return n
}

func rarely(t *rapid.T, what string) bool { return even(t, what, 4) == 15 }

func one[T any](t *rapid.T, what string, from ...T) T { return from[even(t, what, 6)%len(from)] }

// usually draws the first, and now and then one of the others.
func usually[T any](t *rapid.T, what string, first T, others ...T) T {
	if rarely(t, what+" is odd") {
		return one(t, what, others...)
	}
	return first
}

func few[T any](t *rapid.T, what string, from ...T) []T {
	var some []T
	for i, item := range from {
		if rarely(t, fmt.Sprint(what, i)) {
			some = append(some, item)
		}
	}
	return some
}

// anyAmount is mostly a box, and otherwise any shape.
func anyAmount(t *rapid.T, what string, sizes ...int) forge.Resources {
	amount := box(one(t, what, sizes...))
	if rarely(t, what+" is odd") {
		amount.CPU = forge.MilliCPU(one(t, what+" cpu", sizes...)) * 1000
		amount.Memory = forge.Bytes(one(t, what+" memory", sizes...)) * forge.GiB
		amount.Disk = forge.Bytes(one(t, what+" disk", sizes...)) * forge.GiB
		amount.Slots = uint32(one(t, what+" slots", sizes...))
	}
	return amount
}

func gpus(n uint16) []forge.DeviceCount {
	if n == 0 {
		return nil
	}
	return []forge.DeviceCount{{Kind: "gpu", Count: n}}
}

func anyProject(t *rapid.T, what string) forge.ProjectName {
	return one[forge.ProjectName](t, what, "a", "b", "c")
}

func anyRunner(t *rapid.T, n int) scheduler.Runner {
	r := newRunner(n, 1)
	r.Capabilities.Resources = anyAmount(t, "size", 2, 4, 8)
	r.Capabilities.Labels, r.Labels = few(t, "label", "red"), few(t, "given label", "blue")
	r.Capabilities.Devices = gpus(one[uint16](t, "gpus", 1, 0, 2, 0))
	r.Trust = usually(t, "trust", forge.TrustTrusted, forge.TrustUntrusted, forge.TrustProtected)
	r.Pool = usually(t, "pool", forge.DefaultPool, "other")
	r.Reserved = usually(t, "reserve", box(0), box(1))
	r.Disabled, r.Draining, r.Connected = rarely(t, "disabled"), rarely(t, "draining"), !rarely(t, "away")
	r.Health = usually(t, "health", forge.Healthy, 0, forge.Degraded, forge.Unhealthy)
	r.Summary.Pressure = usually(t, "pressure", forge.PressureNormal, 0, forge.PressureMemory, forge.PressureCPU)
	r.Warm = few(t, "warm", digest.Of([]byte("x")), digest.Of([]byte("y")))
	for range one(t, "open", 0, 0, 1, 2, 3) {
		r.Open = append(r.Open, scheduler.Open{
			Project: anyProject(t, "open project"), Resources: anyAmount(t, "open", 1, 1, 1, 3), Devices: gpus(usually[uint16](t, "open gpus", 0, 1, 2)),
		})
	}
	return r
}

func anyJob(t *rapid.T, n, runners int) scheduler.Job {
	j := newJob(n, 1, string(anyProject(t, "project")))
	j.Sequence = one[uint64](t, "sequence", 3, 1, 4, 0, 5, 2)
	j.Need.Resources = anyAmount(t, "need", 1, 1, 2, 1, 4, 8)
	c := &j.Need.Constraints
	c.Labels = few(t, "wanted label", "red", "blue")
	c.Devices = gpus(one[uint16](t, "wanted gpus", 0, 0, 0, 0, 0, 1, 2))
	c.Trust = usually(t, "wanted trust", forge.TrustTrusted, forge.TrustUntrusted, forge.TrustProtected)
	c.Pool = usually(t, "wanted pool", forge.DefaultPool, "other")
	j.Inputs, j.NotYet = few(t, "inputs", digest.Of([]byte("x")), digest.Of([]byte("y"))), rarely(t, "not yet")
	if rarely(t, "was refused") {
		j.Refused = []forge.RunnerID{runnerID(rapid.IntRange(0, runners).Draw(t, "by"))}
	}
	return j
}

func anySnapshot(t *rapid.T) scheduler.Snapshot {
	var s scheduler.Snapshot
	runners := one(t, "runners", 0, 1, 2, 3, 4, 5, 6)
	for n := range runners {
		s.Runners = append(s.Runners, anyRunner(t, n))
	}
	for n := range one(t, "jobs", 0, 1, 3, 6, 10, 12, 14, 16) {
		s.Jobs = append(s.Jobs, anyJob(t, n, runners))
	}
	return s
}
