package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// PhaseChangeV1 reports that an attempt has entered a phase.
type PhaseChangeV1 struct {
	Context protocol.ContextV1
	Seq     uint64 // of the attempt's events, from 1
	Phase   PhaseV1
}

// NewPhaseChange returns the wire form.
func NewPhaseChange(m *forge.PhaseChange) *PhaseChangeV1 {
	return &PhaseChangeV1{Context: protocol.NewContext(m.Context), Seq: m.Seq, Phase: newPhase(m.Phase)}
}

// Tag implements protocol.Message.
func (*PhaseChangeV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypePhase, Schema: 1} }

// Speaker implements protocol.Speaker.
func (w *PhaseChangeV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message. An unknown phase is no fault: the daemon keeps the one it has.
func (w *PhaseChangeV1) Validate() error {
	var c protocol.Check
	c.In("context", w.Context.Validate())
	c.That(w.Seq != 0, "seq", "is missing")
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *PhaseChangeV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.PhaseChange{Context: w.Context.Domain(), Seq: w.Seq, Phase: w.Phase.domain()}, nil
}
