package sim

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// The invariants, each under the id of the reliability page or, where the design's page on authority has a further one,
// under a name of its own. check looks at what is alive after every step; the others look at what happens as it happens.

// check looks at every living workload.
func (w *World) check() {
	for i, b := range w.living {
		if b.host.now() >= b.dog.Deadline() {
			w.violate("I02", "the workload of attempt %s is alive at its deadline", short(b.ctx.Attempt.ULID))
		}
		if l := row(w.store.leases, b.ctx.Lease); l.value.State.Ended() {
			w.violate("lease-ended-alive", "lease %s is %v while its workload is alive on host %s",
				short(b.ctx.Lease.ULID), l.value.State, b.host.name)
		}
		for _, other := range w.living[:i] {
			if other.ctx.Job == b.ctx.Job {
				w.violate("I01", "job %s runs twice at once", short(b.ctx.Job.ULID))
			}
		}
	}
}

// beforeCommit looks at a transaction against what is committed at this very moment.
func (w *World) beforeCommit(t *txn, answer authority.Answer) {
	if !t.dirty() {
		return
	}
	w.checkFence(t)
	w.checkJob(t)
	w.checkLease(&t.rows.Lease, t, answer)
	for i := range t.rows.Held {
		w.checkLease(&t.rows.Held[i].Lease, t, answer)
	}
	w.checkAttempt(t)
	w.checkLog(t)
	if cmd, ok := t.cmd.(*authority.Register); ok {
		w.checkSuccession(t, cmd)
	}
}

func (t *txn) dirty() bool {
	r := &t.rows
	if r.Session.Dirty || r.Beat.Dirty || r.Runner.Dirty || r.Job.Dirty || r.Lease.Dirty || r.Attempt.Dirty || r.Log.Dirty {
		return true
	}
	for i := range r.Held {
		if r.Held[i].Lease.Dirty {
			return true
		}
	}
	return false
}

// fenceOf returns the authority that a command claims.
func fenceOf(cmd authority.Command) (authority.Fence, bool) {
	switch c := cmd.(type) {
	case *authority.Claim:
		return c.Fence, true
	case *authority.Heartbeat:
		return c.Fence, true
	case *authority.Touch:
		return c.Fence, true
	case *authority.Reject:
		return c.Fence, true
	case *authority.Absent:
		return c.Fence, true
	case *authority.Recover:
		return c.Fence, true
	case *authority.Phase:
		return c.Fence, true
	case *authority.SealLog:
		return c.Fence, true
	case *authority.Complete:
		return c.Fence, true
	case *authority.Offer:
		return c.Fence, true
	}
	return authority.Fence{}, false
}

// checkFence: I04, nothing takes effect that is not said by the current session on its newest connection.
func (w *World) checkFence(t *txn) {
	f, ok := fenceOf(t.cmd)
	if !ok {
		return
	}
	s := row(w.store.sessions, f.Runner).value
	if s.Session != f.Session || s.TransportSeq != f.TransportSeq {
		w.violate("I04", "%T of session %s connection %d takes effect, but session %s connection %d speaks for the runner",
			t.cmd, short(f.Session.ULID), f.TransportSeq, short(s.Session.ULID), s.TransportSeq)
	}
}

// checkJob: a job that ended stays as it is; a cancelled job is never offered, accepted or queued again.
func (w *World) checkJob(t *txn) {
	r := &t.rows.Job
	if !r.Dirty {
		return
	}
	old := w.store.job(r.Value.ID)
	cancel := old.CancelRequested || r.Value.CancelRequested
	switch {
	case old.State.Ended() && old != r.Value:
		w.violate("I03", "job %s changes from %v to %v after its end", short(old.ID.ULID), old.State, r.Value.State)
	case old.CancelRequested && !r.Value.CancelRequested:
		w.violate("cancel-lost", "%T takes back the cancel of job %s", t.cmd, short(old.ID.ULID))
	case cancel && r.Value.State == forge.JobReady:
		w.violate("cancelled-again", "job %s is ready although its cancel is known (%T)", short(old.ID.ULID), t.cmd)
	case old.CancelRequested && old.State == forge.JobOffered && r.Value.State == forge.JobActive:
		w.violate("cancelled-again", "an offer of job %s is accepted although its cancel is known", short(old.ID.ULID))
	case r.Value.UserRetries > uint32(r.Value.Retry.Max) || r.Value.InfraRetries > uint32(r.Value.Retry.Infra):
		w.violate("I30", "job %s is tried again beyond its budget", short(old.ID.ULID))
	case old.CancelRequested && old.State != forge.JobOffered && r.Value.State == forge.JobOffered:
		w.violate("cancelled-again", "job %s is offered although its cancel is known", short(old.ID.ULID))
	}
}

