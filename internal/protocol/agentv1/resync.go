package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// ResyncV1 is the first message after registration (09§116): every lease of which anything is left on the agent.
type ResyncV1 struct {
	Peer     protocol.PeerV1
	Nonce    uint64
	Digest   [32]byte       // of the capability snapshot
	Attempts []ResyncItemV1 `postcard:"max=256"`
}

// ResyncItemV1 is one lease.
type ResyncItemV1 struct {
	Work     protocol.WorkV1
	Phase    PhaseV1
	EventSeq uint64
	LogNext  uint64 // the first frame that no daemon has acknowledged
}

// NewResync returns the wire form.
func NewResync(m *forge.Resync) *ResyncV1 {
	w := &ResyncV1{Peer: protocol.NewPeer(m.Runner, m.Session), Nonce: uint64(m.Nonce), Digest: m.CapabilityDigest}
	for _, i := range m.Attempts {
		work := protocol.WorkV1{Job: i.Job.ULID, Attempt: i.Attempt.ULID, Lease: i.Lease.ULID, Spec: i.Spec}
		w.Attempts = append(w.Attempts, ResyncItemV1{work, newPhase(i.Phase), i.EventSeq, uint64(i.LogNext)})
	}
	return w
}

// Tag implements protocol.Message.
func (*ResyncV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeResync, Schema: 1} }

// Speaker implements protocol.Speaker.
func (w *ResyncV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *ResyncV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	c.That(w.Nonce != 0, "nonce", "is missing")
	for i := range w.Attempts {
		c.Item("attempts", i, w.Attempts[i].Work.Validate())
	}
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *ResyncV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.Resync{
		Runner: w.Peer.RunnerID(), Session: w.Peer.SessionID(), Nonce: forge.Nonce(w.Nonce), CapabilityDigest: w.Digest,
	}
	for _, i := range w.Attempts {
		c := i.Work.Of(w.Peer)
		m.Attempts = append(m.Attempts, forge.ResyncItem{
			Job: c.Job, Attempt: c.Attempt, Lease: c.Lease, Spec: c.Spec,
			Phase: i.Phase.domain(), EventSeq: i.EventSeq, LogNext: forge.LogSeq(i.LogNext),
		})
	}
	return m, nil
}
