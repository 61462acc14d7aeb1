package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// RecoveryDecisionsV1 answers RecoverAttempts, in its order. Whatever was decided, the agent cleans up (07§108).
type RecoveryDecisionsV1 struct {
	Decisions []RecoveryDecisionV1 `postcard:"max=256"`
}

// RecoveryDecisionV1 is about one attempt.
type RecoveryDecisionV1 struct {
	Attempt [16]byte
	Verdict RecoveryVerdictV1
}

// NewRecoveryDecisions returns the wire form.
func NewRecoveryDecisions(m *forge.RecoveryDecisions) *RecoveryDecisionsV1 {
	w := &RecoveryDecisionsV1{}
	for _, d := range m.Decisions {
		verdict := RecoveryVerdictV1(recoveryVerdicts.Wire(d.Verdict))
		w.Decisions = append(w.Decisions, RecoveryDecisionV1{d.Attempt.ULID, verdict})
	}
	return w
}

// Tag implements protocol.Message.
func (*RecoveryDecisionsV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeRecoveryDecisions, Schema: 1}
}

// Validate implements protocol.Message.
func (w *RecoveryDecisionsV1) Validate() error {
	var c protocol.Check
	for _, d := range w.Decisions {
		c.ID("decisions.attempt", d.Attempt)
		c.That(recoveryVerdicts.Known(uint8(d.Verdict)), "decisions.verdict", "is not known")
	}
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *RecoveryDecisionsV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.RecoveryDecisions{}
	for _, d := range w.Decisions {
		m.Decisions = append(m.Decisions, forge.RecoveryDecision{
			Attempt: forge.MakeID[forge.AttemptID](d.Attempt), Verdict: recoveryVerdicts.Or(uint8(d.Verdict), 0),
		})
	}
	return m, nil
}