// checkLease: I05, I06 and the one way out.
func (w *World) checkLease(r *authority.Row[authority.Lease], t *txn, answer authority.Answer) {
	if !r.Dirty {
		return
	}
	rec := row(w.store.leases, r.Value.Context.Lease)
	old, now := rec.value, r.Value
	if !rec.found {
		w.checkSlots(now.Context.Runner)
		return
	}
	switch {
	case old.Context != now.Context:
		w.violate("I05", "lease %s changes hands", short(now.Context.Lease.ULID))
	case old.State.Ended() && old != now:
		w.violate("I01", "lease %s changes after its end, from %v to %v", short(now.Context.Lease.ULID), old.State, now.State)
	case now.Renewals < old.Renewals:
		w.violate("I06", "the renewals of lease %s run backward", short(now.Context.Lease.ULID))
	case now.Renewals > old.Renewals && now.Lived >= now.MaxLifetime:
		w.violate("max-lifetime", "lease %s is renewed after %v of %v", short(now.Context.Lease.ULID), now.Lived, now.MaxLifetime)
	case now.State.Ended() && !old.State.Ended():
		w.checkLeaseEnd(now, t)
	}
	w.checkGrants(t, answer, old, now)
}

// checkGrants: whatever grants time is itself a renewal.
func (w *World) checkGrants(t *txn, answer authority.Answer, old, now authority.Lease) {
	for _, v := range answer.Verdicts {
		if v.Lease == now.Context.Lease && v.Verdict == forge.VerdictContinue && now.Renewals == old.Renewals {
			w.violate("I06", "%T grants lease %s time without renewing it", t.cmd, short(now.Context.Lease.ULID))
		}
	}
}

// checkSlots: a runner never holds more leases than it has slots.
func (w *World) checkSlots(runner forge.RunnerID) {
	r := row(w.store.runners, runner).value
	if open := w.store.openOf(runner) + 1; open > r.Slots {
		w.violate("slots", "runner %s gets lease %d of %d", short(runner.ULID), open, r.Slots)
	}
	if r.Disabled || r.Revoked {
		w.violate("I22", "runner %s gets a lease although it is disabled", short(runner.ULID))
	}
}

// checkLeaseEnd: no live lease is lost. A process that holds a lease before its deadline, and has not given it up, keeps
// it unless its own completion ends it.
func (w *World) checkLeaseEnd(l authority.Lease, t *txn) {
	if l.State == forge.LeaseReleased {
		w.checkRelease(l, t)
		return
	}
	if since := w.now - w.renewedAt[l.Context.Lease]; l.State == forge.LeaseExpired && l.Renewals > 0 && since < int64(l.HardTTL) {
		w.violate("I06", "lease %s expires %v after its latest renewal, which granted %v",
			short(l.Context.Lease.ULID), time.Duration(since), l.HardTTL)
	}
	p := w.processOf(l.Context.Session)
	if p == nil || !p.alive {
		return
	}
	for _, h := range p.core.Held() {
		if h.Context.Lease == l.Context.Lease && h.Granted && !h.Stale && !h.State.Ended() && p.host.now() < h.Deadline {
			w.violate("live-lease-lost", "lease %s ends %v by %T, but agent %s holds it (%v) before its deadline",
				short(l.Context.Lease.ULID), l.State, t.cmd, p.name, h.State)
		}
	}
}

