package jobspec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

func list[T any](n int, item func(i int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = item(i)
	}
	return all
}

func texts(n int) []string { return list(n, func(i int) string { return fmt.Sprint("t", i) }) }

func variables(n int) []forge.EnvVar {
	return list(n, func(i int) forge.EnvVar { return forge.EnvVar{Name: fmt.Sprint("V", i)} })
}

func codes(n int) []uint8 { return list(n, func(i int) uint8 { return uint8(i + 1) }) }

// Were a limit of the wire below that of the domain, a specification would be planned that cannot be written.
func TestEveryBoundOfTheDomainFitsTheWire(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for i, fill := range []func(s *forge.JobSpec){
		func(s *forge.JobSpec) {
			s.Project, s.Job = forge.ProjectName(x(forge.MaxRefName)), forge.JobKey(x(forge.MaxName))
		},
		func(s *forge.JobSpec) {
			s.Leg = list(forge.MaxAxes, func(i int) forge.AxisValue {
				return forge.AxisValue{Axis: fmt.Sprint(x(forge.MaxName-2), i+10), Value: x(forge.MaxTitle)}
			})
		},
		func(s *forge.JobSpec) { s.Steps = list(forge.MaxSteps, func(int) forge.Step { return s.Steps[1] }) },
		func(s *forge.JobSpec) {
			s.Steps[0].ID, s.Steps[0].Name, s.Steps[0].Dir = x(forge.MaxName), x(forge.MaxTitle), x(forge.MaxPath)
			s.Steps[0].Env, s.Steps[0].AllowFailure.ExitCodes = variables(forge.MaxEnv), codes(forge.MaxExitCodes)
		},
		func(s *forge.JobSpec) { s.Steps[0].Script, s.Steps[0].Shell = x(forge.MaxScript), texts(forge.MaxArgs) },
		func(s *forge.JobSpec) { s.Steps[1].Argv = texts(forge.MaxArgs); s.Steps[1].Argv[0] = x(forge.MaxArg) },
		func(s *forge.JobSpec) {
			s.Env = variables(forge.MaxEnv)
			s.Env[0] = forge.EnvVar{Name: x(256), Value: x(forge.MaxEnvValue)}
		},
		func(s *forge.JobSpec) {
			s.Secrets = list(forge.MaxSecrets, func(i int) forge.SecretUse {
				return forge.SecretUse{File: fmt.Sprint(x(forge.MaxName-2), i+10), Ref: forge.SecretRef{Name: x(forge.MaxRefName)}}
			})
			s.Secrets[0].Env, s.Secrets[0].File = x(256), ""
		},
		func(s *forge.JobSpec) {
			s.Inputs = list(forge.MaxInputs, func(i int) forge.Input {
				return forge.Input{Mount: fmt.Sprint(x(forge.MaxPath-3), i+100), Tree: s.Inputs[0].Tree, Mode: forge.InputReadOnly}
			})
		},
		func(s *forge.JobSpec) {
			s.Outputs = list(forge.MaxOutputs, func(i int) forge.Output {
				o := s.Outputs[0]
				o.Name = fmt.Sprint(x(forge.MaxName-3), i+100)
				return o
			})
			s.Outputs[0].Base, s.Outputs[0].Patterns = x(forge.MaxPath), texts(forge.MaxPatterns)
			s.Outputs[0].Patterns[1] = "!" + x(forge.MaxPath-2) + "/"
		},
		func(s *forge.JobSpec) {
			s.Caches = list(forge.MaxCaches, func(i int) forge.Cache {
				return forge.Cache{Key: fmt.Sprint(x(forge.MaxCacheKey-2), i+10), Paths: texts(forge.MaxCachePaths), Fallback: texts(forge.MaxFallbacks)}
			})
			s.Caches[0].Paths[0], s.Caches[0].Fallback[0] = x(forge.MaxPath), x(forge.MaxCacheKey)
		},
		func(s *forge.JobSpec) {
			s.Sandbox.Levels = texts(forge.MaxSandboxLevels)
			s.Sandbox.Levels[0] = x(forge.MaxName)
		},
		func(s *forge.JobSpec) {
			s.Sandbox.Kind = forge.SandboxOCI
			s.Sandbox.Image = x(forge.MaxPath-72) + "@sha256:" + strings.Repeat("0", 64)
		},
		func(s *forge.JobSpec) {
			c := &s.Constraints
			c.OS, c.Arch, c.Pool, c.Labels = x(forge.MaxName), x(forge.MaxName), x(forge.MaxName), texts(forge.MaxLabels)
			c.Labels[0] = x(forge.MaxName)
			c.Devices = list(forge.MaxDevices, func(i int) forge.DeviceCount {
				return forge.DeviceCount{Kind: fmt.Sprint(x(forge.MaxName-2), i+10), Count: forge.MaxDeviceCount}
			})
			c.Toolchains = list(forge.MaxToolchainNeeds, func(i int) forge.ToolchainNeed {
				return forge.ToolchainNeed{ID: fmt.Sprint(x(forge.MaxName-2), i+10), Version: x(forge.MaxName)}
			})
		},
		func(s *forge.JobSpec) {
			s.Retry.On = []forge.RetryWord{forge.RetryExit, forge.RetrySignal, forge.RetryTimeout, forge.RetryOOM}
			s.Retry.ExitCodes = codes(forge.MaxExitCodes)
		},
	} {
		spec := fullSpec()
		fill(&spec)
		b, err := jobspec.Encode(spec)
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		back, err := jobspec.Decode(b)
		if diff := cmp.Diff(spec, back); diff != "" || err != nil {
			t.Errorf("%d: %v %s", i, err, diff)
		}
	}
}
