package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// What is noted as it happens: interesting states, the signs of life by which successions are judged, and the copies
// that a forger makes.

// afterCommit counts what a commit showed.
func (w *World) afterCommit(t *txn, answer authority.Answer) {
	if w.opts.Trace {
		w.logf("store: %T commits:%s", t.cmd, describeAnswer(answer))
	}
	switch cmd := t.cmd.(type) {
	case *authority.Claim:
		w.noteClaim(t, cmd, answer)
	case *authority.Heartbeat:
		w.noteBeat(cmd.Fence)
		for _, lease := range cmd.Leases {
			w.renewedBy[lease] = t.owner.number
		}
		for _, v := range answer.Verdicts {
			w.reachIf(v.Cancel == forge.CancelMaxLifetime, LifetimeSpent)
			w.reachIf(v.Cancel == forge.CancelDisabled, DisabledTold)
		}
	case *authority.Touch:
		w.noteBeat(cmd.Fence)
	case *authority.Register:
		if answer.Done {
			w.noteBeat(authority.Fence{Session: cmd.Session})
		}
		w.reachIf(answer.Audit == authority.AuditSessionReplaced, SessionReplaced)
		w.reachIf(answer.Audit == authority.AuditCloneSuspected, CloneRefused)
		w.reachIf(answer.Audit == authority.AuditFolderReplaced, FolderReplaced)
		w.reachIf(answer.Close == forge.CloseFenced, OldConnectionLate)
		w.reachIf(answer.Close == forge.CloseSessionSuperseded, OldProcessLate)
		return
	case *authority.Absent:
		w.reachIf(answer.Done, AbsentLost)
	case *authority.Expire:
		w.reachIf(answer.Done && cmd.State == forge.LeaseAccepted, AcceptedExpired)
		w.reachIf(answer.Done && cmd.State == forge.LeaseOffered, OfferExpired)
		w.reachIf(!answer.Done, ExpiryOutrun)
	case *authority.Revoke:
		w.reachIf(answer.Done, OfferRevoked)
		w.reachIf(!answer.Done, RevokeOutrun)
	case *authority.CancelJob:
		w.reachIf(answer.Done && t.rows.Job.Value.State == forge.JobCancelled, ReadyCancelled)
		w.reachIf(answer.Done && !answer.Context.Job.IsZero(), HeldCancelled)
	case *authority.Recover:
		w.reachIf(answer.Done, RecoveredEnded)
		w.reachIf(answer.Recovery == forge.RecoveryWaits, RecoveredWaits)
		w.reachIf(answer.Recovery == forge.RecoveryApplied, RecoveredApplied)
	case *authority.Reject:
		w.reachIf(answer.Done && t.rows.Attempt.Value.EventSeq > 0, AcceptedGivenBack)
	case *authority.AppendLog:
		w.reachIf(answer.Done && row(w.store.attempts, cmd.Attempt).value.State.Ended(), LogAppendedAfterEnd)
	case *authority.Complete:
		w.noteCompletion(t, cmd, answer)
	}
	w.reachIf(answer.Close != 0, MessageFenced)
	w.noteRetry(t)
}

func (w *World) reachIf(condition bool, s State) {
	if condition {
		w.reach(s)
	}
}

func (w *World) noteClaim(t *txn, cmd *authority.Claim, answer authority.Answer) {
	if answer.Close != 0 {
		return
	}
	first := answer.Done && t.rows.Attempt.Dirty && t.rows.Attempt.Value.State == forge.AttemptAccepted
	w.reachIf(first, ClaimAccepted)
	w.reachIf(answer.Done && !first && cmd.Phase == forge.AttemptOffered, ClaimAnsweredAgain)
	w.reachIf(answer.Done && cmd.Phase > forge.AttemptOffered, ResyncContinued)
	w.reachIf(answer.Done && cmd.Phase > forge.AttemptOffered && w.renewedBy[cmd.Context.Lease] != t.owner.number, ContinuedElsewhere)
	w.renewedBy[cmd.Context.Lease] = t.owner.number
	w.reachIf(!answer.Done && cmd.Phase > forge.AttemptOffered, ResyncStale)
	w.reachIf(first && t.rows.Lease.Value.Renewals == 1 && w.resyncing[cmd.Context.Lease], ResyncAccepted)
	w.reachIf(answer.Refused == forge.RefusedCancelled, ClaimRefusedCancelled)
	w.reachIf(answer.Refused == forge.RefusedExpired, ClaimRefusedExpired)
	w.reachIf(answer.Refused == forge.RefusedSuperseded, ClaimRefusedSuperseded)
}

