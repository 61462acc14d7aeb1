package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// MaxVersion bounds the version of an agent's program in bytes.
const MaxVersion = 256

// RegisterV1 opens the dialogue of an agent (07§13): which process on which folder and boot it is, and what it can do.
type RegisterV1 struct {
	Peer         protocol.PeerV1
	StateFolder  [16]byte
	Boot         [16]byte
	StartCounter uint64 // process starts on this folder, from 1
	TransportSeq uint64 // connections opened by this process, from 1
	Version      string `postcard:"max=256"`
	Digest       [32]byte
	Capabilities CapabilitiesV1
}

// NewRegister returns the wire form.
func NewRegister(m *forge.Register) *RegisterV1 {
	return &RegisterV1{
		Peer: protocol.NewPeer(m.Runner, m.Session), StateFolder: m.StateFolder.ULID, Boot: m.Boot.ULID,
		StartCounter: m.StartCounter, TransportSeq: m.TransportSeq, Version: m.Version,
		Digest: m.CapabilityDigest, Capabilities: newCapabilities(m.Capabilities),
	}
}

// Tag implements protocol.Message.
func (*RegisterV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeRegister, Schema: 1} }

// Speaker implements protocol.Speaker.
func (w *RegisterV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *RegisterV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	c.ID("state_folder", w.StateFolder)
	c.ID("boot", w.Boot)
	c.That(w.StartCounter > 0, "start_counter", "is missing")
	c.That(w.TransportSeq > 0, "transport_seq", "is missing")
	c.Line("version", w.Version, MaxVersion)
	c.In("capabilities", w.Capabilities.check(w.Digest))
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *RegisterV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.Register{
		Runner: w.Peer.RunnerID(), Session: w.Peer.SessionID(),
		StateFolder: forge.MakeID[forge.StateFolderID](w.StateFolder), Boot: forge.MakeID[forge.BootID](w.Boot),
		StartCounter: w.StartCounter, TransportSeq: w.TransportSeq, Version: w.Version,
		Capabilities: w.Capabilities.domain(), CapabilityDigest: w.Digest,
	}, nil
}
