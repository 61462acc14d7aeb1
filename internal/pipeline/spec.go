package pipeline

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Names of outputs that a plan adds to a job's own. An author's artifacts have none that begin so.
const (
	reservedPrefix = "forgeyard."
	// StepOutputs holds what the steps have written for the outputs of their job.
	StepOutputs = reservedPrefix + "outputs"
)

func reserved(name string) bool { return strings.HasPrefix(name, reservedPrefix) }

// maxStepOutputs bounds what the steps of a job may write for its outputs, together (D05), with room for names of files.
const (
	maxStepOutputs     = 32 * forge.KiB
	maxStepOutputFiles = 1024
)

// NeedsDir is where the artifacts of needed jobs are mounted, below the work folder: needs/JOB/ARTIFACT, or
// needs/JOB/LEG/ARTIFACT where a job has several legs.
const NeedsDir = "needs"

// bash is what runs a script that names no shell.
var bash = shells["bash"]

// variable is the name of an environment variable made of a group and names of the author's.
func variable(words ...string) string {
	return strings.ToUpper(underscored(strings.Join(words, "_")))
}

// below returns a path below a folder of the work folder, and whether it stays there.
func below(dir, p string) (string, bool) {
	clean := path.Clean(p)
	if path.IsAbs(p) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(p, "\\\x00\n") || len(p) > forge.MaxPath {
		return "", false
	}
	return path.Join(dir, clean), true
}

// workPath is where a path of a cache lies in the work folder: below ~ or below the source. It is a folder, which is also written as
// all that is in it; no other patterns name one.
func workPath(p string) (string, bool) {
	for _, all := range []string{"/**/*", "/**", "/*", "/"} {
		p = strings.TrimSuffix(p, all)
	}
	if p == "~" || strings.ContainsAny(p, "*?[]{}") {
		return "", false
	}
	home, ok := strings.CutPrefix(p, "~/")
	if !ok {
		at, ok := below(forge.SourceDir, p)
		return at, ok && at != forge.SourceDir
	}
	at, ok := below("home", home)
	return at, ok && at != "home"
}

// validPattern reports whether a pattern stays below its base.
func validPattern(p string) bool { return forge.PatternValid(p) && !strings.Contains(p, "\n") }

// environment makes a job's variables: those of the run, then the file's, then the job's, of which the last one counts.
func (p *Plan) environment(n Node, v map[string]any, g *Given) ([]forge.EnvVar, error) {
	var env environment
	env.set("CI", "true")
	for _, e := range p.facts.Environment() {
		env.set(e.Name, e.Value)
	}
	for _, a := range n.Leg {
		if a.Axis == parallelAxis {
			env.set("PARALLEL_INDEX", a.Value)
			env.set("PARALLEL_TOTAL", strconv.Itoa(n.Job.Parallel))
			continue
		}
		env.set(variable("MATRIX", a.Axis), a.Value)
	}
	for _, e := range g.Needs {
		env.set(variable("NEEDS", string(e.Job), "RESULT"), e.Outcome.String())
		for _, o := range e.Outputs {
			env.set(variable("NEEDS", string(e.Job), o.Name), o.Value)
		}
	}
	for _, vars := range [][]Var{p.file.Env, p.file.Defaults.Env, n.Job.Env} {
		filled, err := fillAll(vars, v)
		if err != nil {
			return nil, err
		}
		for _, e := range filled {
			env.set(e.Name, e.Value)
			v["env."+e.Name] = e.Value
		}
	}
	return env, nil
}

// environment is a list of variables, each once.
type environment []forge.EnvVar

func (e *environment) set(name, value string) {
	for i := range *e {
		if (*e)[i].Name == name {
			(*e)[i].Value = value
			return
		}
	}
	*e = append(*e, forge.EnvVar{Name: name, Value: value})
}

