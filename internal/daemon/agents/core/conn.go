package core

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// conn is one connection. Its requests are handled one at a time.
type conn struct {
	id        ConnID
	runner    forge.RunnerID
	state     forge.ConnectionState
	opened    forge.Instant
	fence     authority.Fence // since it was registered, with the folder and start of its process
	folder    forge.StateFolderID
	start     uint64
	queue     []forge.Frame
	current   *request          // what is being handled
	cancelled []forge.LeaseID   // told to stop, as of the latest reading; what has ended since is forgotten
	told      []forge.LeaseID   // likewise, as of the reading before
	draining  bool              // as the agent was told
	condemned forge.CloseReason // to be closed for this at closeAt
	closeAt   forge.Instant
}

// request is one frame on its way through the store.
type request struct {
	frame    forge.Frame
	leases   []forge.LeaseID     // of a heartbeat: as locked
	snapshot *authority.Snapshot // of a resync
	next     int                 // item, of a resync or recovery
	absent   []authority.Lease
	verdicts []forge.LeaseVerdict
	decided  []forge.RecoveryDecision
}

// wake is when the connection is to be closed if nothing changes.
func (c *conn) wake() forge.Instant {
	switch {
	case c.condemned != 0:
		return c.closeAt
	case c.state == forge.ConnRegistering, c.state == forge.ConnResyncing && c.current == nil:
		return c.opened.Add(RegisterWithin)
	}
	return forge.Never
}

// receive takes in one frame, in its turn.
func (d *Daemon) receive(now forge.Instant, c *conn, f forge.Frame) {
	if len(c.queue) >= MaxQueued {
		d.close(c, forge.CloseOverloaded)
		return
	}
	c.queue = append(c.queue, f)
	d.next(now, c)
}

// next handles queued frames until one has to wait for the store.
func (d *Daemon) next(now forge.Instant, c *conn) {
	for c.current == nil && len(c.queue) > 0 && c.state != forge.ConnClosed {
		f := c.queue[0]
		c.queue = c.queue[1:]
		if !allowed(c.state, f.Body) {
			c.state = forge.ConnClosed
			d.close(c, forge.CloseBadState)
			return
		}
		c.current = &request{frame: f}
		if cmd := d.command(now, c, f.Body); cmd != nil {
			d.run(c, cmd)
		}
	}
}

// allowed is the order of a dialogue (09§187): register, resync, then everything else.
func allowed(s forge.ConnectionState, m forge.Message) bool {
	switch m.(type) {
	case *forge.Register:
		return s == forge.ConnRegistering
	case *forge.Resync:
		return s == forge.ConnResyncing
	default:
		return s == forge.ConnActive
	}
}

func (d *Daemon) run(c *conn, cmd authority.Command) {
	d.emit(Begin{Tx: d.begin(pending{conn: c.id, command: cmd}), Command: cmd})
}

// finish ends the current request and turns to the next.
func (d *Daemon) finish(now forge.Instant, c *conn) {
	c.current = nil
	d.next(now, c)
}

// command returns the rule that a message asks for. It returns nil where there is none, or where something has to be
// read first.
func (d *Daemon) command(now forge.Instant, c *conn, m forge.Message) authority.Command {
	switch m := m.(type) {
	case *forge.Register:
		return d.registration(now, c, m)
	case *forge.Resync:
		d.emit(Load{Tx: d.begin(pending{conn: c.id, load: true}), Runner: c.runner})
		return nil
	case *forge.LeaseAccept:
		return &authority.Claim{
			Fence: c.fence, Context: m.Context, Phase: forge.AttemptOffered, Watched: d.watch.Lease(now, m.Context.Lease),
		}
	case *forge.LeaseReject:
		return &authority.Reject{Fence: c.fence, Context: m.Context, Reason: m.Reason}
	case *forge.Heartbeat:
		return d.heartbeat(now, c, m)
	case *forge.PhaseChange:
		return &authority.Phase{Fence: c.fence, Context: m.Context, Seq: m.Seq, Phase: m.Phase}
	case *forge.LogFinal:
		return &authority.SealLog{Fence: c.fence, Context: m.Context, Seal: m.Seal}
	case *forge.Completion:
		return &authority.Complete{Fence: c.fence, Completion: m}
	case *forge.RecoverAttempts:
		if len(m.Previous) > 0 {
			return d.nextRecovery(now, c)
		}
		d.send(c, c.current.frame.ID, &forge.RecoveryDecisions{})
	case *forge.CapabilityUpdate:
		d.emit(Capabilities{Runner: c.runner, Update: m})
	}
	c.current = nil // nothing to do, nothing to say
	return nil
}

func (d *Daemon) registration(now forge.Instant, c *conn, m *forge.Register) authority.Command {
	return &authority.Register{
		Runner: c.runner, Session: m.Session, StateFolder: m.StateFolder, Boot: m.Boot,
		StartCounter: m.StartCounter, TransportSeq: m.TransportSeq,
		Version: m.Version, CapabilityDigest: m.CapabilityDigest,
		Seen:     d.watch.Still(now, c.runner),
		Patience: d.watch.Patience(c.runner),
	}
}

func (d *Daemon) heartbeat(now forge.Instant, c *conn, m *forge.Heartbeat) authority.Command {
	cmd := &authority.Heartbeat{Fence: c.fence}
	for _, item := range m.Attempts {
		cmd.Leases = append(cmd.Leases, item.Lease)
	}
	slices.SortFunc(cmd.Leases, func(a, b forge.LeaseID) int { return a.Compare(b.ULID) })
	cmd.Leases = slices.Compact(cmd.Leases)
	for _, id := range cmd.Leases {
		cmd.Watched = append(cmd.Watched, d.watch.Lease(now, id))
	}
	c.current.leases = cmd.Leases
	return cmd
}

