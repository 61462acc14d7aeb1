package core

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// observe takes in a reading: it feeds the watch, expires what stood still for long enough, passes cancels on, and
// closes connections that have lost their voice.
func (d *Daemon) observe(now forge.Instant, s *authority.Snapshot) {
	d.watch.SeeAll(now, s.Leases)
	for i := range s.Sessions {
		seen := &s.Sessions[i]
		d.watch.SeeSession(now, &seen.Session, seen.Beats)
		d.review(now, seen)
	}
	d.passCancels(s)
	d.due = d.watch.Due(now, d.due[:0])
	for _, cmd := range d.due {
		d.emit(Begin{Tx: d.begin(pending{expire: cmd}), Command: cmd})
	}
}

// passCancels stops what users want stopped, and what runs on runners that may not speak any more.
func (d *Daemon) passCancels(s *authority.Snapshot) {
	for _, c := range d.conns {
		c.told, c.cancelled = c.cancelled, c.told[:0]
	}
	for i := range s.Leases {
		if s.Cancel[i] {
			d.passCancel(&s.Leases[i])
		}
	}
	for _, c := range d.conns {
		if c.condemned == 0 || c.state != forge.ConnActive {
			continue
		}
		for i := range s.Leases {
			if l := &s.Leases[i]; l.State == forge.LeaseAccepted && l.Context.Session == c.fence.Session {
				d.tell(c, l.Context, forge.CancelDisabled)
			}
		}
	}
}

// passCancel revokes an offer and tells a running workload's agent, once a connection.
func (d *Daemon) passCancel(l *authority.Lease) {
	if l.State == forge.LeaseOffered {
		cmd := &authority.Revoke{Context: l.Context}
		d.emit(Begin{Tx: d.begin(pending{}), Command: cmd})
		return
	}
	if c := d.voice(l.Context.Runner); c != nil && c.fence.Session == l.Context.Session {
		d.tell(c, l.Context, forge.CancelUser)
	}
}

func (d *Daemon) tell(c *conn, of forge.AttemptContext, reason forge.CancelReason) {
	if slices.Contains(c.cancelled, of.Lease) {
		return
	}
	c.cancelled = append(c.cancelled, of.Lease)
	if slices.Contains(c.told, of.Lease) {
		return
	}
	d.send(c, forge.MessageID{}, &forge.Cancel{Attempt: of.Attempt, Lease: of.Lease, Reason: reason})
}

// review closes the connections of a runner that may not speak any more, or not on this connection.
func (d *Daemon) review(now forge.Instant, seen *authority.SeenSession) {
	for _, c := range slices.Clone(d.conns) {
		if c.runner != seen.Runner.ID || c.fence == (authority.Fence{}) {
			continue
		}
		switch {
		case seen.Runner.Revoked:
			d.condemn(now, c, forge.CloseRevoked)
		case seen.Runner.Disabled:
			d.condemn(now, c, forge.CloseRunnerDisabled)
		case seen.Session.Session == c.fence.Session && seen.Session.TransportSeq > c.fence.TransportSeq:
			d.close(c, forge.CloseFenced)
		case c.state == forge.ConnActive && c.draining != seen.Runner.Draining:
			d.tellDrain(c, seen.Runner.Draining)
		}
	}
}

// tellDrain passes on what was decided about a runner. A new connection is told again.
func (d *Daemon) tellDrain(c *conn, draining bool) {
	c.draining = draining
	if draining {
		d.send(c, forge.MessageID{}, &forge.Drain{})
		return
	}
	d.send(c, forge.MessageID{}, &forge.Resume{})
}

// condemn gives a connection a moment to stop what it runs, then closes it.
func (d *Daemon) condemn(now forge.Instant, c *conn, reason forge.CloseReason) {
	if c.condemned == 0 {
		c.condemned, c.closeAt = reason, now.Add(DisabledWithin)
	}
}

// place offers a job to a runner whose connection is here.
func (d *Daemon) place(e Place) {
	c := d.voice(e.Runner)
	if c == nil || c.condemned != 0 {
		return
	}
	cmd := &authority.Offer{Fence: c.fence, Job: e.Job, Attempt: e.Attempt, Lease: e.Lease}
	d.emit(Begin{Tx: d.begin(pending{conn: c.id, offer: cmd}), Command: cmd})
}

// offered sends a committed offer. If its connection is gone, or the commit's fate is not known, nothing is sent: a
// resync finds it, or it expires.
func (d *Daemon) offered(p pending, e Done) {
	c := d.conn(p.conn)
	if !e.Committed || !e.Answer.Done || c == nil || c.state != forge.ConnActive {
		return
	}
	d.emit(SendOffer{Conn: c.id, ID: d.messageID(), Context: e.Answer.Context})
}