func (w *World) noteCompletion(t *txn, cmd *authority.Complete, answer authority.Answer) {
	switch answer.Completion {
	case forge.CompletionAccepted:
		w.reach(CompletionTaken)
		b := w.boxes[cmd.Completion.Context.Attempt]
		w.reachIf(cmd.Completion.CancelSeen && (b == nil || !b.began), CancelledUnstarted)
		w.reachIf(t.rows.Job.Value.CancelRequested && !cmd.Completion.CancelSeen, ResultStood)
	case forge.CompletionDuplicate:
		w.reach(CompletionRepeated)
		if cmd.Completion.Hash != t.rows.Attempt.Value.ResultHash {
			w.violate("I03", "a changed result of attempt %s passes as a copy", short(cmd.Completion.Context.Attempt.ULID))
		}
	case forge.CompletionStale:
		w.reach(CompletionLate)
		w.reachIf(cmd.Completion.Result.Class == forge.Lost, WorkloadLostLate)
	case forge.CompletionInvalid:
		if !w.forged[cmd.Completion.Hash] {
			w.violate("result-refused", "the completion of attempt %s is refused as invalid", short(cmd.Completion.Context.Attempt.ULID))
		}
		w.reach(CompletionForged)
	}
	if answer.NotYet == forge.ErrorNotYetRef {
		w.reach(CompletionBeforeRef)
		w.noteMissed(cmd.Completion.Context.Attempt)
	}
}

// mostMissed is how often an agent may be told that an output is missing before it brings it: frames come twice, and the
// output may be lost again meanwhile.
const mostMissed = 5

// noteMissed: an agent that is told that an output is missing brings it, or says that it cannot.
func (w *World) noteMissed(attempt forge.AttemptID) {
	if w.missed[attempt]++; w.missed[attempt] > mostMissed {
		w.violate("output-not-mended", "the agent of attempt %s was told %d times that an output is missing, and brings none",
			short(attempt.ULID), w.missed[attempt])
	}
}

func (w *World) noteRetry(t *txn) {
	if !t.rows.Job.Dirty || !t.rows.Lease.Dirty {
		return
	}
	before, after := t.rows.Job.Value, t.before
	w.reachIf(before.FreeRetries > after.FreeRetries, RetriedFree)
	w.reachIf(before.InfraRetries > after.InfraRetries, RetriedInfra)
	w.reachIf(before.UserRetries > after.UserRetries, RetriedUser)
	w.reachIf(before.State == forge.JobFailed, FailedOutOfBudget)
}

// noteBeat remembers a sign of life that took effect.
func (w *World) noteBeat(f authority.Fence) {
	if p := w.processOf(f.Session); p != nil {
		p.beatAt = w.now
	}
}

func (w *World) sawTransmit(p *process, f forge.Frame) {
	w.strikeSaid(p, f.Body)
	switch m := f.Body.(type) {
	case *forge.Resync:
		for _, item := range m.Attempts {
			if item.Phase == forge.AttemptOffered {
				w.resyncing[item.Lease] = true
			}
		}
	case *forge.Completion:
		if known, ok := w.hashes[m.Message]; ok && known != m.Hash {
			w.violate("I03", "agent %s changes the completion of attempt %s", p.name, short(m.Context.Attempt.ULID))
		}
		w.hashes[m.Message] = m.Hash
	}
}

func (w *World) sawAtDaemon(d *daemon, c *conn, f forge.Frame) {
	if m, ok := f.Body.(*forge.Completion); ok && w.forging {
		w.forging = false
		forgery := *m
		forgery.Result.Class = forge.OutOfMemory
		forgery.Hash = forgery.ResultHash()
		w.forged[forgery.Hash] = true
		w.after(5*time.Second, func() {
			if row(w.store.attempts, m.Context.Attempt).value.Completion == m.Message {
				d.handle(core.Received{Conn: c.id, Frame: forge.Frame{ID: f.ID, Body: &forgery}})
			}
		})
	}
}

// sawClose: no newest connection is stopped by an older one.
func (w *World) sawClose(c *conn, reason forge.CloseReason) {
	if reason != forge.CloseFenced && reason != forge.CloseSessionSuperseded {
		return
	}
	w.reach(MessageFenced)
	s := row(w.store.sessions, c.agent.runner.id).value
	if s.Session == c.agent.session && s.TransportSeq == c.seq {
		w.violate("older-stops-newer", "connection %d of agent %s is closed as %v although it speaks for its runner", c.seq, c.agent.name, reason)
	}
}

func (w *World) sawAudit(kind authority.Audit) {
	if kind == authority.AuditChangedResult && len(w.forged) == 0 {
		w.violate("I03", "one completion came with two results")
	}
}

// described names a message in the trace, if there is one.
type described struct{ message forge.Message }

