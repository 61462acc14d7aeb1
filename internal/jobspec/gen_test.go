package jobspec_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Generators of valid specifications that reach every field.

var (
	anyName   = rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9._-]{0,20}`)
	anyLabel  = rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9._/=:+-]{0,20}`)
	anyRef    = rapid.StringMatching(`[a-z]{1,9}(/[a-z0-9._-]{0,3}[a-z]){0,2}`).Filter(func(s string) bool { return !strings.Contains(s, "/-") && !strings.Contains(s, "/.") })
	anyEnv    = rapid.StringMatching(`[A-EG-Za-z_][A-Za-z0-9_]{0,20}`)
	anyPath   = rapid.StringMatching(`[a-zA-Z0-9_ ü-]{1,9}(/[a-z0-9]{1,9}){0,3}`)
	anyGlob   = rapid.StringMatching(`[a-z*?]{1,9}(/[a-z*]{1,9}){0,2}/?`)
	anyText   = rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
	anyTitle  = rapid.StringMatching(`[ -~äöü]{0,40}`)
	anyMillis = rapid.Map(rapid.Int64Range(1, int64(forge.MaxGrace/time.Millisecond)), func(n int64) time.Duration { return time.Duration(n) * time.Millisecond })
	anyCodes  = rapid.Map(rapid.SliceOfNDistinct(rapid.Uint8Range(1, 255), 0, 5, rapid.ID[uint8]), sortedOrNil[uint8])
)

func sortedOrNil[T ~uint8](items []T) []T {
	if len(items) == 0 {
		return nil
	}
	slices.Sort(items)
	return items
}

// some draws up to five things; nil if none, as decoding leaves it.
func some[T any](t *rapid.T, what string, least int, one func(i int) T) []T {
	var all []T
	for i := range rapid.IntRange(least, 5).Draw(t, what) {
		all = append(all, one(i))
	}
	return all
}

// names draws different texts.
func names(t *rapid.T, what string, least int, from *rapid.Generator[string]) []string {
	all := rapid.SliceOfNDistinct(from, least, 5, rapid.ID[string]).Draw(t, what)
	if len(all) == 0 {
		return nil
	}
	return all
}

func anyVars(t *rapid.T) []forge.EnvVar {
	var env []forge.EnvVar
	for _, name := range names(t, "env", 0, anyEnv) {
		env = append(env, forge.EnvVar{Name: name, Value: anyText.Draw(t, "value")})
	}
	return env
}

func anyStep(t *rapid.T, i int) forge.Step {
	s := forge.Step{
		Name: anyTitle.Draw(t, "name"), Dir: anyPath.Draw(t, "dir"), Env: anyVars(t),
		When: forge.When(rapid.Uint8Range(1, 4).Draw(t, "when")),
	}
	if rapid.Bool().Draw(t, "has id") {
		s.ID = fmt.Sprintf("step%d", i)
	}
	if rapid.Bool().Draw(t, "has a limit") {
		s.Timeout = anyMillis.Draw(t, "limit")
	}
	if rapid.Bool().Draw(t, "any failure") {
		s.AllowFailure.Any = true
	} else {
		s.AllowFailure.ExitCodes = anyCodes.Draw(t, "codes")
	}
	args := append([]string{"x" + anyText.Draw(t, "program")}, some(t, "args", 0, func(int) string { return anyText.Draw(t, "arg") })...)
	if rapid.Bool().Draw(t, "is a script") {
		s.Script, s.Shell = "x"+anyText.Draw(t, "script"), args
	} else {
		s.Argv = args
	}
	return s
}

func anyTree(t *rapid.T) forge.TreeRef {
	root := digest.Ref{Digest: digest.Of(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "root")), Bytes: rapid.Uint64().Draw(t, "root bytes")}
	return forge.TreeRef{
		Root: root, Files: rapid.Uint64Range(0, forge.MaxTreeFiles).Draw(t, "files"),
		Bytes: forge.Bytes(rapid.Uint64Range(0, uint64(forge.MaxTreeBytes)).Draw(t, "bytes")),
		Depth: rapid.Uint16Range(0, forge.MaxTreeDepth).Draw(t, "depth"),
	}
}

func anySecret(t *rapid.T, i int) forge.SecretUse {
	use := forge.SecretUse{Ref: forge.SecretRef{Name: anyRef.Draw(t, "secret"), Version: rapid.Uint32().Draw(t, "version")}}
	if rapid.Bool().Draw(t, "as a file") {
		use.File = fmt.Sprintf("file%d", i)
	} else {
		use.Env = fmt.Sprintf("FSECRET_%d", i) // no generated variable begins with F
	}
	return use
}

func anyOutput(t *rapid.T, i int) forge.Output {
	return forge.Output{
		Name: fmt.Sprintf("output%d", i), Base: anyPath.Draw(t, "base"),
		Patterns: append([]string{anyGlob.Draw(t, "first")}, some(t, "patterns", 0, func(int) string { return "!" + anyGlob.Draw(t, "pattern") })...),
		Required: rapid.Bool().Draw(t, "required"), When: forge.When(rapid.Uint8Range(1, 3).Draw(t, "kept")),
		MaxBytes: forge.Bytes(rapid.Uint64Range(1, uint64(forge.MaxOutputBytes)).Draw(t, "max bytes")),
		MaxFiles: rapid.Uint32Range(1, forge.MaxOutputFiles).Draw(t, "max files"),
	}
}

