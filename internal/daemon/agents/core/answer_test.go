package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// What the rules say, in the words of the protocol.

func TestAnAcceptanceIsGrantedOrRefused(t *testing.T) {
	c := context(1, 1)
	for _, test := range []struct {
		name   string
		answer authority.Answer
		want   forge.LeaseAcceptAck
	}{
		{
			"granted",
			authority.Answer{Done: true, Verdicts: []forge.LeaseVerdict{renewed(1)}},
			forge.LeaseAcceptAck{Granted: true, HardTTL: renewed(1).HardTTL},
		},
		{
			"granted to be cancelled",
			authority.Answer{Done: true, Verdicts: []forge.LeaseVerdict{{Verdict: forge.VerdictContinue, HardTTL: 9, Cancel: forge.CancelUser}}},
			forge.LeaseAcceptAck{Granted: true, HardTTL: 9, Cancel: forge.CancelUser},
		},
		{
			"expired",
			authority.Answer{Refused: forge.RefusedExpired, Verdicts: []forge.LeaseVerdict{{Verdict: forge.VerdictStale}}},
			forge.LeaseAcceptAck{Refused: forge.RefusedExpired},
		},
		{
			"cancelled",
			authority.Answer{Refused: forge.RefusedCancelled, Verdicts: []forge.LeaseVerdict{{Verdict: forge.VerdictStale}}},
			forge.LeaseAcceptAck{Refused: forge.RefusedCancelled},
		},
	} {
		d := online(t)
		id := d.receive(1, &forge.LeaseAccept{Context: c, Nonce: 21})
		if cmd := commit[*authority.Claim](d, test.answer); cmd.Context != c || cmd.Phase != forge.AttemptOffered {
			t.Fatalf("%+v", cmd)
		}
		s, m := answer[*forge.LeaseAcceptAck](d)
		test.want.Lease, test.want.Nonce = c.Lease, 21
		if diff := cmp.Diff(&test.want, m); diff != "" || s.Frame.Re != id {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestACompletionHasFourAnswersOrIsTooEarly(t *testing.T) {
	m := &forge.Completion{Context: context(1, 1), Message: forge.MessageID{ULID: forge.ULID{0: 'C'}}}
	for said := forge.CompletionAccepted; said <= forge.CompletionInvalid; said++ {
		d := online(t)
		id := d.receive(1, m)
		if cmd := commit[*authority.Complete](d, authority.Answer{Completion: said}); cmd.Completion != m {
			t.Fatalf("%+v", cmd)
		}
		s, ack := answer[*forge.CompletionAck](d)
		want := &forge.CompletionAck{Attempt: m.Context.Attempt, Message: m.Message, Answer: said}
		if diff := cmp.Diff(want, ack); diff != "" || s.Frame.Re != id {
			t.Fatal(diff)
		}
	}
	for _, code := range []forge.ErrorCode{forge.ErrorNotYetLog, forge.ErrorNotYetRef} {
		d := online(t)
		id := d.receive(1, m)
		commit[*authority.Complete](d, authority.Answer{NotYet: code})
		if s, e := answer[*forge.Error](d); e.Code != code || e.Retry != forge.RetryDelayed || e.Text == "" || s.Frame.Re != id {
			t.Fatalf("%+v", e)
		}
	}
}

func TestASealIsAcknowledgedOnceItIsStored(t *testing.T) {
	m := &forge.LogFinal{Context: context(1, 1), Seal: forge.LogSeal{Last: 3, Bytes: 30}}
	d := online(t)
	id := d.receive(1, m)
	if cmd := commit[*authority.SealLog](d, authority.Answer{Done: true}); cmd.Seal != m.Seal || cmd.Context != m.Context {
		t.Fatalf("%+v", cmd)
	}
	if s, ack := answer[*forge.LogFinalAck](d); ack.Attempt != m.Context.Attempt || s.Frame.Re != id {
		t.Fatalf("%+v", ack)
	}
	for code, refused := range map[forge.ErrorCode]authority.Answer{
		forge.ErrorNotYetLog: {NotYet: forge.ErrorNotYetLog},
		forge.ErrorInternal:  {},
	} {
		id := d.receive(1, m)
		commit[*authority.SealLog](d, refused)
		if s, e := answer[*forge.Error](d); e.Code != code || s.Frame.Re != id {
			t.Fatalf("%+v", e)
		}
	}
}

func TestARejectionIsStoredWithItsReason(t *testing.T) {
	d := online(t)
	d.receive(1, &forge.LeaseReject{Context: context(1, 1), Reason: forge.RejectDiskInsufficient})
	cmd := commit[*authority.Reject](d, authority.Answer{Done: true})
	if cmd.Context != context(1, 1) || cmd.Reason != forge.RejectDiskInsufficient {
		t.Fatalf("%+v", cmd)
	}
	d.silent()
}

func TestCapabilitiesArePassedOnForTheRunnerOfTheCertificate(t *testing.T) {
	d := online(t)
	m := &forge.CapabilityUpdate{Runner: forge.RunnerID{ULID: forge.ULID{0: 'X'}}}
	d.receive(1, m)
	want := []core.Effect{core.Capabilities{Runner: runner, Update: m}}
	if diff := cmp.Diff(want, d.other); diff != "" {
		t.Fatal(diff)
	}
}

func TestWhatSomebodyShouldLookAtIsAudited(t *testing.T) {
	d := online(t)
	d.receive(1, &forge.PhaseChange{Context: context(1, 1)})
	asked := commit[*authority.Phase](d, authority.Answer{Audit: authority.AuditForeignAttempt})
	want := []core.Effect{core.Audit{Kind: authority.AuditForeignAttempt, Runner: runner, Command: asked}}
	if diff := cmp.Diff(want, d.other); diff != "" {
		t.Fatal(diff)
	}
}

// Message ids of one daemon never repeat.
func TestEveryFrameHasAnIDOfItsOwn(t *testing.T) {
	d := online(t)
	seen := map[forge.MessageID]bool{}
	for range 100 {
		d.receive(1, &forge.PhaseChange{})
		commit[*authority.Phase](d, authority.Answer{})
		s, _ := answer[*forge.PhaseAck](d)
		if s.Frame.ID.IsZero() || seen[s.Frame.ID] {
			t.Fatalf("id %v again", s.Frame.ID)
		}
		seen[s.Frame.ID] = true
	}
}
