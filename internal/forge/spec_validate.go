package forge

import (
	"slices"
	"strings"
)

// Validate reports everything that is wrong with the spec, each problem with its place, as Problems.
func (s *JobSpec) Validate() error {
	var c checker
	c.identity(s)
	c.steps(s.Steps)
	c.env(nil, s.Env)
	c.secrets(s)
	c.inputs(s.Inputs)
	c.outputs(s.Outputs)
	c.caches(s.Caches)
	c.limits(s)
	c.sandbox(s.Sandbox)
	c.constraints(s.Constraints)
	c.timeouts(s.Timeouts)
	c.connectivity(s.Connectivity)
	c.retry(s.Retry)
	return c.err()
}

func (c *checker) identity(s *JobSpec) {
	var root *where
	c.refName(root.in("project"), string(s.Project))
	c.name(root.in("job"), string(s.Job))
	c.leg(nil, s.Leg)
}

func (c *checker) leg(up *where, leg Leg) {
	if !c.count(up.in("leg"), len(leg), MaxAxes) {
		return
	}
	for i, v := range leg {
		c.name(up.item("leg", i).in("axis"), v.Axis)
		c.title(up.item("leg", i).in("value"), v.Value, MaxTitle)
	}
	unique(c, up, "leg", leg, func(v AxisValue) string { return v.Axis })
}

func (c *checker) steps(steps []Step) {
	var root *where
	if len(steps) == 0 {
		c.add(root.in("steps"), "are missing")
	}
	if !c.count(root.in("steps"), len(steps), MaxSteps) {
		return
	}
	for i := range steps {
		c.step(root.item("steps", i), &steps[i])
	}
	unique(c, nil, "steps", steps, func(s Step) string { return s.ID })
}

func (c *checker) step(at *where, s *Step) {
	if s.ID != "" {
		c.name(at.in("id"), s.ID)
	}
	c.title(at.in("name"), s.Name, MaxTitle)
	c.program(at, s)
	c.workPath(at.in("dir"), s.Dir)
	c.env(at, s.Env)
	if s.Timeout != 0 {
		c.duration(at.in("timeout"), s.Timeout, MaxRunTimeout)
	}
	c.known(at.in("when"), s.When.Valid(), s.When)
	c.exitCodes(at.in("allow_failure"), s.AllowFailure.ExitCodes)
	if s.AllowFailure.Any && len(s.AllowFailure.ExitCodes) > 0 {
		c.add(at.in("allow_failure"), "allows every failure and lists exit codes")
	}
}

// program checks that exactly one thing is to be run.
func (c *checker) program(at *where, s *Step) {
	switch {
	case len(s.Argv) > 0 && (s.Script != "" || len(s.Shell) > 0):
		c.add(at, "has both argv and a script with its shell")
	case len(s.Argv) > 0:
		c.argv(at, "argv", s.Argv)
	case s.Script == "":
		c.add(at, "has neither argv nor a script")
	default:
		c.text(at.in("script"), s.Script, MaxScript)
		c.argv(at, "shell", s.Shell)
	}
}

func (c *checker) argv(up *where, field string, argv []string) {
	if len(argv) == 0 || argv[0] == "" {
		c.add(up.in(field), "names no program")
	}
	if !c.count(up.in(field), len(argv), MaxArgs) {
		return
	}
	for i, arg := range argv {
		c.text(up.item(field, i), arg, MaxArg)
	}
}

// ownPrefix begins the names that the agent gives to a job.
const ownPrefix = "FORGEYARD_"

func (c *checker) env(up *where, env []EnvVar) {
	if !c.count(up.in("env"), len(env), MaxEnv) {
		return
	}
	for i, v := range env {
		c.envName(up.item("env", i).in("name"), v.Name)
		c.text(up.item("env", i).in("value"), v.Value, MaxEnvValue)
	}
	unique(c, up, "env", env, func(v EnvVar) string { return v.Name })
}

func (c *checker) envName(at *where, s string) {
	switch {
	case !isEnvName(s):
		c.add(at, "%q is no name: 1 to %d letters, digits and _, first no digit", clip(s), maxEnvName)
	case strings.HasPrefix(s, ownPrefix):
		c.add(at, "%q begins with %s, which is for the agent", clip(s), ownPrefix)
	}
}

func (c *checker) secrets(s *JobSpec) {
	var root *where
	if !c.count(root.in("secrets"), len(s.Secrets), MaxSecrets) {
		return
	}
	for i, use := range s.Secrets {
		at := root.item("secrets", i)
		c.refName(at.in("ref").in("name"), use.Ref.Name)
		switch {
		case (use.Env == "") == (use.File == ""):
			c.add(at, "wants either a variable or a file")
		case use.File != "":
			c.name(at.in("file"), use.File)
		default:
			c.envName(at.in("env"), use.Env)
			if slices.ContainsFunc(s.Env, func(v EnvVar) bool { return v.Name == use.Env }) {
				c.add(at.in("env"), "%q is also a plain variable", clip(use.Env))
			}
		}
	}
	unique(c, nil, "secrets", s.Secrets, func(use SecretUse) string { return use.Env })
	unique(c, nil, "secrets", s.Secrets, func(use SecretUse) string { return use.File })
}

