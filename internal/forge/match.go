package forge

import (
	"fmt"
	"iter"
	"slices"
)

// Need is the part of a spec that decides which runners can take its job.
type Need struct {
	Constraints Constraints
	Sandbox     SandboxNeed
	Resources   Resources
	Features    []string // that follow from what the spec asks for
}

// Need extracts it.
func (s *JobSpec) Need() Need {
	n := Need{Constraints: s.Constraints, Sandbox: s.Sandbox, Resources: s.Resources}
	if s.Network == NetworkHost {
		n.Features = []string{FeatureHostNetwork}
	}
	return n
}

// MissKind says why a runner does not take a job. The numbers are stored and shown; they are only ever added.
type MissKind uint8

// The kinds of misses. Those up to MissPressure and those from MissBusy on pass by themselves; the others need another
// runner, or somebody who changes something.
const (
	MissDisconnected MissKind = 1
	MissDisabled     MissKind = 2
	MissDraining     MissKind = 3
	MissUnhealthy    MissKind = 4
	MissPressure     MissKind = 5
	MissPool         MissKind = 6
	MissTrust        MissKind = 7
	MissOS           MissKind = 8
	MissArch         MissKind = 9
	MissSandbox      MissKind = 10
	MissLabel        MissKind = 11
	MissDevice       MissKind = 12
	MissToolchain    MissKind = 13
	MissFeature      MissKind = 14
	MissCapacity     MissKind = 15 // too small even when it is empty
	MissRefused      MissKind = 16 // it refused this job before
	MissBusy         MissKind = 17 // large enough when it is empty
	MissHeld         MissKind = 18 // held for an older job
)

// Resource names as they stand in Miss.What, with MissCapacity and MissBusy.
const (
	WhatCPU    = "cpu"
	WhatMemory = "memory"
	WhatDisk   = "disk"
	WhatSlots  = "slots"
)

// Miss is one thing that keeps a runner from taking a job.
type Miss struct {
	Kind MissKind
	What string // that is wanted: the label, the pool, the device, the resource; with MissHeld, the job
	Got  string // that is there instead, where one word says it
	Need uint64 // amounts of a device (count) or resource (its unit)
	Have uint64
}

// Misses yields what the need asks for and the capabilities do not give, in the order of the kinds. Pool, trust and what
// changes from minute to minute are not looked at: an agent does not know the former and a scheduler adds both.
func (n *Need) Misses(c *Capabilities) iter.Seq[Miss] {
	return func(yield func(Miss) bool) {
		_ = n.platformMisses(c, yield) && n.sandboxMisses(c, yield) && n.labelMisses(c, yield) &&
			n.deviceMisses(c, yield) && n.toolchainMisses(c, yield) && n.featureMisses(c, yield) &&
			n.Resources.misses(MissCapacity, c.Resources, yield)
	}
}

// Met reports whether nothing is missing.
func (n *Need) Met(c *Capabilities) bool {
	for range n.Misses(c) {
		return false
	}
	return true
}

func (n *Need) platformMisses(c *Capabilities, yield func(Miss) bool) bool {
	if os := n.Constraints.OS; os != "" && os != c.Platform.OS && !yield(Miss{Kind: MissOS, What: os, Got: c.Platform.OS}) {
		return false
	}
	arch := n.Constraints.Arch
	return arch == "" || arch == c.Platform.Arch || yield(Miss{Kind: MissArch, What: arch, Got: c.Platform.Arch})
}

func (n *Need) sandboxMisses(c *Capabilities, yield func(Miss) bool) bool {
	i := slices.IndexFunc(c.Sandboxes, func(s Sandbox) bool { return s.Kind == n.Sandbox.Kind })
	if i < 0 {
		return yield(Miss{Kind: MissSandbox, What: n.Sandbox.Kind.String()})
	}
	for _, level := range n.Sandbox.Levels {
		if !slices.Contains(c.Sandboxes[i].Levels, level) &&
			!yield(Miss{Kind: MissSandbox, What: n.Sandbox.Kind.String() + "/" + level}) {
			return false
		}
	}
	return true
}

func (n *Need) labelMisses(c *Capabilities, yield func(Miss) bool) bool {
	for _, label := range n.Constraints.Labels {
		if !slices.Contains(c.Labels, label) && !yield(Miss{Kind: MissLabel, What: label}) {
			return false
		}
	}
	return true
}

func (n *Need) deviceMisses(c *Capabilities, yield func(Miss) bool) bool {
	for _, d := range n.Constraints.Devices {
		have := CountOf(c.Devices, d.Kind)
		if have < d.Count && !yield(Miss{Kind: MissDevice, What: d.Kind, Need: uint64(d.Count), Have: uint64(have)}) {
			return false
		}
	}
	return true
}

// CountOf returns how many devices of a kind are in a list.
func CountOf(devices []DeviceCount, kind string) uint16 {
	for _, d := range devices {
		if d.Kind == kind {
			return d.Count
		}
	}
	return 0
}

