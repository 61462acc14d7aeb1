package forge

import (
	"cmp"
	"slices"
)

// CapabilitySchema is the version of the snapshot that this build makes.
const CapabilitySchema uint16 = 1

// Bounds of the lists of a snapshot.
const (
	MaxToolchains    = 512
	MaxSandboxes     = 8
	MaxSandboxLevels = 32
	MaxDevices       = 64 // kinds of devices
	MaxDeviceCount   = 1024
	MaxLabels        = 64
	MaxFeatures      = 64
)

// Capabilities is a runner's snapshot of what it can do (07§18). Everything in it is the agent's own word, so there is no
// pool and no trust here: those are given by the server (07§22, type Runner), and no snapshot can claim them.
type Capabilities struct {
	SchemaVersion uint16
	Platform      Platform
	Resources     Resources // all that the machine has; Slots is the most jobs at a time
	Toolchains    []Toolchain
	Sandboxes     []Sandbox
	Devices       []DeviceCount
	Labels        []string // hints: site, owner (07§133)
	Features      []string // what else the agent can do, by name
}

// Platform is an operating system and what it runs on, spelled as Go spells them: linux, windows, darwin; amd64, arm64.
type Platform struct {
	OS      string
	Arch    string
	Version string // of the system, for people
}

// ToolchainSource says where a toolchain comes from.
type ToolchainSource uint8

// The sources.
const (
	ToolchainManaged ToolchainSource = 1 // an immutable tree that the registry knows by digest
	ToolchainHost    ToolchainSource = 2 // found on the machine: whatever it is today (07§155)
)

// Toolchain is a compiler or tool set that jobs may ask for (07§156).
type Toolchain struct {
	ID       string
	Version  string
	Source   ToolchainSource
	Verified bool // its bytes are those of its digest; never true of a host toolchain
	Warm     bool // there now; otherwise it can be fetched (07§159)
}

// SandboxKind says what confines a job.
type SandboxKind uint8

// The kinds of sandboxes.
const (
	SandboxNative  SandboxKind = 1 // our own, of Linux namespaces
	SandboxOCI     SandboxKind = 2 // a container engine's
	SandboxProcess SandboxKind = 3 // none: a process group on the host
)

// Sandbox is one way in which a runner can confine a job, with the walls that this machine gives it, by name: an agent
// lists what its kernel really has, and a job may insist on any of them.
type Sandbox struct {
	Kind   SandboxKind
	Levels []string
}

// DeviceCount says how many devices of a kind are there, or are needed.
type DeviceCount struct {
	Kind  string // gpu, android, …
	Count uint16
}

// Features that the scheduler knows. An agent may list others.
const (
	FeatureHostNetwork = "network.host"           // local policy lets jobs use the host's network
	FeatureToolchains  = "toolchains.materialize" // any managed toolchain can be fetched (07§158)
)

// privileged are the features that only the server can give (07§22). A snapshot that lists one is refused.
var privileged = []string{"signing", "confidential", "trusted-network"}

// Canonical returns the snapshot in its one spelling: lists sorted, the same thing listed once. It shares nothing with c.
func (c Capabilities) Canonical() Capabilities {
	c.Toolchains = canonical(c.Toolchains, compareToolchains)
	sandboxes := make([]Sandbox, 0, len(c.Sandboxes))
	for _, s := range c.Sandboxes {
		sandboxes = append(sandboxes, Sandbox{s.Kind, canonical(s.Levels, cmp.Compare[string])})
	}
	c.Sandboxes = canonical(sandboxes, compareSandboxes)
	c.Devices = canonical(c.Devices, func(a, b DeviceCount) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Count, b.Count))
	})
	c.Labels = canonical(c.Labels, cmp.Compare[string])
	c.Features = canonical(c.Features, cmp.Compare[string])
	return c
}

// canonical returns a sorted copy without repetitions; nil if nothing is in it.
func canonical[T any](items []T, compare func(a, b T) int) []T {
	if len(items) == 0 {
		return nil
	}
	items = slices.Clone(items)
	slices.SortFunc(items, compare)
	return slices.CompactFunc(items, func(a, b T) bool { return compare(a, b) == 0 })
}