func (c *checker) inputs(inputs []Input) {
	var root *where
	if !c.count(root.in("inputs"), len(inputs), MaxInputs) {
		return
	}
	for i, in := range inputs {
		at := root.item("inputs", i)
		c.workPath(at.in("mount"), in.Mount)
		c.tree(at.in("tree"), in.Tree)
		c.known(at.in("mode"), in.Mode.Valid(), in.Mode)
		for j, other := range inputs[:i] {
			if within(in.Mount, other.Mount) || within(other.Mount, in.Mount) {
				c.add(at.in("mount"), "overlaps inputs[%d]", j)
			}
		}
	}
}

// within reports whether a work path is another or below it.
func within(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, folder+"/")
}

func (c *checker) outputs(outputs []Output) {
	var root *where
	if !c.count(root.in("outputs"), len(outputs), MaxOutputs) {
		return
	}
	for i, out := range outputs {
		at := root.item("outputs", i)
		c.name(at.in("name"), out.Name)
		c.workPath(at.in("base"), out.Base)
		c.patterns(at, out.Patterns)
		c.known(at.in("when"), out.When.Valid() && out.When != WhenNever, out.When)
		number(c, at.in("max_bytes"), out.MaxBytes, 1, MaxOutputBytes)
		number(c, at.in("max_files"), out.MaxFiles, 1, MaxOutputFiles)
	}
	unique(c, nil, "outputs", outputs, func(out Output) string { return out.Name })
}

func (c *checker) patterns(up *where, patterns []string) {
	if len(patterns) == 0 || strings.HasPrefix(patterns[0], "!") {
		c.add(up.in("patterns"), "do not begin with one that takes files")
	}
	if !c.count(up.in("patterns"), len(patterns), MaxPatterns) {
		return
	}
	for i, p := range patterns {
		if !isPattern(p) {
			c.add(up.item("patterns", i), "%q is no pattern below the base", clip(p))
		}
	}
}

func (c *checker) caches(caches []Cache) {
	var root *where
	if !c.count(root.in("caches"), len(caches), MaxCaches) {
		return
	}
	for i, cache := range caches {
		at := root.item("caches", i)
		c.cacheKey(at.in("key"), cache.Key)
		if len(cache.Paths) == 0 {
			c.add(at.in("paths"), "are missing")
		}
		if c.count(at.in("paths"), len(cache.Paths), MaxCachePaths) {
			for j, p := range cache.Paths {
				c.workPath(at.item("paths", j), p)
			}
			unique(c, at, "paths", cache.Paths, func(p string) string { return p })
		}
		if c.count(at.in("fallback"), len(cache.Fallback), MaxFallbacks) {
			for j, key := range cache.Fallback {
				c.cacheKey(at.item("fallback", j), key)
			}
		}
	}
	unique(c, nil, "caches", caches, func(cache Cache) string { return cache.Key })
}

func (c *checker) cacheKey(at *where, key string) {
	if key == "" {
		c.add(at, "is missing")
	}
	c.title(at, key, MaxCacheKey)
}

func (c *checker) limits(s *JobSpec) {
	var root *where
	c.resources(root.in("resources"), s.Resources, Resources{CPU: 1, Memory: 1, Disk: 1, Slots: 1})
	number(c, root.in("processes"), s.Processes, 1, MaxProcesses)
	number(c, root.in("log_limit"), s.LogLimit, MinLogLimit, MaxLogLimit)
	c.known(root.in("network"), s.Network.Valid(), s.Network)
}

func (c *checker) sandbox(n SandboxNeed) {
	at := (*where)(nil).in("sandbox")
	c.known(at.in("kind"), n.Kind.Valid(), n.Kind)
	c.words(at, "levels", n.Levels, MaxSandboxLevels)
	switch {
	case n.Kind == SandboxOCI && !isPinnedImage(n.Image):
		c.add(at.in("image"), "%q does not end in @sha256: and 64 hexadecimal digits", clip(n.Image))
	case n.Kind != SandboxOCI && n.Image != "":
		c.add(at.in("image"), "is given to a %v sandbox", n.Kind)
	}
}

// isPinnedImage reports whether s names an image by its digest: a tag may move, a specification may not.
func isPinnedImage(s string) bool {
	reference, hex, ok := strings.Cut(s, "@sha256:")
	return ok && reference != "" && isTitle(s, MaxPath) && !strings.ContainsAny(s, " \t") && len(hex) == 64 &&
		strings.Trim(hex, "0123456789abcdef") == ""
}

func (c *checker) constraints(n Constraints) {
	at := (*where)(nil).in("constraints")
	if n.OS != "" {
		c.name(at.in("os"), n.OS)
	}
	if n.Arch != "" {
		c.name(at.in("arch"), n.Arch)
	}
	c.labels(at, n.Labels)
	c.name(at.in("pool"), n.Pool)
	c.known(at.in("trust"), n.Trust.Valid(), n.Trust)
	c.devices(at, n.Devices)
	if !c.count(at.in("toolchains"), len(n.Toolchains), MaxToolchainNeeds) {
		return
	}
	for i, t := range n.Toolchains {
		c.name(at.item("toolchains", i).in("id"), t.ID)
		if t.Version != "" {
			c.label(at.item("toolchains", i).in("version"), t.Version)
		}
	}
	unique(c, at, "toolchains", n.Toolchains, func(t ToolchainNeed) string { return t.ID })
}
