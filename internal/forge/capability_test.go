package forge_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func goodCapabilities() forge.Capabilities {
	return forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema,
		Platform:      forge.Platform{OS: "linux", Arch: "amd64", Version: "Debian 12"},
		Resources:     forge.Resources{CPU: 8000, Memory: 32 * forge.GiB, Disk: 500 * forge.GiB, Slots: 4},
		Toolchains: []forge.Toolchain{
			{ID: "go", Version: "1.26.0", Source: forge.ToolchainManaged, Verified: true, Warm: true},
			{ID: "go", Version: "1.25.0", Source: forge.ToolchainManaged, Verified: true},
			{ID: "gcc", Version: "12.2", Source: forge.ToolchainHost, Warm: true},
		},
		Sandboxes: []forge.Sandbox{
			{Kind: forge.SandboxProcess},
			{Kind: forge.SandboxNative, Levels: []string{"userns", "seccomp", "landlock-4"}},
		},
		Devices:  []forge.DeviceCount{{Kind: "gpu", Count: 2}, {Kind: "android", Count: 1}},
		Labels:   []string{"site=berlin", "owner=build"},
		Features: []string{forge.FeatureToolchains, forge.FeatureHostNetwork},
	}
}

// discovered is the same snapshot as probes might find it another time: in another order, with things found twice.
func discovered(t *rapid.T, c forge.Capabilities) forge.Capabilities {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
	c.Toolchains = shuffled(r, c.Toolchains)
	sandboxes := slices.Clone(c.Sandboxes)
	for i := range sandboxes {
		sandboxes[i].Levels = shuffled(r, sandboxes[i].Levels)
	}
	c.Sandboxes = shuffled(r, sandboxes)
	c.Devices = shuffled(r, c.Devices)
	c.Labels = shuffled(r, c.Labels)
	c.Features = shuffled(r, c.Features)
	return c
}