// checkRelease: a result is accepted only of the session that holds the lease, with the whole log, and never as a
// success or the user's failure where a watchdog had signalled the workload.
func (w *World) checkRelease(l authority.Lease, t *txn) {
	cmd, ok := t.cmd.(*authority.Complete)
	if !ok {
		w.violate("I01", "%T releases a lease", t.cmd)
		return
	}
	if cmd.Fence.Session != l.Context.Session || cmd.Completion.Context != l.Context {
		w.violate("I05", "session %s completes a lease of session %s", short(cmd.Fence.Session.ULID), short(l.Context.Session.ULID))
	}
	b := w.boxes[l.Context.Attempt]
	log := row(w.store.logs, l.Context.Attempt).value
	spooled := forge.LogSeq(0)
	if b != nil {
		spooled = b.spooled
		if b.bitten && cmd.Completion.Outcome() != forge.Lost {
			w.violate("deadline-kill", "attempt %s was signalled for its deadline and is accepted as %v",
				short(l.Context.Attempt.ULID), cmd.Completion.Outcome())
		}
	}
	if !log.Sealed || log.Next != spooled+1 {
		w.violate("I08", "attempt %s completes with %d of %d log frames stored, sealed: %v",
			short(l.Context.Attempt.ULID), log.Next-1, spooled, log.Sealed)
	}
}

// checkAttempt: I03, what was accepted stays accepted.
func (w *World) checkAttempt(t *txn) {
	r := &t.rows.Attempt
	if !r.Dirty || !r.Found {
		return
	}
	old := row(w.store.attempts, r.Value.ID).value
	if old.State.Ended() && old != r.Value {
		w.violate("I03", "attempt %s changes after its end: %v", short(old.ID.ULID), old.State)
	}
	if r.Value.EventSeq < old.EventSeq {
		w.violate("I06", "the phases of attempt %s run backward", short(old.ID.ULID))
	}
}

// checkLog: I08, what is stored is a beginning of what the workload wrote: no frame twice, none skipped.
func (w *World) checkLog(t *txn) {
	r := &t.rows.Log
	if !r.Dirty {
		return
	}
	last := r.Value.Next - 1
	if b := w.boxes[r.Value.Attempt]; last > 0 && (b == nil || last > b.spooled || r.Value.Hash != transcript(r.Value.Attempt, last)) {
		w.violate("I08", "the stored log of attempt %s up to frame %d is not what its workload wrote", short(r.Value.Attempt.ULID), last)
	}
}

// checkSuccession: I23, an older connection or process never takes over, nor another folder from a session that lives.
func (w *World) checkSuccession(t *txn, cmd *authority.Register) {
	if !t.rows.Session.Dirty {
		return
	}
	old := row(w.store.sessions, cmd.Runner).value
	switch {
	case old.Session == cmd.Session && cmd.TransportSeq <= old.TransportSeq:
		w.violate("I04", "connection %d takes over from connection %d of the same process", cmd.TransportSeq, old.TransportSeq)
	case old.Session != cmd.Session && old.StateFolder == cmd.StateFolder && cmd.StartCounter <= old.StartCounter:
		w.violate("older-stops-newer", "start %d takes over from start %d of the same folder", cmd.StartCounter, old.StartCounter)
	case old.Session != cmd.Session && !old.Session.IsZero() && old.StateFolder != cmd.StateFolder:
		p := w.processOf(old.Session)
		ttl := int64(w.shape.policy.TTL)
		if p != nil && p.alive && w.now-p.beatAt < ttl {
			w.violate("older-stops-newer", "another folder takes over from session %s, whose last sign of life is %v old",
				short(old.Session.ULID), w.now-p.beatAt)
		}
	}
}

func (w *World) processOf(session forge.AgentSessionID) *process {
	for _, r := range w.runners {
		for _, h := range r.hosts {
			if h.process != nil && h.process.session == session {
				return h.process
			}
		}
	}
	return nil
}

// sawPrepare: I20 and I08 of the agent. A workspace is made once for an attempt, of the very spec, and only after a
// daemon granted its lease to this process.
func (w *World) sawPrepare(p *process, e core.Prepare) {
	if w.boxes[e.Context.Attempt] != nil {
		w.violate("I01", "attempt %s is prepared twice", short(e.Context.Attempt.ULID))
	}
	if forge.SpecID(e.Bytes) != e.Context.Spec {
		w.violate("I20", "attempt %s is prepared from other bytes than its spec", short(e.Context.Attempt.ULID))
	}
	l := row(w.store.leases, e.Context.Lease).value
	if l.Renewals == 0 || l.Context != e.Context || p.session != e.Context.Session {
		w.violate("I04", "agent %s prepares attempt %s, whose lease is %v and was renewed %d times",
			p.name, short(e.Context.Attempt.ULID), l.State, l.Renewals)
	}
}

