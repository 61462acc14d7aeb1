package core_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// A slot is given away by the daemon as soon as a result is recorded, and free a moment later.

// full returns an agent all of whose slots are taken; the attempt that it returns is on its way out.
func full(t *testing.T) (*agent, forge.AttemptContext) {
	a := online(t)
	leaving := a.asking(1)
	a.running(2)
	a.running(3)
	a.ack(forge.CompletionAccepted)
	effect[core.CleanUp](a)
	a.forget()
	return a, leaving
}

// lacksDisk tells the agent that its disk is a little too small for a job, while the files of so many attempts are being removed.
func (a *agent) lacksDisk(removing int) {
	short := machine()
	short.Free.Disk, short.Removing = spec().Resources.Disk-1, removing
	a.step(core.Command{Kind: core.CommandAdmission, Admission: short})
	a.forget()
}

// oneWaits makes two offers, and returns the first: it waits for disk, and the second is rejected for want of it.
func (a *agent) oneWaits() forge.AttemptContext {
	first := a.offer(2)
	notSent[*forge.LeaseReject](a, "while room is being made")
	second := a.offer(3)
	if _, m := sent[*forge.LeaseReject](a); m.Context != second || m.Reason != forge.RejectDiskInsufficient {
		a.t.Fatalf("rejected %+v", m)
	}
	return first
}

// Case T58: what is accepted can start. An offer for the slot of an attempt that is being removed waits until it is free.
func TestAnOfferForASlotThatIsBeingClearedIsAcceptedOnceItIs(t *testing.T) {
	a, leaving := full(t)
	c := a.offer(4)
	a.receive(&forge.LeaseOffer{Context: c, Spec: encode(spec())}) // a copy
	notSent[*forge.LeaseAccept](a, "before there is room")
	notSent[*forge.LeaseReject](a, "while room is being made")
	a.step(core.CleanedUp{Attempt: leaving.Attempt})
	a.grant(c)
	a.is(c, forge.AttemptAccepted)
	notSent[*forge.LeaseAccept](a, "a second time")
}

// Disk is given away with the slot: where it is what the machine has least of, slots are free and the offer has no room yet.
func TestAnOfferForTheDiskOfAnAttemptThatIsBeingClearedIsAcceptedOnceItIs(t *testing.T) {
	a := online(t)
	leaving := a.asking(1)
	a.ack(forge.CompletionAccepted)
	effect[core.CleanUp](a)
	a.lacksDisk(0)
	first := a.oneWaits()
	a.step(core.Command{Kind: core.CommandAdmission, Admission: machine()})
	a.step(core.CleanedUp{Attempt: leaving.Attempt})
	a.grant(first)
	a.is(first, forge.AttemptAccepted)
}

// The files of an attempt go after the attempt is counted out.
func TestAnOfferForTheDiskOfFilesThatAreBeingRemovedIsAcceptedOnceTheyAreGone(t *testing.T) {
	a := online(t)
	a.lacksDisk(1)
	first := a.oneWaits()
	a.step(core.Command{Kind: core.CommandAdmission, Admission: machine()})
	a.grant(first)
	a.is(first, forge.AttemptAccepted)
}

func TestAnOfferWhoseDiskDoesNotComeIsRejectedForWantOfIt(t *testing.T) {
	a := online(t)
	a.asking(1)
	a.ack(forge.CompletionAccepted)
	effect[core.CleanUp](a)
	a.lacksDisk(0)
	c := a.offer(2)
	a.until(policy.OfferTTL / 2)
	if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectDiskInsufficient {
		t.Fatalf("rejected %+v", m)
	}
}

func TestNoMoreOffersWaitThanThereAreSlotsBeingCleared(t *testing.T) {
	a, leaving := full(t)
	first := a.offer(4)
	second := a.offer(5)
	if _, m := sent[*forge.LeaseReject](a); m.Context != second || m.Reason != forge.RejectResourcePressure {
		t.Fatalf("rejected %+v", m)
	}
	a.step(core.CleanedUp{Attempt: leaving.Attempt})
	a.grant(first)
}

func TestAnOfferThatWaitsForTooLongIsRejectedWhileItStillStands(t *testing.T) {
	a, leaving := full(t)
	c := a.offer(4)
	a.until(policy.OfferTTL/2 - 1)
	notSent[*forge.LeaseReject](a, "before half of its time is over")
	a.until(1)
	if _, m := sent[*forge.LeaseReject](a); m.Context != c || m.Reason != forge.RejectResourcePressure {
		t.Fatalf("rejected %+v", m)
	}
	a.step(core.CleanedUp{Attempt: leaving.Attempt})
	notSent[*forge.LeaseAccept](a, "of what was rejected")
}

func TestAnOfferThatWaitsIsRejectedByADrain(t *testing.T) {
	a, leaving := full(t)
	a.offer(4)
	a.step(core.Command{Kind: core.CommandDrain})
	a.step(core.CleanedUp{Attempt: leaving.Attempt})
	if _, m := sent[*forge.LeaseReject](a); m.Reason != forge.RejectDraining {
		t.Fatalf("rejected %+v", m)
	}
}

// After a resync the daemon offers again what still stands.
func TestAnOfferThatWaitsIsForgottenWithItsConnection(t *testing.T) {
	a, leaving := full(t)
	c := a.offer(4)
	a.step(core.Closed{Seq: a.seq, Reason: forge.CloseLost})
	a.step(core.CleanedUp{Attempt: leaving.Attempt})
	a.gone(c)
}
