package protocol

import "github.com/forgeyard/forgeyard/internal/forge"

// The authority tuple (07§36) is written once: runner and session for a message, the rest for each item.

// PeerV1 says which runner and which of its processes a message is from, or for.
type PeerV1 struct {
	Runner  [16]byte
	Session [16]byte
}

// WorkV1 says which piece of work an item is about.
type WorkV1 struct {
	Job     [16]byte
	Attempt [16]byte
	Lease   [16]byte
	Spec    [32]byte
}

// ContextV1 is the whole tuple, of a message about one attempt.
type ContextV1 struct {
	Peer PeerV1
	Work WorkV1
}

// NewPeer returns the wire form.
func NewPeer(runner forge.RunnerID, session forge.AgentSessionID) PeerV1 {
	return PeerV1{Runner: runner.ULID, Session: session.ULID}
}

// RunnerID returns the runner.
func (p PeerV1) RunnerID() forge.RunnerID { return forge.MakeID[forge.RunnerID](p.Runner) }

// SessionID returns the session.
func (p PeerV1) SessionID() forge.AgentSessionID {
	return forge.MakeID[forge.AgentSessionID](p.Session)
}

// Validate checks that both are there.
func (p PeerV1) Validate() error {
	var c Check
	c.ID("runner", p.Runner)
	c.ID("session", p.Session)
	return c.Err()
}

// NewContext returns the wire form.
func NewContext(c forge.AttemptContext) ContextV1 {
	return ContextV1{Peer: NewPeer(c.Runner, c.Session), Work: NewWork(c)}
}

// NewWork returns the wire form of what a context says of the work.
func NewWork(c forge.AttemptContext) WorkV1 {
	return WorkV1{Job: c.Job.ULID, Attempt: c.Attempt.ULID, Lease: c.Lease.ULID, Spec: c.Spec}
}

// Of returns the tuple of the work under a peer.
func (w WorkV1) Of(p PeerV1) forge.AttemptContext {
	return forge.AttemptContext{
		Job: forge.MakeID[forge.JobID](w.Job), Attempt: forge.MakeID[forge.AttemptID](w.Attempt),
		Lease: forge.MakeID[forge.LeaseID](w.Lease), Spec: w.Spec,
		Runner: p.RunnerID(), Session: p.SessionID(),
	}
}

// Validate checks that everything is there.
func (w WorkV1) Validate() error {
	var c Check
	c.ID("job", w.Job)
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	c.Digest("spec", w.Spec)
	return c.Err()
}

// Domain returns the tuple.
func (c ContextV1) Domain() forge.AttemptContext { return c.Work.Of(c.Peer) }

// Validate checks that all six are there.
func (c ContextV1) Validate() error {
	if err := c.Peer.Validate(); err != nil {
		return err
	}
	return c.Work.Validate()
}
