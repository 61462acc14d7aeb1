package jobspec

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// each converts a list. An empty one becomes nil, as the decoder of Postcard leaves it.
func each[A, B any](from []A, convert func(*A) B) []B {
	if len(from) == 0 {
		return nil
	}
	to := make([]B, len(from))
	for i := range from {
		to[i] = convert(&from[i])
	}
	return to
}

// millis takes a duration that was validated: positive or zero, and in whole milliseconds.
func millis(d time.Duration) uint64 { return uint64(d / time.Millisecond) }

func toWire(s *forge.JobSpec) *SpecV1 {
	return &SpecV1{
		Version:      Version,
		Project:      string(s.Project),
		Job:          string(s.Job),
		Leg:          each(s.Leg, func(v *forge.AxisValue) AxisV1 { return AxisV1(*v) }),
		Steps:        each(s.Steps, stepToWire),
		Env:          each(s.Env, varToWire),
		Secrets:      each(s.Secrets, secretToWire),
		Inputs:       each(s.Inputs, inputToWire),
		Outputs:      each(s.Outputs, outputToWire),
		Caches:       each(s.Caches, func(c *forge.Cache) CacheV1 { return CacheV1(*c) }),
		Resources:    resourcesToWire(s.Resources),
		Processes:    s.Processes,
		Network:      uint8(s.Network),
		Sandbox:      SandboxV1{uint8(s.Sandbox.Kind), s.Sandbox.Levels, s.Sandbox.Image},
		Constraints:  constraintsToWire(&s.Constraints),
		Timeouts:     timeoutsToWire(s.Timeouts),
		Connectivity: ConnectivityV1{uint8(s.Connectivity.Mode), millis(s.Connectivity.Extra)},
		LogLimit:     uint64(s.LogLimit),
		Retry:        retryToWire(s.Retry),
	}
}

func varToWire(v *forge.EnvVar) VarV1 { return VarV1(*v) }

func stepToWire(s *forge.Step) StepV1 {
	wire := StepV1{
		ID:           s.ID,
		Name:         s.Name,
		Dir:          s.Dir,
		Env:          each(s.Env, varToWire),
		When:         uint8(s.When),
		AllowFailure: AllowFailureV1(s.AllowFailure),
	}
	if len(s.Argv) > 0 {
		wire.Program.Argv = &ArgvV1{s.Argv}
	} else {
		wire.Program.Script = &ScriptV1{s.Script, s.Shell}
	}
	if s.Timeout != 0 {
		timeout := millis(s.Timeout)
		wire.Timeout = &timeout
	}
	return wire
}

func secretToWire(s *forge.SecretUse) SecretV1 {
	wire := SecretV1{Name: s.Ref.Name, Version: s.Ref.Version}
	if s.File != "" {
		wire.Target.File = &s.File
	} else {
		wire.Target.Env = &s.Env
	}
	return wire
}

func inputToWire(in *forge.Input) InputV1 {
	return InputV1{
		Mount: in.Mount,
		Tree: TreeV1{
			Digest: in.Tree.Root.Digest, RootBytes: in.Tree.Root.Bytes,
			Files: in.Tree.Files, Bytes: uint64(in.Tree.Bytes), Depth: in.Tree.Depth,
		},
		Mode: uint8(in.Mode),
	}
}

func outputToWire(out *forge.Output) OutputV1 {
	return OutputV1{
		Name: out.Name, Base: out.Base, Patterns: out.Patterns, Required: out.Required,
		When: uint8(out.When), MaxBytes: uint64(out.MaxBytes), MaxFiles: out.MaxFiles,
	}
}

func resourcesToWire(r forge.Resources) ResourcesV1 {
	return ResourcesV1{uint64(r.CPU), uint64(r.Memory), uint64(r.Disk), r.Slots}
}

func constraintsToWire(c *forge.Constraints) ConstraintsV1 {
	return ConstraintsV1{
		OS: c.OS, Arch: c.Arch, Labels: c.Labels, Pool: c.Pool, Trust: uint8(c.Trust),
		Devices:    each(c.Devices, func(d *forge.DeviceCount) DeviceV1 { return DeviceV1(*d) }),
		Toolchains: each(c.Toolchains, func(t *forge.ToolchainNeed) ToolchainV1 { return ToolchainV1(*t) }),
	}
}

func timeoutsToWire(t forge.Timeouts) TimeoutsV1 {
	return TimeoutsV1{millis(t.Prepare), millis(t.Run), millis(t.Upload), millis(t.Grace)}
}

func retryToWire(r forge.RetryPolicy) RetryV1 {
	return RetryV1{
		Max: r.Max, On: each(r.On, func(w *forge.RetryWord) uint8 { return uint8(*w) }),
		ExitCodes: r.ExitCodes, Infra: r.Infra,
	}
}