// sawStart: nothing starts for a job that is over, and a job that must not run twice does not.
func (w *World) sawStart(b *sandbox) {
	job := w.store.job(b.ctx.Job)
	b.job.started++
	switch {
	case job.State.Ended():
		w.violate("cancelled-again", "a workload starts for job %s, which is %v", short(job.ID.ULID), job.State)
	case job.Retry.Infra == 0 && job.Retry.Max == 0 && b.job.started > 1:
		w.violate("I30", "job %s must not run twice and does", short(job.ID.ULID))
	}
}

// sawLogAck: I08, what is acknowledged is stored.
func (w *World) sawLogAck(ack *forge.LogAck) {
	if stored := row(w.store.logs, ack.Attempt).value.Next; ack.Next > stored {
		w.violate("I08", "frames of attempt %s are acknowledged up to %d but stored up to %d",
			short(ack.Attempt.ULID), ack.Next, stored)
	}
}

// afterStep: what an agent holds leaves it only in the ways that are allowed.
func (w *World) afterStep(p *process, e core.Event, effects []core.Effect) {
	now := p.core.Held()
	for _, old := range p.held {
		if old.Granted && !contains(now, old.Context.Lease) {
			if _, cleaned := e.(core.CleanedUp); !cleaned {
				w.violate("I15", "agent %s forgets attempt %s (%v) on %T", p.name, short(old.Context.Attempt.ULID), old.State, e)
			}
		}
	}
	for _, effect := range effects {
		if drop, ok := effect.(core.DropRecord); ok {
			w.checkDrop(p, e, drop)
		}
	}
	p.held = now
}

// checkDrop: a pending completion ends only by its acknowledgement.
func (w *World) checkDrop(p *process, e core.Event, drop core.DropRecord) {
	for _, old := range p.held {
		if old.Context.Attempt == drop.Attempt && old.Frozen != nil && !old.State.Ended() {
			w.violate("I03", "agent %s gives up the completion of attempt %s on %T", p.name, short(drop.Attempt.ULID), e)
		}
	}
}

func contains(held []core.Held, lease forge.LeaseID) bool {
	for _, h := range held {
		if h.Context.Lease == lease {
			return true
		}
	}
	return false
}

// sawExit: no process stops for an older one.
func (w *World) sawExit(p *process, code core.ExitCode) {
	w.logf("agent %s exits: %d", p.name, code)
	if code != core.ExitSuperseded {
		return
	}
	s := row(w.store.sessions, p.runner.id).value
	if s.StateFolder == p.host.folder.id && s.StartCounter <= p.host.folder.starts && s.Session != p.session && s.Boot == p.host.boot &&
		len(p.runner.hosts) == 1 {
		w.violate("older-stops-newer", "agent %s, start %d, stops for start %d", p.name, p.host.folder.starts, s.StartCounter)
	}
	if s.Session == p.session {
		w.violate("older-stops-newer", "agent %s stops although it speaks for its runner", p.name)
	}
}

// quiet reports whether everything has ended.
func (w *World) quiet() bool {
	if w.explore == nil && w.result.Steps%16 != 0 || len(w.store.open) > 0 || len(w.living) > 0 {
		return false
	}
	for _, j := range w.jobs {
		if !w.store.job(j.id).State.Ended() {
			return false
		}
	}
	for _, r := range w.runners {
		p := r.hosts[0].process
		if p == nil || !p.alive || p.state() != forge.AgentOnline || len(p.core.Held()) > 0 {
			return false
		}
		if len(r.hosts[0].boxes) > 0 || len(r.hosts[0].folder.journal) > 0 {
			return false
		}
	}
	return true
}

// checkEnd looks at a world in which everything has ended.
func (w *World) checkEnd() {
	for _, l := range w.store.all {
		if !l.value.State.Ended() {
			w.violate("I07", "lease %s is %v at the end", short(l.value.Context.Lease.ULID), l.value.State)
		}
	}
	w.checkHistory()
}
