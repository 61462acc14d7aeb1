package forge_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// capable is a runner that can take fullSpec.
func capable() forge.Capabilities {
	c := goodCapabilities()
	c.Toolchains = append(c.Toolchains, forge.Toolchain{ID: "go", Version: "1.26", Source: forge.ToolchainManaged})
	c.Features = nil
	return c
}

func misses(need forge.Need, c forge.Capabilities) []string {
	var all []string
	for m := range need.Misses(&c) {
		all = append(all, m.String())
	}
	return all
}

func TestEveryThingThatARunnerLacksIsAMiss(t *testing.T) {
	host := func(s *forge.JobSpec) { s.Network = forge.NetworkHost }
	same := func(*forge.JobSpec) {}
	for _, test := range []struct {
		want   []string
		spec   func(*forge.JobSpec)
		runner func(*forge.Capabilities)
	}{
		{nil, same, func(*forge.Capabilities) {}},
		{nil, func(s *forge.JobSpec) { s.Constraints.OS, s.Constraints.Arch = "", "" }, func(c *forge.Capabilities) { c.Platform = forge.Platform{} }},
		{[]string{"os is windows, not linux"}, same, func(c *forge.Capabilities) { c.Platform.OS = "windows" }},
		{[]string{"arch is arm64, not amd64"}, same, func(c *forge.Capabilities) { c.Platform.Arch = "arm64" }},
		{[]string{"sandbox native missing"}, same, func(c *forge.Capabilities) { c.Sandboxes = c.Sandboxes[:1] }},
		{[]string{"sandbox native/seccomp missing"}, same, func(c *forge.Capabilities) { c.Sandboxes[1].Levels = []string{"userns"} }},
		{[]string{"label site=berlin missing"}, same, func(c *forge.Capabilities) { c.Labels = []string{"site=paris"} }},
		{[]string{"device gpu 1 > 0"}, same, func(c *forge.Capabilities) { c.Devices = nil }},
		{[]string{"device gpu 3 > 2"}, func(s *forge.JobSpec) { s.Constraints.Devices[0].Count = 3 }, func(*forge.Capabilities) {}},
		{[]string{"toolchain go 1.26 missing"}, same, func(c *forge.Capabilities) { c.Toolchains = c.Toolchains[:3] }},
		{nil, same, func(c *forge.Capabilities) { c.Toolchains, c.Features = nil, []string{forge.FeatureToolchains} }},
		{nil, func(s *forge.JobSpec) { s.Constraints.Toolchains[0].Version = "" }, func(c *forge.Capabilities) { c.Toolchains = c.Toolchains[:1] }},
		{[]string{"feature network.host missing"}, host, func(*forge.Capabilities) {}},
		{nil, host, func(c *forge.Capabilities) { c.Features = []string{forge.FeatureHostNetwork} }},
		{[]string{"memory 64 GiB > 32 GiB"}, func(s *forge.JobSpec) { s.Resources.Memory = 64 * forge.GiB }, func(*forge.Capabilities) {}},
		{[]string{"cpu 16 > 8", "slots 5 > 4"}, func(s *forge.JobSpec) { s.Resources.CPU, s.Resources.Slots = 16000, 5 }, func(*forge.Capabilities) {}},
		{[]string{"os is darwin, not linux", "arch is arm64, not amd64", "sandbox native missing"}, same, func(c *forge.Capabilities) {
			c.Platform, c.Sandboxes = forge.Platform{OS: "darwin", Arch: "arm64"}, nil
		}},
	} {
		spec, runner := fullSpec(), capable()
		test.spec(&spec)
		test.runner(&runner)
		need := spec.Need()
		if diff := cmp.Diff(test.want, misses(need, runner)); diff != "" {
			t.Error(diff)
		}
		if got := need.Met(&runner); got != (len(test.want) == 0) {
			t.Errorf("Met = %v with misses %v", got, test.want)
		}
	}
}

