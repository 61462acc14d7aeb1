package core

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// A resync is one transaction for each lease: those that the agent names are claimed, those that the store has as
// accepted by its session and that the agent does not name are lost. Only then comes the reply, and with it the offers
// that may never have arrived.

// resyncLoaded begins with what the store has of the runner.
func (d *Daemon) resyncLoaded(now forge.Instant, c *conn, e Loaded) {
	if c.current == nil {
		return
	}
	m, ok := c.current.frame.Body.(*forge.Resync)
	if !ok || e.Snapshot == nil {
		d.close(c, forge.CloseInternal)
		return
	}
	c.current.snapshot = e.Snapshot
	for _, l := range e.Snapshot.Leases {
		if l.Context.Session == c.fence.Session && l.State == forge.LeaseAccepted && !names(m, l.Context.Lease) {
			c.current.absent = append(c.current.absent, l)
		}
	}
	d.nextResync(now, c, m)
}

func names(m *forge.Resync, lease forge.LeaseID) bool {
	return slices.ContainsFunc(m.Attempts, func(i forge.ResyncItem) bool { return i.Lease == lease })
}

// nextResync runs the transaction for the next lease, or replies. It reports whether it replied.
func (d *Daemon) nextResync(now forge.Instant, c *conn, m *forge.Resync) bool {
	r := c.current
	i := r.next
	r.next++
	switch {
	case i < len(m.Attempts):
		item := m.Attempts[i]
		d.run(c, &authority.Claim{
			Fence: c.fence, Phase: item.Phase, EventSeq: item.EventSeq, Watched: d.watch.Lease(now, item.Lease),
			Context: forge.AttemptContext{
				Job: item.Job, Attempt: item.Attempt, Lease: item.Lease, Spec: item.Spec,
				Runner: c.fence.Runner, Session: c.fence.Session,
			},
		})
	case i < len(m.Attempts)+len(r.absent):
		d.run(c, &authority.Absent{Fence: c.fence, Context: r.absent[i-len(m.Attempts)].Context})
	case i == len(m.Attempts)+len(r.absent):
		d.run(c, &authority.Touch{Fence: c.fence})
	default:
		d.resynced(c, m)
		return true
	}
	return false
}

// resyncAnswered notes a verdict and goes on. It reports whether the resync is finished.
func (d *Daemon) resyncAnswered(now forge.Instant, c *conn, m *forge.Resync, answer *authority.Answer) bool {
	if c.current.next <= len(m.Attempts) {
		c.current.verdicts = append(c.current.verdicts, answer.Verdicts...)
	}
	return d.nextResync(now, c, m)
}

// resynced replies and sends the offers again that still stand.
func (d *Daemon) resynced(c *conn, m *forge.Resync) {
	r := c.current
	c.state = forge.ConnActive
	d.send(c, r.frame.ID, &forge.ResyncReply{Nonce: m.Nonce, Verdicts: r.verdicts})
	for _, l := range r.snapshot.Leases {
		if l.Context.Session == c.fence.Session && l.State == forge.LeaseOffered && !names(m, l.Context.Lease) {
			d.emit(SendOffer{Conn: c.id, ID: d.messageID(), Context: l.Context})
		}
	}
}

// nextRecovery returns the rule for the next attempt of a previous process, or nil after the last.
func (d *Daemon) nextRecovery(now forge.Instant, c *conn) authority.Command {
	m := c.current.frame.Body.(*forge.RecoverAttempts)
	i := c.current.next
	c.current.next++
	if i < len(m.Previous) {
		return &authority.Recover{Fence: c.fence, Item: m.Previous[i]}
	}
	return nil
}

// recoveryAnswered notes a decision and goes on. It reports whether the recovery is finished.
func (d *Daemon) recoveryAnswered(now forge.Instant, c *conn, m *forge.RecoverAttempts, answer *authority.Answer) bool {
	r := c.current
	attempt := m.Previous[r.next-1].Context.Attempt
	r.decided = append(r.decided, forge.RecoveryDecision{Attempt: attempt, Verdict: answer.Recovery})
	if cmd := d.nextRecovery(now, c); cmd != nil {
		d.run(c, cmd)
		return false
	}
	d.send(c, r.frame.ID, &forge.RecoveryDecisions{Decisions: r.decided})
	return true
}
