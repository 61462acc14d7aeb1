package forge

import "github.com/forgeyard/forgeyard/internal/digest"

// Digest identifies the snapshot (07§19): that of its canonical form, so neither the order in which probes found things
// nor a thing found twice changes it. Heartbeats carry it, and a daemon that knows another asks for the snapshot.
//
// The encoding is internal to this file and only ever hashed: every integer in eight bytes, every list and text behind
// its length, so that no two snapshots have the same bytes.
func (c Capabilities) Digest() digest.Digest {
	c = c.Canonical()
	b := appendInts(nil, uint64(c.SchemaVersion))
	b = appendTexts(b, c.Platform.OS, c.Platform.Arch, c.Platform.Version)
	b = appendInts(b, uint64(c.Resources.CPU), uint64(c.Resources.Memory), uint64(c.Resources.Disk), uint64(c.Resources.Slots))
	b = appendInts(b, uint64(len(c.Toolchains)))
	for _, t := range c.Toolchains {
		b = appendTexts(b, t.ID, t.Version)
		b = append(b, byte(t.Source), flag(t.Verified), flag(t.Warm))
	}
	b = appendInts(b, uint64(len(c.Sandboxes)))
	for _, s := range c.Sandboxes {
		b = appendList(append(b, byte(s.Kind)), s.Levels)
	}
	b = appendInts(b, uint64(len(c.Devices)))
	for _, d := range c.Devices {
		b = appendInts(appendTexts(b, d.Kind), uint64(d.Count))
	}
	b = appendList(b, c.Labels)
	b = appendList(b, c.Features)
	return digest.Capabilities.Sum(b)
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(appendInts(b, uint64(len(s))), s...)
	}
	return b
}

func appendList(b []byte, texts []string) []byte {
	return appendTexts(appendInts(b, uint64(len(texts))), texts...)
}
