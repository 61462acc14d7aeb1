package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLeaseReject(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.LeaseRejectV1){
		"without a runner":   func(w *agentv1.LeaseRejectV1) { w.Context.Peer.Runner = [16]byte{} },
		"without a session":  func(w *agentv1.LeaseRejectV1) { w.Context.Peer.Session = [16]byte{} },
		"without a job":      func(w *agentv1.LeaseRejectV1) { w.Context.Work.Job = [16]byte{} },
		"without an attempt": func(w *agentv1.LeaseRejectV1) { w.Context.Work.Attempt = [16]byte{} },
		"without a lease":    func(w *agentv1.LeaseRejectV1) { w.Context.Work.Lease = [16]byte{} },
		"without a spec":     func(w *agentv1.LeaseRejectV1) { w.Context.Work.Spec = [32]byte{} },
	})
}

func FuzzLeaseReject(f *testing.F) { protocoltest.Fuzz[*agentv1.LeaseRejectV1](f) }