func (d described) String() string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", d.message), "*forge.")
	switch m := d.message.(type) {
	case *forge.Register:
		return fmt.Sprintf("%s session %s start %d connection %d", kind, short(m.Session.ULID), m.StartCounter, m.TransportSeq)
	case *forge.Resync:
		return fmt.Sprintf("%s %d:%s", kind, m.Nonce, each(m.Attempts, func(i forge.ResyncItem) string {
			return short(i.Lease.ULID) + " " + i.Phase.String()
		}))
	case *forge.ResyncReply:
		return fmt.Sprintf("%s %d:%s", kind, m.Nonce, verdictList(m.Verdicts))
	case *forge.Heartbeat:
		return fmt.Sprintf("%s %d:%s", kind, m.Nonce, each(m.Attempts, func(i forge.HeartbeatItem) string {
			return short(i.Lease.ULID) + " " + i.Phase.String()
		}))
	case *forge.HeartbeatAck:
		return fmt.Sprintf("%s %d:%s", kind, m.Nonce, verdictList(m.Verdicts))
	case *forge.RecoverAttempts:
		return fmt.Sprintf("%s:%s", kind, each(m.Previous, func(r forge.RecoveredAttempt) string { return short(r.Context.Lease.ULID) }))
	case *forge.LeaseOffer:
		return kind + named(m.Context)
	case *forge.LeaseAccept:
		return fmt.Sprintf("%s%s nonce %d", kind, named(m.Context), m.Nonce)
	case *forge.LeaseAcceptAck:
		return fmt.Sprintf("%s lease %s nonce %d granted %v cancel %v", kind, short(m.Lease.ULID), m.Nonce, m.Granted, m.Cancel)
	case *forge.LeaseReject:
		return fmt.Sprintf("%s%s: %v", kind, named(m.Context), m.Reason)
	case *forge.PhaseChange:
		return fmt.Sprintf("%s%s: %v", kind, named(m.Context), m.Phase)
	case *forge.LogFinal:
		return fmt.Sprintf("%s%s: last %d", kind, named(m.Context), m.Seal.Last)
	case *forge.LogAck:
		return fmt.Sprintf("%s attempt %s: next %d", kind, short(m.Attempt.ULID), m.Next)
	case *forge.Completion:
		return fmt.Sprintf("%s%s: %v, cancel seen %v", kind, named(m.Context), m.Outcome(), m.CancelSeen)
	case *forge.CompletionAck:
		return fmt.Sprintf("%s attempt %s: %d", kind, short(m.Attempt.ULID), m.Answer)
	case *forge.Cancel:
		return fmt.Sprintf("%s lease %s: %v", kind, short(m.Lease.ULID), m.Reason)
	case *forge.Error:
		return kind + ": " + m.Text
	}
	return kind
}

func named(c forge.AttemptContext) string {
	return fmt.Sprintf(" job %s attempt %s lease %s", short(c.Job.ULID), short(c.Attempt.ULID), short(c.Lease.ULID))
}

func verdictList(list []forge.LeaseVerdict) string {
	return each(list, func(v forge.LeaseVerdict) string {
		return fmt.Sprintf("%s verdict %d ttl %v cancel %v", short(v.Lease.ULID), v.Verdict, v.HardTTL, v.Cancel)
	})
}

func each[T any](list []T, text func(T) string) string {
	if len(list) == 0 {
		return " nothing"
	}
	var b strings.Builder
	for _, item := range list {
		b.WriteString(" [" + text(item) + "]")
	}
	return b.String()
}

func describeAnswer(a authority.Answer) string {
	var b strings.Builder
	if a.Done {
		b.WriteString(" done")
	}
	if a.Close != 0 {
		fmt.Fprintf(&b, " close %v", a.Close)
	}
	if a.Refused != 0 {
		fmt.Fprintf(&b, " refused %v", a.Refused)
	}
	if a.Completion != 0 {
		fmt.Fprintf(&b, " completion %d", a.Completion)
	}
	if a.NotYet != 0 {
		fmt.Fprintf(&b, " not yet %d", a.NotYet)
	}
	if a.Recovery != 0 {
		fmt.Fprintf(&b, " recovery %d", a.Recovery)
	}
	return b.String()
}

// strikeSaid lets the faults happen that wait for something to be said.
func (w *World) strikeSaid(p *process, m forge.Message) {
	on := trigger(-1)
	var job forge.JobID
	switch m := m.(type) {
	case *forge.LeaseAccept:
		on, job = onAccept, m.Context.Job
	case *forge.Completion:
		on, job = onCompletion, m.Context.Job
	case *forge.LeaseReject:
		on, job = onReject, m.Context.Job
	case *forge.Resync:
		on = onResync
	case *forge.Register:
		on = onRegister
	case *forge.LogFinal:
		on, job = onLogFinal, m.Context.Job
	case *forge.Heartbeat:
		if len(m.Attempts) == 0 {
			return
		}
		on = onHeartbeat
	case *forge.PhaseChange:
		on, job = onPhase, m.Context.Job
	default:
		return
	}
	w.strike(on, p.runner, job)
}

// strikeBegun lets the faults happen that wait for a transaction.
func (w *World) strikeBegun(cmd authority.Command) {
	switch c := cmd.(type) {
	case *authority.Offer:
		w.strike(onOffer, w.runnerOf(c.Fence.Runner), c.Job)
	case *authority.Expire:
		w.strike(onExpire, w.runnerOf(c.Context.Runner), c.Context.Job)
	case *authority.Complete:
		w.strike(onEnd, w.runnerOf(c.Fence.Runner), c.Completion.Context.Job)
	case *authority.Reject:
		w.strike(onEnd, w.runnerOf(c.Fence.Runner), c.Context.Job)
	case *authority.Absent:
		w.strike(onEnd, w.runnerOf(c.Fence.Runner), c.Context.Job)
	}
}

func (w *World) runnerOf(id forge.RunnerID) *simRunner {
	for _, r := range w.runners {
		if r.id == id {
			return r
		}
	}
	return nil
}
