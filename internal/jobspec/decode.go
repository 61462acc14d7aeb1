package jobspec

import (
	"math"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// outOfRange stands for a duration that the domain cannot express. No bound admits it, so validation refuses it where it
// stands, with the path of its field.
const outOfRange time.Duration = -1

// duration converts milliseconds.
func duration(ms uint64) time.Duration {
	if ms > math.MaxInt64/uint64(time.Millisecond) {
		return outOfRange
	}
	return time.Duration(ms) * time.Millisecond
}

// fromWire converts without judging: whatever is out of bounds stays so and is found by validation.
func fromWire(w *SpecV1) forge.JobSpec {
	return forge.JobSpec{
		Project:      forge.ProjectName(w.Project),
		Job:          forge.JobKey(w.Job),
		Leg:          each(w.Leg, func(v *AxisV1) forge.AxisValue { return forge.AxisValue(*v) }),
		Steps:        each(w.Steps, stepFromWire),
		Env:          each(w.Env, varFromWire),
		Secrets:      each(w.Secrets, secretFromWire),
		Inputs:       each(w.Inputs, inputFromWire),
		Outputs:      each(w.Outputs, outputFromWire),
		Caches:       each(w.Caches, func(c *CacheV1) forge.Cache { return forge.Cache(*c) }),
		Resources:    resourcesFromWire(w.Resources),
		Processes:    w.Processes,
		Network:      forge.Network(w.Network),
		Sandbox:      forge.SandboxNeed{Kind: forge.SandboxKind(w.Sandbox.Kind), Levels: w.Sandbox.Levels, Image: w.Sandbox.Image},
		Constraints:  constraintsFromWire(&w.Constraints),
		Timeouts:     timeoutsFromWire(w.Timeouts),
		Connectivity: connectivityFromWire(w.Connectivity),
		LogLimit:     forge.Bytes(w.LogLimit),
		Retry:        retryFromWire(w.Retry),
	}
}

func varFromWire(v *VarV1) forge.EnvVar { return forge.EnvVar(*v) }

func stepFromWire(w *StepV1) forge.Step {
	s := forge.Step{
		ID:           w.ID,
		Name:         w.Name,
		Dir:          w.Dir,
		Env:          each(w.Env, varFromWire),
		When:         forge.When(w.When),
		AllowFailure: forge.AllowFailure(w.AllowFailure),
	}
	if p := w.Program.Argv; p != nil {
		s.Argv = p.Args
	}
	if p := w.Program.Script; p != nil {
		s.Script, s.Shell = p.Text, p.Shell
	}
	if w.Timeout != nil {
		s.Timeout = duration(*w.Timeout)
		if s.Timeout == 0 {
			s.Timeout = outOfRange // a limit of zero is no way to say that there is none
		}
	}
	return s
}

func secretFromWire(w *SecretV1) forge.SecretUse {
	s := forge.SecretUse{Ref: forge.SecretRef{Name: w.Name, Version: w.Version}}
	if w.Target.Env != nil {
		s.Env = *w.Target.Env
	}
	if w.Target.File != nil {
		s.File = *w.Target.File
	}
	return s
}

func inputFromWire(w *InputV1) forge.Input {
	return forge.Input{
		Mount: w.Mount,
		Tree: forge.TreeRef{
			Root:  digest.Ref{Digest: w.Tree.Digest, Bytes: w.Tree.RootBytes},
			Files: w.Tree.Files, Bytes: forge.Bytes(w.Tree.Bytes), Depth: w.Tree.Depth,
		},
		Mode: forge.InputMode(w.Mode),
	}
}

func outputFromWire(w *OutputV1) forge.Output {
	return forge.Output{
		Name: w.Name, Base: w.Base, Patterns: w.Patterns, Required: w.Required,
		When: forge.When(w.When), MaxBytes: forge.Bytes(w.MaxBytes), MaxFiles: w.MaxFiles,
	}
}

func resourcesFromWire(w ResourcesV1) forge.Resources {
	return forge.Resources{
		CPU: forge.MilliCPU(w.CPU), Memory: forge.Bytes(w.Memory), Disk: forge.Bytes(w.Disk), Slots: w.Slots,
	}
}

func constraintsFromWire(w *ConstraintsV1) forge.Constraints {
	return forge.Constraints{
		OS: w.OS, Arch: w.Arch, Labels: w.Labels, Pool: w.Pool, Trust: forge.TrustClass(w.Trust),
		Devices:    each(w.Devices, func(d *DeviceV1) forge.DeviceCount { return forge.DeviceCount(*d) }),
		Toolchains: each(w.Toolchains, func(t *ToolchainV1) forge.ToolchainNeed { return forge.ToolchainNeed(*t) }),
	}
}

func timeoutsFromWire(w TimeoutsV1) forge.Timeouts {
	return forge.Timeouts{
		Prepare: duration(w.Prepare), Run: duration(w.Run), Upload: duration(w.Upload), Grace: duration(w.Grace),
	}
}

func connectivityFromWire(w ConnectivityV1) forge.ConnectivityPolicy {
	return forge.ConnectivityPolicy{Mode: forge.Connectivity(w.Mode), Extra: duration(w.Extra)}
}

func retryFromWire(w RetryV1) forge.RetryPolicy {
	return forge.RetryPolicy{
		Max: w.Max, On: each(w.On, func(n *uint8) forge.RetryWord { return forge.RetryWord(*n) }),
		ExitCodes: w.ExitCodes, Infra: w.Infra,
	}
}