func anyConstraints(t *rapid.T) forge.Constraints {
	c := forge.Constraints{
		OS: rapid.SampledFrom([]string{"", "linux"}).Draw(t, "os"), Arch: rapid.SampledFrom([]string{"", "arm64"}).Draw(t, "arch"),
		Labels: names(t, "labels", 0, anyLabel), Pool: anyName.Draw(t, "pool"),
		Trust: forge.TrustClass(rapid.Uint8Range(1, 3).Draw(t, "trust")),
	}
	for _, kind := range names(t, "devices", 0, anyName) {
		c.Devices = append(c.Devices, forge.DeviceCount{Kind: kind, Count: rapid.Uint16Range(1, forge.MaxDeviceCount).Draw(t, "count")})
	}
	for _, id := range names(t, "toolchains", 0, anyName) {
		c.Toolchains = append(c.Toolchains, forge.ToolchainNeed{ID: id, Version: rapid.SampledFrom([]string{"", "1.2+a"}).Draw(t, "version")})
	}
	return c
}

func anySandbox(t *rapid.T) forge.SandboxNeed {
	n := forge.SandboxNeed{Kind: forge.SandboxKind(rapid.Uint8Range(1, 3).Draw(t, "sandbox")), Levels: names(t, "levels", 0, anyLabel)}
	if n.Kind == forge.SandboxOCI {
		n.Image = "debian@sha256:" + strings.Repeat("ab", 32)
	}
	return n
}

func anySpec(t *rapid.T) forge.JobSpec {
	s := forge.JobSpec{
		Project: forge.ProjectName(anyRef.Draw(t, "project")), Job: forge.JobKey(anyName.Draw(t, "job")),
		Steps:   some(t, "steps", 1, func(i int) forge.Step { return anyStep(t, i) }),
		Env:     anyVars(t),
		Secrets: some(t, "secrets", 0, func(i int) forge.SecretUse { return anySecret(t, i) }),
		Inputs: some(t, "inputs", 0, func(i int) forge.Input {
			return forge.Input{Mount: fmt.Sprintf("in/%d", i), Tree: anyTree(t), Mode: forge.InputMode(rapid.Uint8Range(1, 2).Draw(t, "mode"))}
		}),
		Outputs: some(t, "outputs", 0, func(i int) forge.Output { return anyOutput(t, i) }),
		Caches: some(t, "caches", 0, func(i int) forge.Cache {
			return forge.Cache{
				Key: fmt.Sprintf("key %d", i), Paths: names(t, "paths", 1, anyPath),
				Fallback: names(t, "fallback", 0, anyName), ReadOnly: rapid.Bool().Draw(t, "read only"),
			}
		}),
		Resources: forge.Resources{
			CPU:    forge.MilliCPU(rapid.Uint64Range(1, uint64(forge.MaxCPU)).Draw(t, "cpu")),
			Memory: forge.Bytes(rapid.Uint64Range(1, uint64(forge.MaxMemory)).Draw(t, "memory")),
			Disk:   forge.Bytes(rapid.Uint64Range(1, uint64(forge.MaxDisk)).Draw(t, "disk")),
			Slots:  rapid.Uint32Range(1, forge.MaxSlots).Draw(t, "slots"),
		},
		Processes: rapid.Uint32Range(1, forge.MaxProcesses).Draw(t, "processes"),
		Network:   forge.Network(rapid.Uint8Range(1, 2).Draw(t, "network")), Sandbox: anySandbox(t), Constraints: anyConstraints(t),
		Timeouts:     forge.Timeouts{Prepare: anyMillis.Draw(t, "prepare"), Run: anyMillis.Draw(t, "run"), Upload: anyMillis.Draw(t, "upload"), Grace: anyMillis.Draw(t, "grace")},
		Connectivity: forge.ConnectivityPolicy{Mode: forge.Connectivity(rapid.Uint8Range(1, 3).Draw(t, "connectivity"))},
		LogLimit:     forge.Bytes(rapid.Uint64Range(uint64(forge.MinLogLimit), uint64(forge.MaxLogLimit)).Draw(t, "log limit")),
		Retry:        anyRetry(t),
	}
	for _, axis := range names(t, "leg", 0, anyName) {
		s.Leg = append(s.Leg, forge.AxisValue{Axis: axis, Value: anyTitle.Draw(t, "leg value")})
	}
	if s.Connectivity.Mode != forge.Continuous {
		s.Connectivity.Extra = anyMillis.Draw(t, "extra")
	}
	return s
}

func anyRetry(t *rapid.T) forge.RetryPolicy {
	r := forge.RetryPolicy{Max: rapid.Uint8Range(0, 10).Draw(t, "retries"), Infra: rapid.Uint8Range(0, 10).Draw(t, "infra")}
	on := rapid.SliceOfNDistinct(rapid.Uint8Range(2, 5), 0, 4, rapid.ID[uint8]).Draw(t, "on")
	slices.Sort(on)
	for _, w := range on {
		r.On = append(r.On, forge.RetryWord(w))
	}
	if slices.Contains(r.On, forge.RetryExit) {
		r.ExitCodes = anyCodes.Draw(t, "retry codes")
	}
	return r
}
