package sim

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// op is an operation that took from call to heard.
func op(cmd authority.Command, answer authority.Answer, call, heard int64) porcupine.Operation {
	o := &operation{cmd: cmd, answer: answer, call: call, heard: heard}
	return porcupine.Operation{Input: o, Output: o, Call: call, Return: heard}
}

func TestAHistoryThatNoLeaseExplainsIsFound(t *testing.T) {
	offer := op(&authority.Offer{}, authority.Answer{Done: true}, 1, 2)
	accept := op(&authority.Claim{Phase: forge.AttemptOffered}, authority.Answer{Done: true}, 3, 4)
	first := &forge.Completion{Message: forge.MessageID{ULID: forge.ULID{1}}}
	second := &forge.Completion{Message: forge.MessageID{ULID: forge.ULID{2}}}
	accepted := authority.Answer{Completion: forge.CompletionAccepted, Done: true}
	expire := &authority.Expire{State: forge.LeaseAccepted}

	good := []porcupine.Operation{offer, accept, op(&authority.Complete{Completion: first}, accepted, 5, 9), op(expire, authority.Answer{}, 6, 8)}
	if !porcupine.CheckOperations(leaseModel, good) {
		t.Error("a good history is refused")
	}
	for what, bad := range map[string][]porcupine.Operation{
		"accepted before it was offered": {op(&authority.Claim{Phase: forge.AttemptOffered}, authority.Answer{Done: true}, 1, 2), op(&authority.Offer{}, authority.Answer{Done: true}, 3, 4)},
		"two results":                    {offer, accept, op(&authority.Complete{Completion: first}, accepted, 5, 6), op(&authority.Complete{Completion: second}, accepted, 5, 7)},
		"expired and completed":          {offer, accept, op(&authority.Complete{Completion: first}, accepted, 5, 9), op(expire, authority.Answer{Done: true}, 6, 8)},
		"a copy of nothing":              {offer, accept, op(&authority.Complete{Completion: first}, authority.Answer{Completion: forge.CompletionDuplicate}, 5, 6)},
		"late although it was held":      {offer, accept, op(&authority.Complete{Completion: first}, authority.Answer{Completion: forge.CompletionStale}, 5, 6)},
	} {
		if porcupine.CheckOperations(leaseModel, bad) {
			t.Errorf("%s: no complaint", what)
		}
	}
}

func TestAnAnswerThatNobodyHeardMayHaveHappenedOrNot(t *testing.T) {
	offer := op(&authority.Offer{}, authority.Answer{Done: true}, 1, 2)
	lost := op(&authority.Claim{Phase: forge.AttemptOffered}, authority.Answer{Done: true}, 3, neverHeard)
	lost.Input.(*operation).unknown = true
	for _, after := range []porcupine.Operation{
		op(&authority.Expire{State: forge.LeaseOffered}, authority.Answer{Done: true}, 5, 6),
		op(&authority.Expire{State: forge.LeaseAccepted}, authority.Answer{Done: true}, 5, 6),
	} {
		if !porcupine.CheckOperations(leaseModel, []porcupine.Operation{offer, lost, after}) {
			t.Errorf("%+v is refused after an acceptance of unknown fate", after.Input.(*operation).cmd)
		}
	}
}