// answered goes on with the current request of a connection after its transaction.
func (d *Daemon) answered(now forge.Instant, c *conn, e Done) {
	r := c.current
	switch {
	case r == nil:
		return
	case !e.Committed:
		d.close(c, forge.CloseInternal) // nothing is known, so nothing is said
		return
	case e.Answer.Close != 0:
		d.close(c, e.Answer.Close)
		return
	}
	id, answer := r.frame.ID, &e.Answer
	switch m := r.frame.Body.(type) {
	case *forge.Register:
		if !d.registered(c, m, id) {
			return
		}
	case *forge.Resync:
		if !d.resyncAnswered(now, c, m, answer) {
			return
		}
	case *forge.RecoverAttempts:
		if !d.recoveryAnswered(now, c, m, answer) {
			return
		}
	case *forge.LeaseAccept:
		d.send(c, id, acceptAck(m, answer))
	case *forge.Heartbeat:
		d.send(c, id, &forge.HeartbeatAck{Nonce: m.Nonce, Verdicts: inOrder(m, r.leases, answer.Verdicts)})
	case *forge.PhaseChange:
		d.send(c, id, &forge.PhaseAck{Attempt: m.Context.Attempt, Seq: m.Seq})
	case *forge.LogFinal:
		d.sealAnswered(c, m, id, answer)
	case *forge.Completion:
		d.completionAnswered(c, m, id, answer)
	}
	d.finish(now, c)
}

// registered: this connection is now the voice of its runner, unless a newer one was faster: answers of transactions may
// overtake each other. Older ones here are closed. Between processes on different folders only the store can tell who
// is newer, and it will: their next message is fenced.
func (d *Daemon) registered(c *conn, m *forge.Register, id forge.MessageID) bool {
	c.fence = authority.Fence{Runner: c.runner, Session: m.Session, TransportSeq: m.TransportSeq}
	c.folder, c.start = m.StateFolder, m.StartCounter
	for _, other := range slices.Clone(d.conns) {
		if other == c || other.runner != c.runner || other.fence == (authority.Fence{}) {
			continue
		}
		if reason := c.overtakenBy(other); reason != 0 {
			d.close(c, reason)
			return false
		}
		if reason := other.overtakenBy(c); reason != 0 {
			d.close(other, reason)
		}
	}
	c.state = forge.ConnResyncing
	d.send(c, id, &forge.RegistrationAccepted{Policy: d.cfg.Policy})
	return true
}

// overtakenBy returns why c has lost its voice to another registered connection of its runner, or zero.
func (c *conn) overtakenBy(other *conn) forge.CloseReason {
	switch {
	case c.fence.Session == other.fence.Session && c.fence.TransportSeq < other.fence.TransportSeq:
		return forge.CloseFenced
	case c.fence.Session != other.fence.Session && c.folder == other.folder && c.start < other.start:
		return forge.CloseSessionSuperseded
	}
	return 0
}

func acceptAck(m *forge.LeaseAccept, answer *authority.Answer) *forge.LeaseAcceptAck {
	ack := &forge.LeaseAcceptAck{Lease: m.Context.Lease, Nonce: m.Nonce, Refused: answer.Refused}
	if v := answer.Verdicts[0]; v.Verdict == forge.VerdictContinue {
		ack.Granted, ack.HardTTL, ack.Cancel = true, v.HardTTL, v.Cancel
	} else if ack.Refused == 0 {
		ack.Refused = forge.RefusedExpired // it was accepted before, and has lived its life
	}
	return ack
}

// inOrder returns the verdicts in the order of the heartbeat's items.
func inOrder(m *forge.Heartbeat, locked []forge.LeaseID, verdicts []forge.LeaseVerdict) []forge.LeaseVerdict {
	ordered := make([]forge.LeaseVerdict, len(m.Attempts))
	for i, item := range m.Attempts {
		at, _ := slices.BinarySearchFunc(locked, item.Lease, func(a, b forge.LeaseID) int { return a.Compare(b.ULID) })
		ordered[i] = verdicts[at]
	}
	return ordered
}

func (d *Daemon) sealAnswered(c *conn, m *forge.LogFinal, id forge.MessageID, answer *authority.Answer) {
	switch {
	case answer.Done:
		d.send(c, id, &forge.LogFinalAck{Attempt: m.Context.Attempt})
	case answer.NotYet != 0:
		d.send(c, id, &forge.Error{Code: answer.NotYet, Retry: forge.RetryDelayed, Text: "log frames are missing"})
	default:
		d.send(c, id, &forge.Error{Code: forge.ErrorInternal, Retry: forge.RetryOperator, Text: "no such log"})
	}
}

func (d *Daemon) completionAnswered(c *conn, m *forge.Completion, id forge.MessageID, answer *authority.Answer) {
	if answer.NotYet != 0 {
		text := "the log is not sealed"
		if answer.NotYet == forge.ErrorNotYetRef {
			text = "an output is not readable yet"
		}
		d.send(c, id, &forge.Error{Code: answer.NotYet, Retry: forge.RetryDelayed, Text: text})
		return
	}
	d.send(c, id, &forge.CompletionAck{Attempt: m.Context.Attempt, Message: m.Message, Answer: answer.Completion})
}
