package wire

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

// FromDomain returns the wire struct of a domain message, validated.
func FromDomain(m forge.Message) (protocol.Domain, error) {
	w := fromDomain(m)
	if w == nil {
		return nil, noMessage(m)
	}
	if err := w.Validate(); err != nil {
		return nil, fmt.Errorf("convert %T: %w", m, err)
	}
	return w, nil
}

func noMessage(m forge.Message) error {
	return fmt.Errorf("%w: %T is no message", protocol.ErrInvalid, m)
}

func fromDomain(m forge.Message) protocol.Domain {
	switch m := m.(type) {
	case *forge.Register:
		return agentv1.NewRegister(m)
	case *forge.RegistrationAccepted:
		return agentv1.NewRegistrationAccepted(m)
	case *forge.RegistrationRejected:
		return agentv1.NewRegistrationRejected(m)
	case *forge.Resync:
		return agentv1.NewResync(m)
	case *forge.ResyncReply:
		return agentv1.NewResyncReply(m)
	case *forge.RecoverAttempts:
		return agentv1.NewRecoverAttempts(m)
	case *forge.RecoveryDecisions:
		return agentv1.NewRecoveryDecisions(m)
	case *forge.LeaseOffer:
		return agentv1.NewLeaseOffer(m)
	case *forge.LeaseAccept:
		return agentv1.NewLeaseAccept(m)
	case *forge.LeaseAcceptAck:
		return agentv1.NewLeaseAcceptAck(m)
	case *forge.LeaseReject:
		return agentv1.NewLeaseReject(m)
	case *forge.Heartbeat:
		return agentv1.NewHeartbeat(m)
	case *forge.HeartbeatAck:
		return agentv1.NewHeartbeatAck(m)
	case *forge.PhaseChange:
		return agentv1.NewPhaseChange(m)
	case *forge.PhaseAck:
		return agentv1.NewPhaseAck(m)
	case *forge.LogFinal:
		return logv1.NewLogFinal(m)
	case *forge.LogFinalAck:
		return logv1.NewLogFinalAck(m)
	case *forge.LogAck:
		return logv1.NewLogAck(m)
	case *forge.Completion:
		return agentv1.NewCompletion(m)
	case *forge.CompletionAck:
		return agentv1.NewCompletionAck(m)
	case *forge.Cancel:
		return agentv1.NewCancel(m)
	case *forge.CancelAck:
		return agentv1.NewCancelAck(m)
	case *forge.CapabilityUpdate:
		return agentv1.NewCapabilityUpdate(m)
	case *forge.Error:
		return protocol.NewError(m)
	case *forge.GoAway:
		return protocol.NewGoAway(m)
	case *forge.Drain:
		return agentv1.NewDrain(m)
	case *forge.Resume:
		return agentv1.NewResume(m)
	case *forge.RefreshCapabilities:
		return agentv1.NewRefreshCapabilities(m)
	}
	return nil
}

// ToDomain returns the domain message of a wire struct, validated. A message that the domain has no value for is a
// *protocol.Violation: it does not belong where domain messages go.
func ToDomain(w protocol.Message) (forge.Message, error) {
	d, ok := w.(protocol.Domain)
	if !ok {
		return nil, &protocol.Violation{Fault: protocol.FaultState, Tag: w.Tag()}
	}
	m, err := d.Domain()
	if err != nil {
		return nil, &protocol.Violation{Fault: protocol.FaultMalformed, Tag: w.Tag(), Err: err}
	}
	return m, nil
}