func shuffled[T any](r *rand.Rand, items []T) []T {
	items = slices.Clone(items)
	for range items[:r.IntN(len(items)+1)] {
		items = append(items, items[r.IntN(len(items))])
	}
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

func TestTheCapabilityDigestIsThatOfTheSnapshotNotOfItsDiscovery(t *testing.T) {
	want := goodCapabilities()
	rapid.Check(t, func(t *rapid.T) {
		got := discovered(t, want)
		if got.Digest() != want.Digest() {
			t.Fatalf("another order of discovery is another digest: %+v", got)
		}
		if diff := cmp.Diff(want.Canonical(), got.Canonical()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The digest is stored and compared across versions of this program.
func TestTheCapabilityDigestIsFrozen(t *testing.T) {
	for got, want := range map[string]string{
		goodCapabilities().Digest().String():     "b3:33144f89b68990e17e987167ad568fc86637bba50cf8e4bda438b8a9a54802b6",
		(forge.Capabilities{}).Digest().String(): "b3:46c701920ebb8d782ea5c4ca2eae7f3d95d9c1ea93e816bc4d4da16e54b32d48",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestEveryFieldOfASnapshotChangesItsDigest(t *testing.T) {
	original := goodCapabilities().Digest()
	var leaves []string
	whole := func(c *forge.Capabilities) reflect.Value { return reflect.ValueOf(c).Elem() }
	first := goodCapabilities()
	eachLeaf(whole(&first), "", func(path string, _ reflect.Value) { leaves = append(leaves, path) })
	for i, changed := range leaves {
		c, n := goodCapabilities().Canonical(), 0
		eachLeaf(whole(&c), "", func(_ string, leaf reflect.Value) {
			if n == i && leaf.Kind() == reflect.String {
				leaf.SetString(leaf.String() + "x")
			} else if n == i {
				change(leaf)
			}
			n++
		})
		if c.Digest() == original {
			t.Errorf("%s (%d) is changed and the digest is the same", changed, i)
		}
	}
	if len(leaves) < 30 {
		t.Errorf("only %d fields were found", len(leaves))
	}
}

func TestTextsThatMoveBetweenFieldsChangeTheDigest(t *testing.T) {
	seen := make(map[string]int)
	for i, c := range []forge.Capabilities{
		{Platform: forge.Platform{OS: "ab"}},
		{Platform: forge.Platform{OS: "a", Arch: "b"}},
		{Platform: forge.Platform{Arch: "ab"}},
		{Labels: []string{"ab"}},
		{Labels: []string{"a", "b"}},
		{Features: []string{"ab"}},
		{Labels: []string{"a"}, Features: []string{"b"}},
		{Sandboxes: []forge.Sandbox{{Levels: []string{"a"}}}},
		{Sandboxes: []forge.Sandbox{{}}, Devices: []forge.DeviceCount{{Kind: "a"}}},
	} {
		if j, dup := seen[c.Digest().String()]; dup {
			t.Errorf("snapshots %d and %d have one digest", i, j)
		}
		seen[c.Digest().String()] = i
	}
}

func TestCanonicalSharesNothingWithItsOrigin(t *testing.T) {
	c := goodCapabilities()
	canonical := c.Canonical()
	canonical.Labels[0], canonical.Sandboxes[0].Levels[0], canonical.Toolchains[0].ID = "x", "x", "x"
	if diff := cmp.Diff(goodCapabilities(), c); diff != "" {
		t.Error(diff)
	}
}

func TestASnapshotSurvivesItsCanonicalForm(t *testing.T) {
	for _, c := range []forge.Capabilities{goodCapabilities(), goodCapabilities().Canonical()} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(goodCapabilities().Canonical(), goodCapabilities().Canonical().Canonical()); diff != "" {
		t.Error(diff)
	}
}

func TestEveryBoundOfASnapshotHoldsAtItAndNotOnePastIt(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, bound := range []struct {
		path string
		most int
		set  func(c *forge.Capabilities, n int)
	}{
		{"platform.os", forge.MaxName, func(c *forge.Capabilities, n int) { c.Platform.OS = x(n) }},
		{"platform.arch", forge.MaxName, func(c *forge.Capabilities, n int) { c.Platform.Arch = x(n) }},
		{"platform.version", forge.MaxTitle, func(c *forge.Capabilities, n int) { c.Platform.Version = x(n) }},
		{"resources.cpu", int(forge.MaxCPU), func(c *forge.Capabilities, n int) { c.Resources.CPU = forge.MilliCPU(n) }},
		{"resources.slots", int(forge.MaxSlots), func(c *forge.Capabilities, n int) { c.Resources.Slots = uint32(n) }},
		{"toolchains", forge.MaxToolchains, func(c *forge.Capabilities, n int) {
			c.Toolchains = list(n, func(i int) forge.Toolchain {
				return forge.Toolchain{ID: fmt.Sprint(i), Version: "1", Source: forge.ToolchainHost}
			})
		}},
		{"toolchains[0].id", forge.MaxName, func(c *forge.Capabilities, n int) { c.Toolchains[0].ID = x(n) }},
		{"toolchains[0].version", forge.MaxName, func(c *forge.Capabilities, n int) { c.Toolchains[0].Version = x(n) }},
		{"sandboxes[0].levels", forge.MaxSandboxLevels, func(c *forge.Capabilities, n int) { c.Sandboxes[0].Levels = list(n, numbered("l")) }},
		{"devices", forge.MaxDevices, func(c *forge.Capabilities, n int) {
			c.Devices = list(n, func(i int) forge.DeviceCount { return forge.DeviceCount{Kind: fmt.Sprint(i), Count: 1} })
		}},
		{"devices[0].count", forge.MaxDeviceCount, func(c *forge.Capabilities, n int) { c.Devices[0].Count = uint16(n) }},
		{"labels", forge.MaxLabels, func(c *forge.Capabilities, n int) { c.Labels = list(n, numbered("l")) }},
		{"labels[0]", forge.MaxName, func(c *forge.Capabilities, n int) { c.Labels[0] = x(n) }},
		{"features", forge.MaxFeatures, func(c *forge.Capabilities, n int) { c.Features = list(n, numbered("f")) }},
		{"features[0]", forge.MaxName, func(c *forge.Capabilities, n int) { c.Features[0] = x(n) }},
	} {
		t.Run(bound.path, func(t *testing.T) {
			at, past := goodCapabilities(), goodCapabilities()
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

func TestWhatIsListedTwiceOrCannotBeIsRefused(t *testing.T) {
	for _, test := range []struct {
		path  string
		spoil func(*forge.Capabilities)
	}{
		{"schema_version", func(c *forge.Capabilities) { c.SchemaVersion++ }},
		{"platform.os", func(c *forge.Capabilities) { c.Platform.OS = "" }},
		{"toolchains[3]", func(c *forge.Capabilities) { c.Toolchains = append(c.Toolchains, c.Toolchains[0]) }},
		{"toolchains[1]", func(c *forge.Capabilities) { c.Toolchains[1].Version = c.Toolchains[0].Version }}, // but for warm
		{"toolchains[0].source", func(c *forge.Capabilities) { c.Toolchains[0].Source = 3 }},
		{"toolchains[2].verified", func(c *forge.Capabilities) { c.Toolchains[2].Verified = true }},
		{"sandboxes[0].kind", func(c *forge.Capabilities) { c.Sandboxes[0].Kind = 4 }},
		{"sandboxes[1]", func(c *forge.Capabilities) { c.Sandboxes[1].Kind = c.Sandboxes[0].Kind }},
		{"sandboxes[1].levels[1]", func(c *forge.Capabilities) { c.Sandboxes[1].Levels[1] = c.Sandboxes[1].Levels[0] }},
		{"devices[0].count", func(c *forge.Capabilities) { c.Devices[0].Count = 0 }},
		{"devices[1]", func(c *forge.Capabilities) { c.Devices[1].Kind = c.Devices[0].Kind }},
		{"labels[1]", func(c *forge.Capabilities) { c.Labels[1] = c.Labels[0] }},
		{"labels[0]", func(c *forge.Capabilities) { c.Labels[0] = "a b" }},
		{"features[1]", func(c *forge.Capabilities) { c.Features[1] = c.Features[0] }},
	} {
		c := goodCapabilities()
		test.spoil(&c)
		if diff := cmp.Diff([]string{test.path}, paths(t, c.Validate())); diff != "" {
			t.Errorf("%v: %s", c.Validate(), diff)
		}
	}
}

func TestNoSnapshotCanClaimWhatOnlyTheServerGives(t *testing.T) {
	for _, feature := range []string{"signing", "confidential", "trusted-network"} {
		c := goodCapabilities()
		c.Features = append(c.Features, feature)
		if diff := cmp.Diff([]string{"features[2]"}, paths(t, c.Validate())); diff != "" {
			t.Errorf("%s: %s", feature, diff)
		}
	}
	// Nor is there a field for it: trust, pool and all that goes with them stand in forge.Runner.
	for field := range reflect.TypeFor[forge.Capabilities]().Fields() {
		for _, word := range []string{"trust", "pool", "sign", "role", "disabled", "draining", "reserved"} {
			if strings.Contains(strings.ToLower(field.Name), word) {
				t.Errorf("the agent's own snapshot has a field %s", field.Name)
			}
		}
	}
}
