package forge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// fullSpec uses every field of a specification.
func fullSpec() forge.JobSpec {
	s := forge.DefaultJobSpec()
	s.Project, s.Job = "acme/site", "test"
	s.Leg = forge.Leg{{Axis: "go", Value: "1.26"}, {Axis: "os", Value: "linux"}}
	s.Steps = []forge.Step{
		{
			ID: "unit", Name: "Unit tests", Script: "go test ./...", Shell: []string{"bash", "-c"}, Dir: "source",
			Env: []forge.EnvVar{{Name: "GOFLAGS", Value: "-count=1"}}, Timeout: time.Minute, When: forge.WhenSuccess,
			AllowFailure: forge.AllowFailure{ExitCodes: []uint8{1, 42}},
		},
		{Argv: []string{"make", "report"}, Dir: "source/sub", When: forge.WhenAlways, AllowFailure: forge.AllowFailure{Any: true}},
	}
	s.Env = []forge.EnvVar{{Name: "CGO_ENABLED", Value: "0"}}
	s.Secrets = []forge.SecretUse{
		{Env: "TOKEN", Ref: forge.SecretRef{Name: "codecov/token"}},
		{File: "key.pem", Ref: forge.SecretRef{Name: "deploy", Version: 3}},
	}
	tree := forge.TreeRef{Root: digest.RefOf([]byte("tree")), Files: 3, Bytes: 77, Depth: 2}
	s.Inputs = []forge.Input{
		{Mount: "source", Tree: tree, Mode: forge.InputCopyOnWrite},
		{Mount: "needs/build/dist", Tree: tree, Mode: forge.InputReadOnly},
	}
	s.Outputs = []forge.Output{{
		Name: "report", Base: "source", Patterns: []string{"out/**", "!out/tmp/"}, Required: true,
		When: forge.WhenAlways, MaxBytes: forge.GiB, MaxFiles: 1000,
	}}
	s.Caches = []forge.Cache{{Key: "go-1", Paths: []string{"home/.cache"}, Fallback: []string{"go-"}, ReadOnly: true}}
	s.Sandbox.Levels = []string{"userns", "seccomp"}
	s.Constraints = forge.Constraints{
		OS: "linux", Arch: "amd64", Labels: []string{"site=berlin"}, Pool: "builders", Trust: forge.TrustTrusted,
		Devices: []forge.DeviceCount{{Kind: "gpu", Count: 1}}, Toolchains: []forge.ToolchainNeed{{ID: "go", Version: "1.26"}},
	}
	s.Retry = forge.RetryPolicy{Max: 2, On: []forge.RetryWord{forge.RetryExit, forge.RetryOOM}, ExitCodes: []uint8{137}, Infra: 1}
	return s
}

// paths returns where the problems of an error are; it fails the test for an error of another kind.
func paths(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var problems forge.Problems
	if !errors.As(err, &problems) || !errors.Is(err, forge.ErrInvalid) {
		t.Fatalf("%v is no list of problems", err)
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.Path)
	}
	return all
}

