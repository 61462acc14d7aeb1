package agentv1_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func TestLeaseOffer(t *testing.T) {
	protocoltest.Message(t, map[string]func(*agentv1.LeaseOfferV1){
		"without a runner":          func(w *agentv1.LeaseOfferV1) { w.Context.Peer.Runner = [16]byte{} },
		"without a session":         func(w *agentv1.LeaseOfferV1) { w.Context.Peer.Session = [16]byte{} },
		"without a job":             func(w *agentv1.LeaseOfferV1) { w.Context.Work.Job = [16]byte{} },
		"without an attempt":        func(w *agentv1.LeaseOfferV1) { w.Context.Work.Attempt = [16]byte{} },
		"without a lease":           func(w *agentv1.LeaseOfferV1) { w.Context.Work.Lease = [16]byte{} },
		"without a spec":            func(w *agentv1.LeaseOfferV1) { w.Context.Work.Spec = [32]byte{} },
		"without a spec to be had":  func(w *agentv1.LeaseOfferV1) { w.Spec = agentv1.SpecV1{} },
		"with an empty spec":        func(w *agentv1.LeaseOfferV1) { *w.Spec.Inline = nil },
		"by a reference to nothing": func(w *agentv1.LeaseOfferV1) { w.Spec = agentv1.SpecV1{Ref: &protocol.RefV1{Bytes: 1}} },
		"by a reference to too much": func(w *agentv1.LeaseOfferV1) {
			w.Spec = agentv1.SpecV1{Ref: &protocol.RefV1{Digest: [32]byte{1}, Bytes: agentv1.MaxSpecBytes + 1}}
		},
		"by a reference to no bytes": func(w *agentv1.LeaseOfferV1) { w.Spec = agentv1.SpecV1{Ref: &protocol.RefV1{Digest: [32]byte{1}}} },
	})
}

func FuzzLeaseOffer(f *testing.F) { protocoltest.Fuzz[*agentv1.LeaseOfferV1](f) }