func (n *Need) toolchainMisses(c *Capabilities, yield func(Miss) bool) bool {
	if len(n.Constraints.Toolchains) == 0 || slices.Contains(c.Features, FeatureToolchains) {
		return true
	}
	for _, t := range n.Constraints.Toolchains {
		if !slices.ContainsFunc(c.Toolchains, t.metBy) && !yield(Miss{Kind: MissToolchain, What: t.String()}) {
			return false
		}
	}
	return true
}

func (t ToolchainNeed) metBy(have Toolchain) bool {
	return have.ID == t.ID && (t.Version == "" || have.Version == t.Version)
}

func (t ToolchainNeed) String() string {
	if t.Version == "" {
		return t.ID
	}
	return t.ID + " " + t.Version
}

// WarmToolchains counts those that the need asks for and that are there now. It is a preference, never a condition (07§157).
func (n *Need) WarmToolchains(c *Capabilities) int {
	warm := 0
	for _, t := range n.Constraints.Toolchains {
		if slices.ContainsFunc(c.Toolchains, func(have Toolchain) bool { return have.Warm && t.metBy(have) }) {
			warm++
		}
	}
	return warm
}

func (n *Need) featureMisses(c *Capabilities, yield func(Miss) bool) bool {
	for _, f := range n.Features {
		if !slices.Contains(c.Features, f) && !yield(Miss{Kind: MissFeature, What: f}) {
			return false
		}
	}
	return true
}

// Misses yields the amounts of r that free does not hold, as misses of that kind.
func (r Resources) Misses(kind MissKind, free Resources) iter.Seq[Miss] {
	return func(yield func(Miss) bool) { r.misses(kind, free, yield) }
}

func (r Resources) misses(kind MissKind, free Resources, yield func(Miss) bool) bool {
	if r.Fits(free) {
		return true
	}
	for _, m := range [...]Miss{
		{kind, WhatCPU, "", uint64(r.CPU), uint64(free.CPU)},
		{kind, WhatMemory, "", uint64(r.Memory), uint64(free.Memory)},
		{kind, WhatDisk, "", uint64(r.Disk), uint64(free.Disk)},
		{kind, WhatSlots, "", uint64(r.Slots), uint64(free.Slots)},
	} {
		if m.Need > m.Have && !yield(m) {
			return false
		}
	}
	return true
}

// amount writes one of the miss's numbers in the unit of what is missed.
func (m Miss) amount(n uint64) string {
	switch m.What {
	case WhatCPU:
		return MilliCPU(n).String()
	case WhatMemory, WhatDisk:
		return about(Bytes(n))
	default:
		return fmt.Sprint(n)
	}
}

// about is an amount of bytes for people: whole where it is, else with one decimal, rounded down. A disk that fills stays the same
// in it from one look to the next, mostly.
func about(b Bytes) string {
	for _, u := range sizeUnits {
		if b < u.bytes || u.bytes == 1 || b%u.bytes == 0 {
			continue
		}
		whole, tenths := b/u.bytes, b%u.bytes*10/u.bytes
		if tenths == 0 {
			return fmt.Sprintf("%d %s", whole, u.suffix)
		}
		return fmt.Sprintf("%d.%d %s", whole, tenths, u.suffix)
	}
	return b.String()
}

// String says in a few words what is missed, as a reason in "why does my job wait".
func (m Miss) String() string {
	switch m.Kind {
	case MissPool, MissTrust, MissOS, MissArch:
		return fmt.Sprintf("%v is %s, not %s", m.Kind, m.Got, m.What)
	case MissSandbox, MissLabel, MissToolchain, MissFeature:
		return fmt.Sprintf("%v %s missing", m.Kind, m.What)
	case MissDevice:
		return fmt.Sprintf("device %s %d > %d", m.What, m.Need, m.Have)
	case MissCapacity:
		return fmt.Sprintf("%s %s > %s", m.What, m.amount(m.Need), m.amount(m.Have))
	case MissBusy:
		return fmt.Sprintf("busy: %s %s > %s free", m.What, m.amount(m.Need), m.amount(m.Have))
	case MissHeld:
		return "held for older job " + m.What
	case MissPressure:
		return "under pressure: " + m.Got
	default:
		return m.Kind.String()
	}
}

var missNames = []string{
	"", "not connected", "disabled", "draining", "unhealthy", "under pressure", "pool", "trust", "os", "arch", "sandbox",
	"label", "device", "toolchain", "feature", "too small", "refused it before", "busy", "held",
}

func (k MissKind) String() string { return name(missNames, uint8(k)) }

// Passes reports whether a miss of this kind goes away without anybody changing the job or the fleet.
func (k MissKind) Passes() bool {
	return k >= MissDisconnected && k <= MissPressure || k >= MissBusy && k <= MissHeld
}
