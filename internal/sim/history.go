package sim

import (
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// I24: what daemons were told about each lease is linearizable. There must be an order of all transactions on it, each
// somewhere between its daemon's asking and its hearing, in which every answer is the one that a lease alone would give.
// Transactions whose fate nobody can say may stand anywhere after they were asked for, or nowhere.

// operation is one transaction on a lease as its daemon saw it.
type operation struct {
	cmd     authority.Command
	answer  authority.Answer
	unknown bool
	call    int64
	heard   int64
}

// neverHeard is the time of an answer that did not arrive.
const neverHeard = math.MaxInt64

// leaseOf returns the lease that a command is about, if it is about a single one's state.
func leaseOf(cmd authority.Command) (forge.LeaseID, bool) {
	switch c := cmd.(type) {
	case *authority.Offer:
		return c.Lease, true
	case *authority.Claim:
		return c.Context.Lease, true
	case *authority.Reject:
		return c.Context.Lease, true
	case *authority.Absent:
		return c.Context.Lease, true
	case *authority.Recover:
		return c.Item.Context.Lease, true
	case *authority.Expire:
		return c.Context.Lease, true
	case *authority.Revoke:
		return c.Context.Lease, true
	case *authority.Complete:
		return c.Completion.Context.Lease, true
	}
	return forge.LeaseID{}, false
}

// noteOperation writes a transaction into the history.
func (w *World) noteOperation(t *txn, answer authority.Answer, f fate) {
	lease, ok := leaseOf(t.cmd)
	if !ok || f == fateRefused {
		return
	}
	t.op = &operation{cmd: t.cmd, answer: answer, unknown: f != fateCommitted, call: t.from, heard: neverHeard}
	w.history[lease] = append(w.history[lease], t.op)
}

// checkHistory looks for the order.
func (w *World) checkHistory() {
	for _, l := range w.store.all {
		var ops []porcupine.Operation
		for i, op := range w.history[l.value.Context.Lease] {
			ops = append(ops, porcupine.Operation{ClientId: i, Input: op, Call: op.call, Output: op, Return: op.heard})
		}
		if !porcupine.CheckOperations(leaseModel, ops) {
			w.violate("I24", "no order of the %d transactions on lease %s explains their answers", len(ops), short(l.value.Context.Lease.ULID))
			return
		}
	}
}

// modelState is a lease alone: where it stands, and which completion ended it.
type modelState struct {
	state   forge.LeaseState // zero: not offered yet
	message forge.MessageID
	hash    digest.Digest
}

var leaseModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{modelState{}} },
	Step: func(state, input, _ any) []any { return stepModel(state.(modelState), input.(*operation)) },
}).ToModel()

// stepModel returns the states after an operation, or none where its answer is impossible in this state.
func stepModel(s modelState, op *operation) []any {
	if op.unknown {
		states := []any{s}
		if after, changes := takeEffect(s, op.cmd); changes {
			states = append(states, after)
		}
		return states
	}
	after, changes := takeEffect(s, op.cmd)
	switch {
	case op.answer.Close != 0:
		return []any{s} // no authority: nothing happened
	case explains(s, op, changes):
		if !hadEffect(op) {
			return []any{s}
		}
		return []any{after}
	}
	return nil
}

// hadEffect reports whether the answer says that the lease changed.
func hadEffect(op *operation) bool {
	if _, ok := op.cmd.(*authority.Complete); ok {
		return op.answer.Completion == forge.CompletionAccepted
	}
	return op.answer.Done
}

// explains reports whether a lease in this state can give the answer. changes says whether the command would change it.
func explains(s modelState, op *operation, changes bool) bool {
	switch c := op.cmd.(type) {
	case *authority.Complete:
		m := c.Completion
		same := s.message == m.Message
		switch op.answer.Completion {
		case forge.CompletionAccepted:
			return changes
		case forge.CompletionDuplicate:
			return same && s.hash == m.Hash
		case forge.CompletionStale:
			return s.state.Ended() && !same
		case forge.CompletionInvalid:
			return !same || s.hash != m.Hash
		default:
			return s.state == forge.LeaseAccepted // not yet
		}
	case *authority.Claim:
		if !op.answer.Done {
			return s.state != forge.LeaseAccepted
		}
	}
	return !op.answer.Done || changes
}

// takeEffect returns the lease after a command that has its effect, and whether it can have one in this state.
func takeEffect(s modelState, cmd authority.Command) (modelState, bool) {
	held := s.state == forge.LeaseAccepted
	switch c := cmd.(type) {
	case *authority.Offer:
		return modelState{state: forge.LeaseOffered}, s.state == 0
	case *authority.Claim:
		return modelState{state: forge.LeaseAccepted}, held || s.state == forge.LeaseOffered && c.Phase == forge.AttemptOffered
	case *authority.Reject:
		return modelState{state: forge.LeaseRefused}, held || s.state == forge.LeaseOffered
	case *authority.Absent, *authority.Recover:
		return modelState{state: forge.LeaseLost}, held
	case *authority.Expire:
		return modelState{state: forge.LeaseExpired}, s.state == c.State
	case *authority.Revoke:
		return modelState{state: forge.LeaseRevoked}, s.state == forge.LeaseOffered
	case *authority.Complete:
		return modelState{state: forge.LeaseReleased, message: c.Completion.Message, hash: c.Completion.Hash}, held
	}
	return s, false
}