func fillAll(vars []Var, v map[string]any) ([]forge.EnvVar, error) {
	var out []forge.EnvVar
	for _, one := range vars {
		text, err := one.Value.fill(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		out = append(out, forge.EnvVar{Name: one.Name, Value: text})
	}
	return out, nil
}

// spec makes the specification of a job.
func (p *Plan) spec(n Node, v map[string]any, g *Given, env []forge.EnvVar) (*forge.JobSpec, error) {
	j, d := n.Job, &p.file.Defaults
	s := forge.DefaultJobSpec()
	s.Project, s.Job, s.Leg, s.Env = g.Project, j.Key, n.Leg, env
	s.Network = cmp.Or(j.Network, d.Network, s.Network)
	s.Timeouts.Run = cmp.Or(j.Timeout, d.Timeout, s.Timeouts.Run)
	s.Constraints.Trust = g.Trust
	s.Sandbox.Kind = cmp.Or(g.Sandbox, s.Sandbox.Kind)
	s.Connectivity = cmp.Or(g.Connectivity, s.Connectivity)
	if r := cmp.Or(j.Retry, d.Retry); r != nil {
		s.Retry.Max, s.Retry.On, s.Retry.ExitCodes = r.Max, r.On, r.ExitCodes
		if r.Infra != nil {
			s.Retry.Infra = *r.Infra
		}
	}
	for _, secret := range j.Secrets {
		ref, err := forge.ParseSecretRef(secret.Ref.Value)
		if err != nil {
			return nil, err // Parse has refused it
		}
		s.Secrets = append(s.Secrets, forge.SecretUse{Env: secret.Env, File: secret.File, Ref: ref})
	}
	for _, r := range []*Runner{d.Runner, j.Runner} { // what the job says of a thing counts
		if err := r.into(&s, v); err != nil {
			return nil, err
		}
	}
	if err := p.steps(&s, n, v); err != nil {
		return nil, err
	}
	j.inputs(&s, g)
	j.outputs(&s)
	if err := j.caches(&s, v); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return &s, nil
}

// into writes what a runner must be into a spec.
func (r *Runner) into(s *forge.JobSpec, v map[string]any) error {
	if r == nil {
		return nil
	}
	c := &s.Constraints
	for _, f := range []struct {
		text Text
		into *string
	}{{r.OS, &c.OS}, {r.Arch, &c.Arch}, {r.Pool, &c.Pool}} {
		text, err := f.text.fill(v)
		if err != nil {
			return fmt.Errorf("runner: %w", err)
		}
		*f.into = cmp.Or(text, *f.into)
	}
	if len(r.Labels) > 0 {
		c.Labels = nil
	}
	for _, l := range r.Labels {
		label, err := l.fill(v)
		if err != nil {
			return fmt.Errorf("runner: %w", err)
		}
		if !slices.Contains(c.Labels, label) {
			c.Labels = append(c.Labels, label)
		}
	}
	if len(r.Toolchains) > 0 {
		c.Toolchains = nil
	}
	for _, t := range r.Toolchains {
		text, err := t.fill(v)
		if err != nil {
			return fmt.Errorf("runner: %w", err)
		}
		id, version, _ := strings.Cut(text, "@")
		c.Toolchains = append(c.Toolchains, forge.ToolchainNeed{ID: id, Version: version})
	}
	s.Resources.CPU = cmp.Or(r.CPU, s.Resources.CPU)
	s.Resources.Memory = cmp.Or(r.Memory, s.Resources.Memory)
	s.Resources.Disk = cmp.Or(r.Disk, s.Resources.Disk)
	return nil
}

func (p *Plan) steps(s *forge.JobSpec, n Node, v map[string]any) error {
	for i, step := range n.Job.Steps {
		title, err := step.Name.fill(v)
		if err != nil {
			title = ""
		}
		env, err := fillAll(step.Env, v)
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		when, err := step.condition.fold(v)
		if err != nil {
			return fmt.Errorf("if of step %d: %w", i+1, err)
		}
		dir, _ := below(forge.SourceDir, step.Dir.Value) // Parse has refused others
		shell := step.Shell
		if shell == nil {
			shell = p.file.Defaults.Shell
		}
		if shell == nil {
			shell = bash
		}
		s.Steps = append(s.Steps, forge.Step{
			ID: step.ID.Value, Name: title, Script: step.Run.Value, Shell: shell, Dir: dir, Env: env,
			Timeout: step.Timeout, When: when, AllowFailure: step.AllowFailure,
		})
	}
	return nil
}

// inputs are the source and what the needed jobs have kept.
func (j *Job) inputs(s *forge.JobSpec, g *Given) {
	mode := cmp.Or(j.Source.Mode, forge.InputCopyOnWrite)
	tree := g.Source
	if g.WithGit != nil && (j.Source.Git == nil || *j.Source.Git) {
		tree = g.WithGit
	}
	if tree != nil && !j.Source.None {
		s.Inputs = append(s.Inputs, forge.Input{Mount: forge.SourceDir, Tree: *tree, Mode: mode})
	}
	if g.Kept != nil {
		s.Inputs = append(s.Inputs, forge.Input{Mount: NeedsDir, Tree: *g.Kept, Mode: forge.InputReadOnly})
	}
}

func (j *Job) outputs(s *forge.JobSpec) {
	for _, a := range j.Artifacts {
		o := forge.DefaultOutput()
		o.Name, o.Base, o.Required, o.When = a.Name.Value, forge.SourceDir, a.Required, a.When
		o.MaxBytes, o.MaxFiles = cmp.Or(a.MaxBytes, o.MaxBytes), cmp.Or(a.MaxFiles, o.MaxFiles)
		for _, p := range a.Paths {
			o.Patterns = append(o.Patterns, p.Value)
		}
		s.Outputs = append(s.Outputs, o)
	}
	if len(j.Outputs) > 0 {
		s.Outputs = append(s.Outputs, forge.Output{
			Name: StepOutputs, Base: stepsBase, Patterns: []string{"**"}, When: forge.WhenAlways,
			MaxBytes: maxStepOutputs, MaxFiles: maxStepOutputFiles,
		})
	}
}

// stepsBase is where steps write their outputs, below the work folder: STEP/output and STEP/outputs/NAME.
const stepsBase = ".forgeyard/steps"

func (j *Job) caches(s *forge.JobSpec, v map[string]any) error {
	for _, c := range j.Caches {
		key, err := c.Key.fill(v)
		if err != nil {
			return fmt.Errorf("key of a cache: %w", err)
		}
		made := forge.Cache{Key: key, ReadOnly: c.ReadOnly}
		for _, p := range c.Paths {
			at, _ := workPath(p.Value) // Parse has refused others
			made.Paths = append(made.Paths, at)
		}
		for _, f := range c.Fallback {
			text, err := f.fill(v)
			if err != nil {
				return fmt.Errorf("fallback of a cache: %w", err)
			}
			made.Fallback = append(made.Fallback, text)
		}
		s.Caches = append(s.Caches, made)
	}
	return nil
}
