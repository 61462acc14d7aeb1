package api

import (
	"github.com/forgeyard/forgeyard/internal/forge"
)

// SpecOf writes a specification as JSON, with every default spelled out. Forge turns it back into the same, but for the
// order of variables.
func SpecOf(s *forge.JobSpec) *JobSpec {
	out := &JobSpec{
		Env: envOf(s.Env), Resources: ResourcesOf(s.Resources), Processes: &s.Processes, Network: s.Network.String(),
		Sandbox: &Sandbox{Kind: s.Sandbox.Kind.String(), Levels: s.Sandbox.Levels, Image: s.Sandbox.Image},
		Timeouts: &Timeouts{
			Prepare: (*Duration)(&s.Timeouts.Prepare), Run: (*Duration)(&s.Timeouts.Run),
			Upload: (*Duration)(&s.Timeouts.Upload), Grace: (*Duration)(&s.Timeouts.Grace),
		},
		Connectivity: &Connectivity{Mode: s.Connectivity.Mode.String(), Extra: (*Duration)(&s.Connectivity.Extra)},
		LogLimit:     (*Size)(&s.LogLimit),
		Retry:        &Retry{Max: &s.Retry.Max, ExitCodes: codesOf(s.Retry.ExitCodes), Infra: &s.Retry.Infra},
		Constraints:  constraintsOf(&s.Constraints),
	}
	for _, w := range s.Retry.On {
		out.Retry.On = append(out.Retry.On, retryWord(w))
	}
	for i := range s.Steps {
		out.Steps = append(out.Steps, stepOf(&s.Steps[i]))
	}
	filesOf(out, s)
	return out
}

// retryWord spells a reason of the kind that an author may list.
func retryWord(w forge.RetryWord) string {
	switch w {
	case forge.RetryExit:
		return "exit"
	case forge.RetrySignal:
		return "signal"
	case forge.RetryTimeout:
		return "timeout"
	case forge.RetryOOM:
		return "oom"
	}
	return ""
}

func codesOf(list []uint8) []ExitCode {
	var out []ExitCode
	for _, code := range list {
		out = append(out, ExitCode(code))
	}
	return out
}

func envOf(list []forge.EnvVar) map[string]string {
	if len(list) == 0 {
		return nil
	}
	env := make(map[string]string, len(list))
	for _, v := range list {
		env[v.Name] = v.Value
	}
	return env
}

// ResourcesOf writes an amount of resources.
func ResourcesOf(r forge.Resources) *Resources {
	return &Resources{CPU: (*Cores)(&r.CPU), Memory: (*Size)(&r.Memory), Disk: (*Size)(&r.Disk), Slots: &r.Slots}
}

func stepOf(s *forge.Step) Step {
	out := Step{
		ID: s.ID, Name: s.Name, Argv: s.Argv, Script: s.Script, Shell: s.Shell, Dir: s.Dir, Env: envOf(s.Env), When: s.When.String(),
	}
	if s.Timeout != 0 {
		out.Timeout = (*Duration)(&s.Timeout)
	}
	if s.AllowFailure.Any || len(s.AllowFailure.ExitCodes) > 0 {
		out.AllowFailure = &AllowFailure{Any: s.AllowFailure.Any, ExitCodes: codesOf(s.AllowFailure.ExitCodes)}
	}
	return out
}

func constraintsOf(n *forge.Constraints) *Constraints {
	out := &Constraints{OS: n.OS, Arch: n.Arch, Labels: n.Labels, Pool: n.Pool}
	for _, d := range n.Devices {
		out.Devices = append(out.Devices, Device(d))
	}
	for _, t := range n.Toolchains {
		out.Toolchains = append(out.Toolchains, Toolchain(t))
	}
	return out
}

func filesOf(out *JobSpec, s *forge.JobSpec) {
	for _, use := range s.Secrets {
		out.Secrets = append(out.Secrets, SecretUse{Env: use.Env, File: use.File, Ref: use.Ref.String()})
	}
	for _, in := range s.Inputs {
		out.Inputs = append(out.Inputs, Input{
			Mount: in.Mount, Mode: in.Mode.String(),
			Tree: Tree{Root: in.Tree.Root.String(), Files: in.Tree.Files, Bytes: Size(in.Tree.Bytes), Depth: in.Tree.Depth},
		})
	}
	for i := range s.Outputs {
		o := &s.Outputs[i]
		out.Outputs = append(out.Outputs, Output{
			Name: o.Name, Base: o.Base, Patterns: o.Patterns, Required: o.Required, When: o.When.String(),
			MaxBytes: (*Size)(&o.MaxBytes), MaxFiles: &o.MaxFiles,
		})
	}
	for _, c := range s.Caches {
		out.Caches = append(out.Caches, Cache(c))
	}
}