func TestTheReaderOfMissesMayStopAtEach(t *testing.T) {
	spec := fullSpec()
	spec.Network = forge.NetworkHost
	need := spec.Need()
	all := slices.Collect(need.Misses(&forge.Capabilities{}))
	for n := range all {
		var some []forge.Miss
		for m := range need.Misses(&forge.Capabilities{}) {
			if some = append(some, m); len(some) > n {
				break
			}
		}
		if diff := cmp.Diff(all[:n+1], some); diff != "" {
			t.Error(diff)
		}
	}
	if len(all) != 11 {
		t.Errorf("an empty snapshot misses %d things: %v", len(all), all)
	}
}

func TestWarmToolchainsAreCountedAndNeverRequired(t *testing.T) {
	spec, runner := fullSpec(), capable()
	need := spec.Need()
	if !need.Met(&runner) || need.WarmToolchains(&runner) != 0 {
		t.Error("a toolchain that can be fetched does not suffice, or counts as warm")
	}
	runner.Toolchains[3].Warm = true
	if need.WarmToolchains(&runner) != 1 {
		t.Error("a warm toolchain is not counted")
	}
}

// The numbers are stored and shown. A line may be added at the end; none may change.
func TestMissesKeepTheirNumbers(t *testing.T) {
	want := []string{
		"not connected passes", "disabled passes", "draining passes", "unhealthy passes", "under pressure passes",
		"pool", "trust", "os", "arch", "sandbox", "label", "device", "toolchain", "feature", "too small", "refused it before",
		"busy passes", "held passes",
	}
	var got []string
	for k := forge.MissDisconnected; k.String() != "invalid(19)"; k++ {
		text := k.String()
		if k.Passes() {
			text += " passes"
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARunnerRunsNothingAboveItsTrustAndAProtectedOneNothingElse(t *testing.T) {
	for _, test := range []struct {
		runner, job forge.TrustClass
		want        bool
	}{
		{forge.TrustUntrusted, forge.TrustUntrusted, true},
		{forge.TrustUntrusted, forge.TrustTrusted, false},
		{forge.TrustUntrusted, forge.TrustProtected, false},
		{forge.TrustTrusted, forge.TrustUntrusted, true},
		{forge.TrustTrusted, forge.TrustTrusted, true},
		{forge.TrustTrusted, forge.TrustProtected, false},
		{forge.TrustProtected, forge.TrustUntrusted, false},
		{forge.TrustProtected, forge.TrustTrusted, false},
		{forge.TrustProtected, forge.TrustProtected, true},
		{0, forge.TrustUntrusted, false},
		{forge.TrustTrusted, 0, false},
		{4, forge.TrustUntrusted, false},
		{forge.TrustProtected, 4, false},
	} {
		if got := test.runner.Runs(test.job); got != test.want {
			t.Errorf("a %v runner runs %v jobs: %v", test.runner, test.job, got)
		}
	}
}

func TestARunnerIsValidAtItsBoundsAndEachFaultIsNamed(t *testing.T) {
	good := forge.Runner{ID: forge.RunnerID{ULID: ulid(1)}, Name: "r1", Pool: forge.DefaultPool, Trust: forge.TrustTrusted}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		path  string
		spoil func(*forge.Runner)
	}{
		{"id", func(r *forge.Runner) { r.ID = forge.RunnerID{} }},
		{"name", func(r *forge.Runner) { r.Name = "" }},
		{"pool", func(r *forge.Runner) { r.Pool = "a b" }},
		{"trust", func(r *forge.Runner) { r.Trust = 0 }},
		{"labels", func(r *forge.Runner) { r.Labels = list(forge.MaxLabels+1, numbered("l")) }},
		{"reserved.cpu", func(r *forge.Runner) { r.Reserved.CPU = forge.MaxCPU + 1 }},
		{"version", func(r *forge.Runner) { r.Version = "\n" }},
	} {
		r := good
		test.spoil(&r)
		if diff := cmp.Diff([]string{test.path}, paths(t, r.Validate())); diff != "" {
			t.Error(diff)
		}
	}
}
