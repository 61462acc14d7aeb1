package api

import (
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// SpecContext is the part of a specification that its author does not write into it.
type SpecContext struct {
	Project forge.ProjectName
	Key     forge.JobKey
	Leg     forge.Leg
	Trust   forge.TrustClass // of the run
	// Connectivity of a job whose author does not say; zero: that of forge.DefaultJobSpec.
	Connectivity forge.ConnectivityPolicy
}

// Forge turns the JSON into a valid specification. The error is forge.Problems with every problem that there is, its
// paths those of the JSON.
func (s *JobSpec) Forge(in SpecContext) (forge.JobSpec, error) {
	c := converter{spec: forge.DefaultJobSpec()}
	c.spec.Project, c.spec.Job, c.spec.Leg, c.spec.Constraints.Trust = in.Project, in.Key, in.Leg, in.Trust
	c.spec.Connectivity = cmp.Or(in.Connectivity, c.spec.Connectivity)
	c.steps(s.Steps)
	c.spec.Env = variables(s.Env)
	c.files(s)
	c.limits(s)
	c.place(s)
	c.policies(s)
	var found forge.Problems
	if err := c.spec.Validate(); errors.As(err, &found) {
		c.found = append(c.found, s.own(found)...)
	}
	if len(c.found) > 0 {
		return forge.JobSpec{}, c.found
	}
	return c.spec, nil
}

type converter struct {
	spec  forge.JobSpec
	found forge.Problems
}

// failed records an error of a parser at a place. Where something cannot be read, a valid value stands in for it, so that
// the validation behind finds the rest and nothing twice.
func (c *converter) failed(at string, err error) bool {
	if err == nil {
		return false
	}
	var list forge.Problems
	if !errors.As(err, &list) {
		list = forge.Problems{{What: err.Error()}}
	}
	for _, p := range list {
		c.found = append(c.found, forge.Problem{Path: join(at, p.Path), What: p.What})
	}
	return true
}

func item(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// word reads a word of an enumeration; an absent one has a default.
func word[T any](c *converter, at, text string, absent T, parse func(string) (T, error)) T {
	if text == "" {
		return absent
	}
	v, err := parse(text)
	if c.failed(at, err) {
		return absent
	}
	return v
}

// variables puts an environment into the order of its names: one environment, one specification.
func variables(env map[string]string) []forge.EnvVar {
	var list []forge.EnvVar
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, forge.EnvVar{Name: name, Value: env[name]})
	}
	return list
}

func (c *converter) steps(steps []Step) {
	for i, s := range steps {
		at := item("steps", i)
		step := forge.Step{
			ID: s.ID, Name: s.Name, Argv: s.Argv, Script: s.Script, Shell: s.Shell, Dir: s.Dir, Env: variables(s.Env),
			When: word(c, at+".when", s.When, forge.WhenSuccess, forge.ParseWhen),
		}
		if step.Dir == "" {
			step.Dir = forge.SourceDir
		}
		if s.Script != "" && len(s.Shell) == 0 {
			step.Shell = slices.Clone(DefaultShell)
		}
		if s.Timeout != nil {
			step.Timeout = time.Duration(*s.Timeout)
			if step.Timeout == 0 {
				c.found = append(c.found, forge.Problem{Path: at + ".timeout", What: "is zero; leave it out for a step without a limit of its own"})
			}
		}
		if s.AllowFailure != nil {
			step.AllowFailure = forge.AllowFailure{Any: s.AllowFailure.Any, ExitCodes: ascending[uint8](s.AllowFailure.ExitCodes)}
		}
		c.spec.Steps = append(c.spec.Steps, step)
	}
}

// ascending returns the list in order. What is there twice stays so, for the validation to find.
func ascending[T, F ~uint8](list []F) []T {
	var out []T
	for _, v := range list {
		out = append(out, T(v))
	}
	slices.Sort(out)
	return out
}

