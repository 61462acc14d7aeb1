package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// What an agent checks before it takes an offer, and once more before it starts anything.

// offerOf offers job n with these bytes under the id of those.
func (a *agent) offerOf(n byte, id forge.JobSpecID, bytes []byte) forge.AttemptContext {
	a.t.Helper()
	c := context(n)
	c.Spec = id
	a.receive(&forge.LeaseOffer{Context: c, Spec: bytes})
	return c
}

// gpuJob needs a GPU.
func gpuJob() []byte {
	s := spec()
	s.Constraints.Devices = []forge.DeviceCount{{Kind: "gpu", Count: 1}}
	return encode(s)
}

func TestAnOfferThatCannotBeTakenIsRejectedWithItsReason(t *testing.T) {
	good := encode(spec())
	changed := append([]byte(nil), good...)
	changed[len(changed)-1] ^= 1
	with := func(change func(s *forge.JobSpec)) []byte {
		s := spec()
		change(&s)
		return encode(s)
	}
	hostNetwork := with(func(s *forge.JobSpec) { s.Network = forge.NetworkHost })
	hugeDisk := with(func(s *forge.JobSpec) { s.Resources.Disk = 100 * forge.GiB })
	hugeMemory := with(func(s *forge.JobSpec) { s.Resources.Memory = 100 * forge.GiB })
	small := machine()
	small.Free.Disk, small.Free.Memory = 50*forge.GiB, 50*forge.GiB
	for _, test := range []struct {
		name    string
		prepare core.Event
		id      forge.JobSpecID
		bytes   []byte
		reason  forge.RejectReason
	}{
		{"other bytes than the id's", nil, jobspec.ID(good), changed, forge.RejectSpecMismatch},
		{"no bytes at all", nil, jobspec.ID(good), nil, forge.RejectSpecMismatch},
		{"bytes that are no spec", nil, jobspec.ID([]byte{1, 2, 3}), []byte{1, 2, 3}, forge.RejectUnsupportedSpec},
		{"a later version", nil, jobspec.ID([]byte{9, 9}), []byte{9, 9}, forge.RejectUnsupportedSpec},
		{"draining", core.Command{Kind: core.CommandDrain}, jobspec.ID(good), good, forge.RejectDraining},
		{"stopping", core.Command{Kind: core.CommandStop}, jobspec.ID(good), good, forge.RejectDraining},
		{"no GPU", nil, jobspec.ID(gpuJob()), gpuJob(), forge.RejectCapabilityChanged},
		{"local policy", nil, jobspec.ID(hostNetwork), hostNetwork, forge.RejectLocalPolicy},
		{"disk", core.Command{Kind: core.CommandAdmission, Admission: small}, jobspec.ID(hugeDisk), hugeDisk, forge.RejectDiskInsufficient},
		{"memory", core.Command{Kind: core.CommandAdmission, Admission: small}, jobspec.ID(hugeMemory), hugeMemory, forge.RejectResourcePressure},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := online(t)
			a.preparing(1) // else a stopping process would be gone
			if test.prepare != nil {
				a.step(test.prepare)
			}
			a.forget()
			c := a.offerOf(2, test.id, test.bytes)
			_, m := sent[*forge.LeaseReject](a)
			if diff := cmp.Diff(&forge.LeaseReject{Context: c, Reason: test.reason}, m); diff != "" {
				t.Fatal(diff)
			}
			a.gone(c)
			notSent[*forge.LeaseAccept](a, "for what was rejected")
			no[core.WriteRecord](a, "for what was rejected")
		})
	}
}

func TestAnOfferForAnotherProcessOrRunnerIsRejected(t *testing.T) {
	a := online(t)
	for _, c := range []forge.AttemptContext{
		{Lease: context(1).Lease, Spec: context(1).Spec, Runner: runner, Session: forge.AgentSessionID{ULID: forge.ULID{0: 'O'}}},
		{Lease: context(2).Lease, Spec: context(1).Spec, Runner: forge.RunnerID{ULID: forge.ULID{0: 'Q'}}, Session: session},
	} {
		a.receive(&forge.LeaseOffer{Context: c, Spec: encode(spec())})
		if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectOther {
			t.Fatalf("%+v", m)
		}
	}
	if len(a.core.Held()) > 0 {
		t.Fatal("an offer for somebody else was taken")
	}
}

func TestAnAgentTakesNoMoreThanItHasSlotsHoweverManyItIsOffered(t *testing.T) {
	a := online(t)
	for n := byte(1); n <= 3; n++ {
		a.running(n)
	}
	c := a.offer(4)
	if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectResourcePressure {
		t.Fatalf("%+v", m)
	}
	if len(a.core.Held()) != 3 {
		t.Fatalf("%d attempts are held", len(a.core.Held()))
	}
}

func TestAGPUThatIsGoneBeforeTheOfferRejectsIt(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandAdmission, Admission: other()})
	a.offerOf(1, jobspec.ID(gpuJob()), gpuJob())
	sent[*forge.LeaseAccept](a)
	a.step(core.Command{Kind: core.CommandAdmission, Admission: machine()})
	c := a.offerOf(2, jobspec.ID(gpuJob()), gpuJob())
	if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectCapabilityChanged {
		t.Fatalf("%+v", m)
	}
}

func TestAGPUThatIsGoneBetweenAcceptanceAndStartGivesTheLeaseBack(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandAdmission, Admission: other()})
	c := a.offerOf(1, jobspec.ID(gpuJob()), gpuJob())
	a.grant(c)
	a.step(core.Command{Kind: core.CommandAdmission, Admission: machine()})
	a.journal()
	no[core.Prepare](a, "without the GPU that it needs")
	if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectCapabilityChanged {
		t.Fatalf("%+v", m)
	}
	a.step(core.CleanedUp{Attempt: c.Attempt})
	effect[core.DropRecord](a)
	a.gone(c)
}

func TestCapabilitiesAreSentWhenTheyChangeAndWhenTheyAreAskedFor(t *testing.T) {
	a := online(t)
	a.step(core.Command{Kind: core.CommandAdmission, Admission: machine()})
	notSent[*forge.CapabilityUpdate](a, "although nothing changed")
	a.step(core.Command{Kind: core.CommandAdmission, Admission: other()})
	want := &forge.CapabilityUpdate{
		Runner: runner, Session: session, Capabilities: other().Capabilities, CapabilityDigest: other().Capabilities.Digest(),
	}
	_, m := sent[*forge.CapabilityUpdate](a)
	if diff := cmp.Diff(want, m); diff != "" {
		t.Fatal(diff)
	}
	a.receive(&forge.RefreshCapabilities{})
	_, m = sent[*forge.CapabilityUpdate](a)
	if diff := cmp.Diff(want, m); diff != "" {
		t.Fatal(diff)
	}
	if m := a.beat(); m.CapabilityDigest != want.CapabilityDigest {
		t.Fatal("the heartbeat has another digest")
	}
}