func TestAFullSpecAndAMinimalOneAreValid(t *testing.T) {
	full := fullSpec()
	if err := full.Validate(); err != nil {
		t.Error(err)
	}
	least := forge.DefaultJobSpec()
	least.Job = "build"
	least.Steps = []forge.Step{{Argv: []string{"make"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	if err := least.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefaultsLeaveOnlyWhatTheAuthorMustSay(t *testing.T) {
	spec := forge.DefaultJobSpec()
	if diff := cmp.Diff([]string{"job", "steps"}, paths(t, spec.Validate())); diff != "" {
		t.Error(diff)
	}
}

func list[T any](n int, item func(i int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = item(i)
	}
	return all
}

func numbered(prefix string) func(int) string {
	return func(i int) string { return fmt.Sprintf("%s%d", prefix, i) }
}

func codes(n int) []uint8 { return list(n, func(i int) uint8 { return uint8(i + 1) }) }

func variables(n int) []forge.EnvVar {
	return list(n, func(i int) forge.EnvVar { return forge.EnvVar{Name: fmt.Sprintf("V%d", i)} })
}

// Each bound of the specification: at most n is good, n+1 is one problem at the path.
func TestEveryBoundOfASpecHoldsAtItAndNotOnePastIt(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, bound := range []struct {
		path string
		most int
		set  func(s *forge.JobSpec, n int)
	}{
		{"project", forge.MaxRefName, func(s *forge.JobSpec, n int) { s.Project = forge.ProjectName(x(n)) }},
		{"job", forge.MaxName, func(s *forge.JobSpec, n int) { s.Job = forge.JobKey(x(n)) }},
		{"leg", forge.MaxAxes, func(s *forge.JobSpec, n int) {
			s.Leg = list(n, func(i int) forge.AxisValue { return forge.AxisValue{Axis: fmt.Sprint(i)} })
		}},
		{"leg[0].axis", forge.MaxName, func(s *forge.JobSpec, n int) { s.Leg[0].Axis = x(n) }},
		{"leg[0].value", forge.MaxTitle, func(s *forge.JobSpec, n int) { s.Leg[0].Value = x(n) }},
		{"steps", forge.MaxSteps, func(s *forge.JobSpec, n int) {
			s.Steps = list(n, func(int) forge.Step { return s.Steps[1] })
		}},
		{"steps[0].id", forge.MaxName, func(s *forge.JobSpec, n int) { s.Steps[0].ID = x(n) }},
		{"steps[0].name", forge.MaxTitle, func(s *forge.JobSpec, n int) { s.Steps[0].Name = x(n) }},
		{"steps[0].script", forge.MaxScript, func(s *forge.JobSpec, n int) { s.Steps[0].Script = x(n) }},
		{"steps[0].shell", forge.MaxArgs, func(s *forge.JobSpec, n int) { s.Steps[0].Shell = list(n, numbered("a")) }},
		{"steps[0].shell[1]", forge.MaxArg, func(s *forge.JobSpec, n int) { s.Steps[0].Shell[1] = x(n) }},
		{"steps[1].argv", forge.MaxArgs, func(s *forge.JobSpec, n int) { s.Steps[1].Argv = list(n, numbered("a")) }},
		{"steps[1].argv[1]", forge.MaxArg, func(s *forge.JobSpec, n int) { s.Steps[1].Argv[1] = x(n) }},
		{"steps[0].dir", forge.MaxPath, func(s *forge.JobSpec, n int) { s.Steps[0].Dir = x(n) }},
		{"steps[0].env", forge.MaxEnv, func(s *forge.JobSpec, n int) { s.Steps[0].Env = variables(n) }},
		{"steps[0].env[0].name", 256, func(s *forge.JobSpec, n int) { s.Steps[0].Env[0].Name = x(n) }},
		{"steps[0].env[0].value", forge.MaxEnvValue, func(s *forge.JobSpec, n int) { s.Steps[0].Env[0].Value = x(n) }},
		{"steps[0].allow_failure.exit_codes", forge.MaxExitCodes, func(s *forge.JobSpec, n int) { s.Steps[0].AllowFailure.ExitCodes = codes(n) }},
		{"env", forge.MaxEnv, func(s *forge.JobSpec, n int) { s.Env = variables(n) }},
		{"secrets", forge.MaxSecrets, func(s *forge.JobSpec, n int) {
			s.Secrets = list(n, func(i int) forge.SecretUse {
				return forge.SecretUse{File: fmt.Sprint(i), Ref: forge.SecretRef{Name: "a"}}
			})
		}},
		{"secrets[0].ref.name", forge.MaxRefName, func(s *forge.JobSpec, n int) { s.Secrets[0].Ref.Name = x(n) }},
		{"secrets[0].env", 256, func(s *forge.JobSpec, n int) { s.Secrets[0].Env = x(n) }},
		{"secrets[1].file", forge.MaxName, func(s *forge.JobSpec, n int) { s.Secrets[1].File = x(n) }},
		{"inputs", forge.MaxInputs, func(s *forge.JobSpec, n int) {
			s.Inputs = list(n, func(i int) forge.Input {
				return forge.Input{Mount: fmt.Sprint(i), Tree: s.Inputs[0].Tree, Mode: forge.InputReadOnly}
			})
		}},
		{"inputs[0].mount", forge.MaxPath, func(s *forge.JobSpec, n int) { s.Inputs[0].Mount = x(n) }},
		{"inputs[0].tree.files", forge.MaxTreeFiles, func(s *forge.JobSpec, n int) { s.Inputs[0].Tree.Files = uint64(n) }},
		{"inputs[0].tree.bytes", int(forge.MaxTreeBytes), func(s *forge.JobSpec, n int) { s.Inputs[0].Tree.Bytes = forge.Bytes(n) }},
		{"inputs[0].tree.depth", forge.MaxTreeDepth, func(s *forge.JobSpec, n int) { s.Inputs[0].Tree.Depth = uint16(n) }},
		{"outputs", forge.MaxOutputs, func(s *forge.JobSpec, n int) {
			s.Outputs = list(n, func(i int) forge.Output { o := s.Outputs[0]; o.Name = fmt.Sprint(i); return o })
		}},
		{"outputs[0].name", forge.MaxName, func(s *forge.JobSpec, n int) { s.Outputs[0].Name = x(n) }},
		{"outputs[0].base", forge.MaxPath, func(s *forge.JobSpec, n int) { s.Outputs[0].Base = x(n) }},
		{"outputs[0].patterns", forge.MaxPatterns, func(s *forge.JobSpec, n int) { s.Outputs[0].Patterns = list(n, numbered("p")) }},
		{"outputs[0].patterns[0]", forge.MaxPath, func(s *forge.JobSpec, n int) { s.Outputs[0].Patterns[0] = x(n) }},
		{"outputs[0].max_bytes", int(forge.MaxOutputBytes), func(s *forge.JobSpec, n int) { s.Outputs[0].MaxBytes = forge.Bytes(n) }},
		{"outputs[0].max_files", forge.MaxOutputFiles, func(s *forge.JobSpec, n int) { s.Outputs[0].MaxFiles = uint32(n) }},
		{"caches", forge.MaxCaches, func(s *forge.JobSpec, n int) {
			s.Caches = list(n, func(i int) forge.Cache { return forge.Cache{Key: fmt.Sprint(i), Paths: []string{"home"}} })
		}},
		{"caches[0].key", forge.MaxCacheKey, func(s *forge.JobSpec, n int) { s.Caches[0].Key = x(n) }},
		{"caches[0].paths", forge.MaxCachePaths, func(s *forge.JobSpec, n int) { s.Caches[0].Paths = list(n, numbered("p")) }},
		{"caches[0].fallback", forge.MaxFallbacks, func(s *forge.JobSpec, n int) { s.Caches[0].Fallback = list(n, numbered("k")) }},
		{"caches[0].fallback[0]", forge.MaxCacheKey, func(s *forge.JobSpec, n int) { s.Caches[0].Fallback[0] = x(n) }},
		{"resources.cpu", int(forge.MaxCPU), func(s *forge.JobSpec, n int) { s.Resources.CPU = forge.MilliCPU(n) }},
		{"resources.memory", int(forge.MaxMemory), func(s *forge.JobSpec, n int) { s.Resources.Memory = forge.Bytes(n) }},
		{"resources.disk", int(forge.MaxDisk), func(s *forge.JobSpec, n int) { s.Resources.Disk = forge.Bytes(n) }},
		{"resources.slots", int(forge.MaxSlots), func(s *forge.JobSpec, n int) { s.Resources.Slots = uint32(n) }},
		{"processes", forge.MaxProcesses, func(s *forge.JobSpec, n int) { s.Processes = uint32(n) }},
		{"log_limit", int(forge.MaxLogLimit), func(s *forge.JobSpec, n int) { s.LogLimit = forge.Bytes(n) }},
		{"sandbox.levels", forge.MaxSandboxLevels, func(s *forge.JobSpec, n int) { s.Sandbox.Levels = list(n, numbered("l")) }},
		{"sandbox.levels[0]", forge.MaxName, func(s *forge.JobSpec, n int) { s.Sandbox.Levels[0] = x(n) }},
		{"constraints.os", forge.MaxName, func(s *forge.JobSpec, n int) { s.Constraints.OS = x(n) }},
		{"constraints.arch", forge.MaxName, func(s *forge.JobSpec, n int) { s.Constraints.Arch = x(n) }},
		{"constraints.pool", forge.MaxName, func(s *forge.JobSpec, n int) { s.Constraints.Pool = x(n) }},
		{"constraints.labels", forge.MaxLabels, func(s *forge.JobSpec, n int) { s.Constraints.Labels = list(n, numbered("l")) }},
		{"constraints.labels[0]", forge.MaxName, func(s *forge.JobSpec, n int) { s.Constraints.Labels[0] = x(n) }},
		{"constraints.devices", forge.MaxDevices, func(s *forge.JobSpec, n int) {
			s.Constraints.Devices = list(n, func(i int) forge.DeviceCount { return forge.DeviceCount{Kind: fmt.Sprint(i), Count: 1} })
		}},
		{"constraints.devices[0].count", forge.MaxDeviceCount, func(s *forge.JobSpec, n int) { s.Constraints.Devices[0].Count = uint16(n) }},
		{"constraints.toolchains", forge.MaxToolchainNeeds, func(s *forge.JobSpec, n int) {
			s.Constraints.Toolchains = list(n, func(i int) forge.ToolchainNeed { return forge.ToolchainNeed{ID: fmt.Sprint(i)} })
		}},
		{"retry.max", forge.MaxRetries, func(s *forge.JobSpec, n int) { s.Retry.Max = uint8(n) }},
		{"retry.infra", forge.MaxRetries, func(s *forge.JobSpec, n int) { s.Retry.Infra = uint8(n) }},
		{"retry.exit_codes", forge.MaxExitCodes, func(s *forge.JobSpec, n int) { s.Retry.ExitCodes = codes(n) }},
	} {
		t.Run(bound.path, func(t *testing.T) {
			at, past := fullSpec(), fullSpec()
			bound.set(&at, bound.most)
			bound.set(&past, bound.most+1)
			if got := paths(t, at.Validate()); got != nil {
				t.Errorf("at the bound of %d: problems at %v", bound.most, got)
			}
			if diff := cmp.Diff([]string{bound.path}, paths(t, past.Validate())); diff != "" {
				t.Errorf("one past the bound of %d: %s", bound.most, diff)
			}
		})
	}
}

func TestEveryTimeoutIsPositiveWholeAndBounded(t *testing.T) {
	for _, timeout := range []struct {
		path string
		most time.Duration
		of   func(*forge.JobSpec) *time.Duration
	}{
		{"timeouts.prepare", forge.MaxPhaseTimeout, func(s *forge.JobSpec) *time.Duration { return &s.Timeouts.Prepare }},
		{"timeouts.run", forge.MaxRunTimeout, func(s *forge.JobSpec) *time.Duration { return &s.Timeouts.Run }},
		{"timeouts.upload", forge.MaxPhaseTimeout, func(s *forge.JobSpec) *time.Duration { return &s.Timeouts.Upload }},
		{"timeouts.grace", forge.MaxGrace, func(s *forge.JobSpec) *time.Duration { return &s.Timeouts.Grace }},
		{"connectivity.extra", forge.MaxOffline, func(s *forge.JobSpec) *time.Duration { return &s.Connectivity.Extra }},
		{"steps[0].timeout", forge.MaxRunTimeout, func(s *forge.JobSpec) *time.Duration { return &s.Steps[0].Timeout }},
	} {
		t.Run(timeout.path, func(t *testing.T) {
			for _, good := range []time.Duration{time.Millisecond, 3 * time.Second, timeout.most} {
				spec := fullSpec()
				*timeout.of(&spec) = good
				if got := paths(t, spec.Validate()); got != nil {
					t.Errorf("%v: problems at %v", good, got)
				}
			}
			bad := []time.Duration{-1, -time.Second, time.Microsecond, timeout.most + time.Millisecond, time.Second + 1, 9e9 * time.Second}
			if timeout.path != "steps[0].timeout" {
				bad = append(bad, 0) // of a step it means that only the job's counts
			}
			for _, d := range bad {
				spec := fullSpec()
				*timeout.of(&spec) = d
				if diff := cmp.Diff([]string{timeout.path}, paths(t, spec.Validate())); diff != "" {
					t.Errorf("%v: %s", d, diff)
				}
			}
		})
	}
}

func TestWhatIsWrongWithASpecIsNamedByItsPlace(t *testing.T) {
	for _, test := range []struct {
		path  string
		spoil func(*forge.JobSpec)
	}{
		{"project", func(s *forge.JobSpec) { s.Project = "a//b" }},
		{"project", func(s *forge.JobSpec) { s.Project = "" }},
		{"job", func(s *forge.JobSpec) { s.Job = "../x" }},
		{"job", func(s *forge.JobSpec) { s.Job = "-x" }},
		{"leg[1]", func(s *forge.JobSpec) { s.Leg[1].Axis = s.Leg[0].Axis }},
		{"leg[0].value", func(s *forge.JobSpec) { s.Leg[0].Value = "a\nb" }},
		{"steps", func(s *forge.JobSpec) { s.Steps = nil }},
		{"steps[1]", func(s *forge.JobSpec) { s.Steps[1].ID = s.Steps[0].ID }},
		{"steps[1]", func(s *forge.JobSpec) { s.Steps[1].Script = "true" }},
		{"steps[1]", func(s *forge.JobSpec) { s.Steps[1].Shell = []string{"sh"} }},
		{"steps[1]", func(s *forge.JobSpec) { s.Steps[1].Argv = nil }},
		{"steps[0]", func(s *forge.JobSpec) { s.Steps[0].Script = "" }},
		{"steps[0].shell", func(s *forge.JobSpec) { s.Steps[0].Shell = nil }},
		{"steps[1].argv", func(s *forge.JobSpec) { s.Steps[1].Argv[0] = "" }},
		{"steps[1].argv[1]", func(s *forge.JobSpec) { s.Steps[1].Argv[1] = "a\x00b" }},
		{"steps[0].script", func(s *forge.JobSpec) { s.Steps[0].Script = "\xff" }},
		{"steps[0].dir", func(s *forge.JobSpec) { s.Steps[0].Dir = "" }},
		{"steps[0].dir", func(s *forge.JobSpec) { s.Steps[0].Dir = "/etc" }},
		{"steps[0].dir", func(s *forge.JobSpec) { s.Steps[0].Dir = ".." }},
		{"steps[0].dir", func(s *forge.JobSpec) { s.Steps[0].Dir = "source/../../etc" }},
		{"steps[0].dir", func(s *forge.JobSpec) { s.Steps[0].Dir = `source\..` }},
		{"steps[0].env[0].name", func(s *forge.JobSpec) { s.Steps[0].Env[0].Name = "1A" }},
		{"steps[0].env[0].name", func(s *forge.JobSpec) { s.Steps[0].Env[0].Name = "A-B" }},
		{"steps[0].env[0].name", func(s *forge.JobSpec) { s.Steps[0].Env[0].Name = "FORGEYARD_RUN" }},
		{"steps[0].when", func(s *forge.JobSpec) { s.Steps[0].When = 0 }},
		{"steps[0].when", func(s *forge.JobSpec) { s.Steps[0].When = forge.WhenNever + 1 }},
		{"steps[0].allow_failure.exit_codes[0]", func(s *forge.JobSpec) { s.Steps[0].AllowFailure.ExitCodes[0] = 0 }},
		{"steps[0].allow_failure.exit_codes[1]", func(s *forge.JobSpec) { s.Steps[0].AllowFailure.ExitCodes[1] = 1 }},
		{"steps[0].allow_failure", func(s *forge.JobSpec) { s.Steps[0].AllowFailure.Any = true }},
		{"env[1]", func(s *forge.JobSpec) { s.Env = append(s.Env, s.Env[0]) }},
		{"env[0].value", func(s *forge.JobSpec) { s.Env[0].Value = "\x00" }},
		{"secrets[0]", func(s *forge.JobSpec) { s.Secrets[0].Env = "" }},
		{"secrets[0]", func(s *forge.JobSpec) { s.Secrets[0].File = "f" }},
		{"secrets[0].env", func(s *forge.JobSpec) { s.Secrets[0].Env = s.Env[0].Name }},
		{"secrets[1].file", func(s *forge.JobSpec) { s.Secrets[1].File = "../key" }},
		{"secrets[2]", func(s *forge.JobSpec) { s.Secrets = append(s.Secrets, s.Secrets[1]) }},
		{"secrets[0].ref.name", func(s *forge.JobSpec) { s.Secrets[0].Ref.Name = "a/" }},
		{"inputs[0].mount", func(s *forge.JobSpec) { s.Inputs[0].Mount = "/source" }},
		{"inputs[1].mount", func(s *forge.JobSpec) { s.Inputs[1].Mount = "source/vendor" }},
		{"inputs[1].mount", func(s *forge.JobSpec) { s.Inputs[0].Mount, s.Inputs[1].Mount = "a/b", "a" }},
		{"inputs[0].tree.root", func(s *forge.JobSpec) { s.Inputs[0].Tree.Root = digest.Ref{} }},
		{"inputs[0].mode", func(s *forge.JobSpec) { s.Inputs[0].Mode = 0 }},
		{"outputs[1]", func(s *forge.JobSpec) { s.Outputs = append(s.Outputs, s.Outputs[0]) }},
		{"outputs[0].base", func(s *forge.JobSpec) { s.Outputs[0].Base = "../x" }},
		{"outputs[0].patterns", func(s *forge.JobSpec) { s.Outputs[0].Patterns = nil }},
		{"outputs[0].patterns", func(s *forge.JobSpec) { s.Outputs[0].Patterns = []string{"!a"} }},
		{"outputs[0].patterns[0]", func(s *forge.JobSpec) { s.Outputs[0].Patterns[0] = "/etc/passwd" }},
		{"outputs[0].patterns[0]", func(s *forge.JobSpec) { s.Outputs[0].Patterns[0] = "../x" }},
		{"outputs[0].patterns[0]", func(s *forge.JobSpec) { s.Outputs[0].Patterns[0] = "a/../../x" }},
		{"outputs[0].patterns[1]", func(s *forge.JobSpec) { s.Outputs[0].Patterns[1] = "!" }},
		{"outputs[0].when", func(s *forge.JobSpec) { s.Outputs[0].When = forge.WhenNever }},
		{"outputs[0].max_bytes", func(s *forge.JobSpec) { s.Outputs[0].MaxBytes = 0 }},
		{"outputs[0].max_files", func(s *forge.JobSpec) { s.Outputs[0].MaxFiles = 0 }},
		{"caches[0].key", func(s *forge.JobSpec) { s.Caches[0].Key = "" }},
		{"caches[0].paths", func(s *forge.JobSpec) { s.Caches[0].Paths = nil }},
		{"caches[0].paths[0]", func(s *forge.JobSpec) { s.Caches[0].Paths[0] = "~/x/.." }},
		{"caches[1]", func(s *forge.JobSpec) { s.Caches = append(s.Caches, s.Caches[0]) }},
		{"resources.cpu", func(s *forge.JobSpec) { s.Resources.CPU = 0 }},
		{"resources.memory", func(s *forge.JobSpec) { s.Resources.Memory = 0 }},
		{"resources.disk", func(s *forge.JobSpec) { s.Resources.Disk = 0 }},
		{"resources.slots", func(s *forge.JobSpec) { s.Resources.Slots = 0 }},
		{"processes", func(s *forge.JobSpec) { s.Processes = 0 }},
		{"log_limit", func(s *forge.JobSpec) { s.LogLimit = forge.MinLogLimit - 1 }},
		{"network", func(s *forge.JobSpec) { s.Network = 3 }},
		{"sandbox.kind", func(s *forge.JobSpec) { s.Sandbox.Kind = 0 }},
		{"sandbox.image", func(s *forge.JobSpec) { s.Sandbox.Image = "debian:12" }},
		{"sandbox.image", func(s *forge.JobSpec) { s.Sandbox.Kind, s.Sandbox.Image = forge.SandboxOCI, "debian:12" }},
		{"constraints.pool", func(s *forge.JobSpec) { s.Constraints.Pool = "" }},
		{"constraints.trust", func(s *forge.JobSpec) { s.Constraints.Trust = 0 }},
		{"constraints.labels[1]", func(s *forge.JobSpec) { s.Constraints.Labels = []string{"a", "a"} }},
		{"constraints.devices[0].count", func(s *forge.JobSpec) { s.Constraints.Devices[0].Count = 0 }},
		{"constraints.toolchains[0].id", func(s *forge.JobSpec) { s.Constraints.Toolchains[0].ID = "" }},
		{"connectivity.mode", func(s *forge.JobSpec) { s.Connectivity.Mode = 0 }},
		{"connectivity.extra", func(s *forge.JobSpec) { s.Connectivity.Mode = forge.Continuous }},
		{"retry.on[0]", func(s *forge.JobSpec) { s.Retry.On[0] = forge.RetryNever; s.Retry.ExitCodes = nil }},
		{"retry.on[1]", func(s *forge.JobSpec) { s.Retry.On[1] = forge.RetryInfra }},
		{"retry.on[1]", func(s *forge.JobSpec) { s.Retry.On[1] = s.Retry.On[0] }},
		{"retry.exit_codes", func(s *forge.JobSpec) { s.Retry.On = nil }},
	} {
		spec := fullSpec()
		test.spoil(&spec)
		if diff := cmp.Diff([]string{test.path}, paths(t, spec.Validate())); diff != "" {
			t.Errorf("%v: %s", spec.Validate(), diff)
		}
	}
}

func TestAPinnedImageIsGoodForAnOCISandboxOnly(t *testing.T) {
	spec := fullSpec()
	spec.Sandbox.Kind = forge.SandboxOCI
	spec.Sandbox.Image = "registry.example:5000/debian:12@sha256:" + strings.Repeat("0a", 32)
	if err := spec.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAllProblemsOfASpecAreReportedAtOnceAndTheirNumberIsBounded(t *testing.T) {
	spec := fullSpec()
	spec.Job, spec.Steps[0].Dir, spec.Timeouts.Run = "", "..", 0
	if diff := cmp.Diff([]string{"job", "steps[0].dir", "timeouts.run"}, paths(t, spec.Validate())); diff != "" {
		t.Error(diff)
	}
	spec.Env = list(forge.MaxEnv, func(int) forge.EnvVar { return forge.EnvVar{Name: strings.Repeat("-", 1<<20)} })
	err := spec.Validate()
	if n := len(paths(t, err)); n != 64 {
		t.Errorf("%d problems are listed, not 64", n)
	}
	if len(err.Error()) > 64*300 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestTheLongestLifeIsThatOfAllPhasesAndGraces(t *testing.T) {
	spec := fullSpec()
	spec.Timeouts = forge.Timeouts{Prepare: 1 * time.Second, Run: 20 * time.Second, Upload: 300 * time.Second, Grace: 4000 * time.Second}
	spec.Connectivity = forge.ConnectivityPolicy{Mode: forge.GracePeriod, Extra: 50000 * time.Second}
	if got, want := spec.MaxLifetime(), 54321*time.Second; got != want {
		t.Errorf("MaxLifetime = %v, want %v", got, want)
	}
}