// files converts what goes in and comes out.
func (c *converter) files(s *JobSpec) {
	for i, use := range s.Secrets {
		ref, err := forge.ParseSecretRef(use.Ref)
		if c.failed(item("secrets", i)+".ref", err) {
			ref = forge.SecretRef{Name: "unreadable"}
		}
		c.spec.Secrets = append(c.spec.Secrets, forge.SecretUse{Env: use.Env, File: use.File, Ref: ref})
	}
	for i, in := range s.Inputs {
		root, err := digest.ParseRef(in.Tree.Root)
		if c.failed(item("inputs", i)+".tree.root", err) {
			root = digest.RefOf(nil)
		}
		c.spec.Inputs = append(c.spec.Inputs, forge.Input{
			Mount: in.Mount, Mode: word(c, item("inputs", i)+".mode", in.Mode, forge.InputReadOnly, forge.ParseInputMode),
			Tree: forge.TreeRef{Root: root, Files: in.Tree.Files, Bytes: forge.Bytes(in.Tree.Bytes), Depth: in.Tree.Depth},
		})
	}
	for i, out := range s.Outputs {
		o := forge.DefaultOutput()
		o.Name, o.Base, o.Patterns, o.Required = out.Name, cmp.Or(out.Base, o.Base), out.Patterns, out.Required
		o.When = word(c, item("outputs", i)+".when", out.When, o.When, forge.ParseWhen)
		set(&o.MaxBytes, out.MaxBytes)
		set(&o.MaxFiles, out.MaxFiles)
		c.spec.Outputs = append(c.spec.Outputs, o)
	}
	for _, cache := range s.Caches {
		c.spec.Caches = append(c.spec.Caches, forge.Cache(cache))
	}
}

// set overwrites a default with what was written.
func set[T, F ~uint8 | ~uint32 | ~uint64 | ~int64](field *T, written *F) {
	if written != nil {
		*field = T(*written)
	}
}

func (c *converter) limits(s *JobSpec) {
	if r := s.Resources; r != nil {
		set(&c.spec.Resources.CPU, r.CPU)
		set(&c.spec.Resources.Memory, r.Memory)
		set(&c.spec.Resources.Disk, r.Disk)
		set(&c.spec.Resources.Slots, r.Slots)
	}
	set(&c.spec.Processes, s.Processes)
	set(&c.spec.LogLimit, s.LogLimit)
	if t := s.Timeouts; t != nil {
		set(&c.spec.Timeouts.Prepare, t.Prepare)
		set(&c.spec.Timeouts.Run, t.Run)
		set(&c.spec.Timeouts.Upload, t.Upload)
		set(&c.spec.Timeouts.Grace, t.Grace)
	}
}

// place converts what decides where the job can run.
func (c *converter) place(s *JobSpec) {
	c.spec.Network = word(c, "network", s.Network, c.spec.Network, forge.ParseNetwork)
	if b := s.Sandbox; b != nil {
		kind := word(c, "sandbox.kind", b.Kind, c.spec.Sandbox.Kind, forge.ParseSandboxKind)
		c.spec.Sandbox = forge.SandboxNeed{Kind: kind, Levels: b.Levels, Image: b.Image}
	}
	n := s.Constraints
	if n == nil {
		return
	}
	to := &c.spec.Constraints
	to.OS, to.Arch, to.Labels = n.OS, n.Arch, n.Labels
	if n.Pool != "" {
		to.Pool = n.Pool
	}
	for _, d := range n.Devices {
		to.Devices = append(to.Devices, forge.DeviceCount(d))
	}
	for _, t := range n.Toolchains {
		to.Toolchains = append(to.Toolchains, forge.ToolchainNeed(t))
	}
}

func (c *converter) policies(s *JobSpec) {
	if p := s.Connectivity; p != nil {
		to := &c.spec.Connectivity
		to.Mode = word(c, "connectivity.mode", p.Mode, to.Mode, forge.ParseConnectivity)
		if to.Mode == forge.Continuous {
			to.Extra = 0
		}
		set(&to.Extra, p.Extra)
	}
	if p := s.Retry; p != nil {
		to := &c.spec.Retry
		set(&to.Max, p.Max)
		set(&to.Infra, p.Infra)
		to.ExitCodes = ascending[uint8](p.ExitCodes)
		for i, w := range p.On {
			if v, err := forge.ParseRetryWord(w); !c.failed(item("retry.on", i), err) {
				to.On = append(to.On, v)
			}
		}
		to.On = ascending[forge.RetryWord](to.On)
	}
}

var envItem = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:steps\[(\d+)\]\.)?env\[(\d+)\]`) })

// own turns places in the domain's lists of variables into places in the JSON, where they go by name.
func (s *JobSpec) own(found forge.Problems) forge.Problems {
	for i, p := range found {
		m := envItem().FindStringSubmatch(p.Path)
		if m == nil {
			continue
		}
		env, above := s.Env, ""
		if m[1] != "" {
			step, _ := strconv.Atoi(m[1])
			env, above = s.Steps[step].Env, item("steps", step)
		}
		at, _ := strconv.Atoi(m[2])
		found[i].Path = join(above, "env."+clip(variables(env)[at].Name))
	}
	return found
}
