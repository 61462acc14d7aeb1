package agentv1_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestRegistrationAccepted(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.RegistrationAcceptedV1){
		"before 1970":                           func(w *agentv1.RegistrationAcceptedV1) { w.Time = -1 },
		"with a time to live too short":         func(w *agentv1.RegistrationAcceptedV1) { w.Policy.TTL = uint64(time.Second) },
		"with a margin too long":                func(w *agentv1.RegistrationAcceptedV1) { w.Policy.Margin = uint64(protocol.MaxDuration) + 1 },
		"with a soft grace as long as the lead": func(w *agentv1.RegistrationAcceptedV1) { w.Policy.SoftGrace = w.Policy.KillLead },
		"with no connection":                    func(w *agentv1.RegistrationAcceptedV1) { *w.Transport = [16]byte{} },
	})
}

func FuzzRegistrationAccepted(f *testing.F) { protocoltest.Fuzz[*agentv1.RegistrationAcceptedV1](f) }
