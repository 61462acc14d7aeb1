package agentv1

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// CapabilityUpdateV1 replaces the capability snapshot (09§94). It is the whole snapshot each time (09§95).
type CapabilityUpdateV1 struct {
	Peer         protocol.PeerV1
	Digest       [32]byte // of the snapshot
	Capabilities CapabilitiesV1
}

// NewCapabilityUpdate returns the wire form.
func NewCapabilityUpdate(m *forge.CapabilityUpdate) *CapabilityUpdateV1 {
	return &CapabilityUpdateV1{
		Peer: protocol.NewPeer(m.Runner, m.Session), Digest: m.CapabilityDigest, Capabilities: newCapabilities(m.Capabilities),
	}
}

// Tag implements protocol.Message.
func (*CapabilityUpdateV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeCapabilityUpdate, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *CapabilityUpdateV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *CapabilityUpdateV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	c.In("capabilities", w.Capabilities.check(w.Digest))
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *CapabilityUpdateV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.CapabilityUpdate{
		Runner: w.Peer.RunnerID(), Session: w.Peer.SessionID(),
		Capabilities: w.Capabilities.domain(), CapabilityDigest: w.Digest,
	}, nil
}

// CapabilitiesV1 is a runner's snapshot of what it can do (07§18).
type CapabilitiesV1 struct {
	Schema     uint16
	Platform   PlatformV1
	Resources  ResourcesV1
	Toolchains []ToolchainV1 `postcard:"max=512"`
	Sandboxes  []SandboxV1   `postcard:"max=8"`
	Devices    []DeviceV1    `postcard:"max=64"`
	Labels     []string      `postcard:"max=64,elem=64"`
	Features   []string      `postcard:"max=64,elem=64"`
}

// PlatformV1 is an operating system and what it runs on.
type PlatformV1 struct {
	OS      string `postcard:"max=64"`
	Arch    string `postcard:"max=64"`
	Version string `postcard:"max=256"`
}

// ToolchainV1 is a compiler or tool set.
type ToolchainV1 struct {
	ID       string `postcard:"max=64"`
	Version  string `postcard:"max=64"`
	Source   ToolchainSourceV1
	Verified bool
	Warm     bool
}

// SandboxV1 is one way in which a runner can confine a job.
type SandboxV1 struct {
	Kind   SandboxKindV1
	Levels []string `postcard:"max=32,elem=64"`
}

// DeviceV1 says how many devices of a kind are there.
type DeviceV1 struct {
	Kind  string `postcard:"max=64"`
	Count uint16
}

func newCapabilities(c forge.Capabilities) CapabilitiesV1 {
	w := CapabilitiesV1{
		Schema:    c.SchemaVersion,
		Platform:  PlatformV1{OS: c.Platform.OS, Arch: c.Platform.Arch, Version: c.Platform.Version},
		Resources: newResources(c.Resources),
		Labels:    slices.Clone(c.Labels), Features: slices.Clone(c.Features),
	}
	for _, t := range c.Toolchains {
		source := ToolchainSourceV1(toolchainSources.Wire(t.Source))
		w.Toolchains = append(w.Toolchains, ToolchainV1{t.ID, t.Version, source, t.Verified, t.Warm})
	}
	for _, s := range c.Sandboxes {
		w.Sandboxes = append(w.Sandboxes, SandboxV1{SandboxKindV1(sandboxKinds.Wire(s.Kind)), slices.Clone(s.Levels)})
	}
	for _, d := range c.Devices {
		w.Devices = append(w.Devices, DeviceV1{d.Kind, d.Count})
	}
	return w
}

func (w *CapabilitiesV1) domain() forge.Capabilities {
	c := forge.Capabilities{
		SchemaVersion: w.Schema,
		Platform:      forge.Platform{OS: w.Platform.OS, Arch: w.Platform.Arch, Version: w.Platform.Version},
		Resources:     w.Resources.domain(),
		Labels:        w.Labels, Features: w.Features,
	}
	for _, t := range w.Toolchains {
		source := toolchainSources.Or(uint8(t.Source), 0)
		c.Toolchains = append(c.Toolchains, forge.Toolchain{
			ID: t.ID, Version: t.Version, Source: source, Verified: t.Verified, Warm: t.Warm,
		})
	}
	for _, s := range w.Sandboxes {
		c.Sandboxes = append(c.Sandboxes, forge.Sandbox{Kind: sandboxKinds.Or(uint8(s.Kind), 0), Levels: s.Levels})
	}
	for _, d := range w.Devices {
		c.Devices = append(c.Devices, forge.DeviceCount{Kind: d.Kind, Count: d.Count})
	}
	return c
}

// check validates the snapshot and that its digest is the one that was sent with it.
func (w *CapabilitiesV1) check(claimed digest.Digest) error {
	caps := w.domain()
	if err := caps.Validate(); err != nil {
		return err
	}
	var c protocol.Check
	c.That(caps.Digest() == claimed, "digest", "is not that of the snapshot")
	return c.Err()
}