func compareToolchains(a, b Toolchain) int {
	return cmp.Or(
		cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Source, b.Source),
		cmp.Compare(flag(a.Verified), flag(b.Verified)), cmp.Compare(flag(a.Warm), flag(b.Warm)),
	)
}

func compareSandboxes(a, b Sandbox) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Levels, b.Levels))
}

// Validate checks the bounds and that nothing is listed twice, not even with other properties.
func (c Capabilities) Validate() error {
	var check checker
	var root *where
	if c.SchemaVersion != CapabilitySchema {
		check.add(root.in("schema_version"), "%d is not %d", c.SchemaVersion, CapabilitySchema)
	}
	check.name(root.in("platform").in("os"), c.Platform.OS)
	check.name(root.in("platform").in("arch"), c.Platform.Arch)
	check.title(root.in("platform").in("version"), c.Platform.Version, MaxTitle)
	check.resources(root.in("resources"), c.Resources, Resources{})
	check.toolchains(c.Toolchains)
	check.sandboxes(c.Sandboxes)
	check.devices(nil, c.Devices)
	check.labels(nil, c.Labels)
	check.features(c.Features)
	return check.err()
}

func (c *checker) toolchains(list []Toolchain) {
	var root *where
	if !c.count(root.in("toolchains"), len(list), MaxToolchains) {
		return
	}
	for i, t := range list {
		at := root.item("toolchains", i)
		c.name(at.in("id"), t.ID)
		c.label(at.in("version"), t.Version)
		c.known(at.in("source"), t.Source == ToolchainManaged || t.Source == ToolchainHost, t.Source)
		if t.Source == ToolchainHost && t.Verified {
			c.add(at.in("verified"), "a toolchain of the host has no digest to verify")
		}
	}
	type key struct {
		id, version string
		source      ToolchainSource
	}
	unique(c, nil, "toolchains", list, func(t Toolchain) key { return key{t.ID, t.Version, t.Source} })
}

func (c *checker) sandboxes(list []Sandbox) {
	var root *where
	if !c.count(root.in("sandboxes"), len(list), MaxSandboxes) {
		return
	}
	for i, s := range list {
		at := root.item("sandboxes", i)
		c.known(at.in("kind"), s.Kind.Valid(), s.Kind)
		c.words(at, "levels", s.Levels, MaxSandboxLevels)
	}
	unique(c, nil, "sandboxes", list, func(s Sandbox) SandboxKind { return s.Kind })
}

func (c *checker) devices(up *where, list []DeviceCount) {
	if !c.count(up.in("devices"), len(list), MaxDevices) {
		return
	}
	for i, d := range list {
		c.name(up.item("devices", i).in("kind"), d.Kind)
		number(c, up.item("devices", i).in("count"), d.Count, 1, MaxDeviceCount)
	}
	unique(c, up, "devices", list, func(d DeviceCount) string { return d.Kind })
}

func (c *checker) labels(up *where, list []string) { c.words(up, "labels", list, MaxLabels) }

func (c *checker) features(list []string) {
	var root *where
	c.words(nil, "features", list, MaxFeatures)
	for i, feature := range list {
		if slices.Contains(privileged, feature) {
			c.add(root.item("features", i), "%s is given by the server and cannot be claimed", feature)
		}
	}
}

// words checks a list of labels.
func (c *checker) words(up *where, field string, list []string, most int) {
	if !c.count(up.in(field), len(list), most) {
		return
	}
	for i, w := range list {
		c.label(up.item(field, i), w)
	}
	unique(c, up, field, list, func(w string) string { return w })
}

var (
	sourceNames  = []string{"", "managed", "host"}
	sandboxNames = []string{"", "native", "oci", "process"}
)

func (s ToolchainSource) String() string { return name(sourceNames, uint8(s)) }
func (k SandboxKind) String() string     { return name(sandboxNames, uint8(k)) }

// ParseSandboxKind reads what String writes.
func ParseSandboxKind(s string) (SandboxKind, error) {
	return word[SandboxKind]("sandbox", sandboxNames, s)
}

// Valid reports whether k is one of the kinds.
func (k SandboxKind) Valid() bool { return k >= SandboxNative && k <= SandboxProcess }
