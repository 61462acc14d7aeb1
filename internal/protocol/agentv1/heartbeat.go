package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// HeartbeatV1 renews the leases that it names (09§80). Its body is built when it is written.
type HeartbeatV1 struct {
	Peer      protocol.PeerV1
	Nonce     uint64
	State     AgentStateV1
	Digest    [32]byte           // of the capability snapshot
	Attempts  []HeartbeatItemV1  `postcard:"max=256"`
	Resources *ResourceSummaryV1 // absent while the agent has not measured
}

// HeartbeatItemV1 is one granted lease.
type HeartbeatItemV1 struct {
	Attempt [16]byte
	Lease   [16]byte
	Phase   PhaseV1
}

// NewHeartbeat returns the wire form.
func NewHeartbeat(m *forge.Heartbeat) *HeartbeatV1 {
	w := &HeartbeatV1{
		Peer: protocol.NewPeer(m.Runner, m.Session), Nonce: uint64(m.Nonce), State: AgentStateV1(agentStates.Wire(m.State)),
		Digest: m.CapabilityDigest, Resources: newResourceSummary(m.Resources),
	}
	for _, i := range m.Attempts {
		w.Attempts = append(w.Attempts, HeartbeatItemV1{i.Attempt.ULID, i.Lease.ULID, newPhase(i.Phase)})
	}
	return w
}

// Tag implements protocol.Message.
func (*HeartbeatV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeHeartbeat, Schema: 1} }

// Speaker implements protocol.Speaker.
func (w *HeartbeatV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *HeartbeatV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	c.That(w.Nonce != 0, "nonce", "is missing")
	for i := range w.Attempts {
		c.ID("attempts.attempt", w.Attempts[i].Attempt)
		c.ID("attempts.lease", w.Attempts[i].Lease)
	}
	c.In("resources", w.Resources.validate())
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *HeartbeatV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.Heartbeat{
		Runner: w.Peer.RunnerID(), Session: w.Peer.SessionID(), Nonce: forge.Nonce(w.Nonce), State: w.State.domain(),
		CapabilityDigest: w.Digest, Resources: w.Resources.domain(),
	}
	for _, i := range w.Attempts {
		m.Attempts = append(m.Attempts, forge.HeartbeatItem{
			Attempt: forge.MakeID[forge.AttemptID](i.Attempt), Lease: forge.MakeID[forge.LeaseID](i.Lease),
			Phase: i.Phase.domain(),
		})
	}
	return m, nil
}
