package authority

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Register makes a connection the voice of its runner (09§57), or says why not. Within one process the newest
// connection speaks; of one state folder, the newest process; and another folder takes over only once nothing of the
// present session has moved for as long as a lease may live unseen.
type Register struct {
	Runner           forge.RunnerID // as authenticated, never as claimed
	Session          forge.AgentSessionID
	StateFolder      forge.StateFolderID
	Boot             forge.BootID
	StartCounter     uint64
	TransportSeq     uint64
	Version          string
	CapabilityDigest digest.Digest
	Seen             Stillness     // of the session that is now current
	Patience         time.Duration // how long that has to have stood still to count as dead
}

// Stillness is what a daemon has itself watched of a runner's session: for how long neither the session nor its beats
// have changed.
type Stillness struct {
	Session      forge.AgentSessionID
	TransportSeq uint64
	Beats        uint64
	For          time.Duration
}

// Keys implements Command.
func (c *Register) Keys(dst []Key) []Key {
	return append(dst,
		Key{Table: TableSession, Lock: Update, ID: c.Runner.ULID},
		Key{Table: TableFolder, Lock: Update, ID: c.Runner.ULID, Sub: c.StateFolder.ULID},
		Key{Table: TableBeat, Lock: Share, ID: c.Runner.ULID},
		Key{Table: TableRunner, Lock: Share, ID: c.Runner.ULID},
	)
}

// Apply implements Command.
func (c *Register) Apply(rows *Rows) Answer {
	if answer := c.admission(rows); answer.Close != 0 {
		return answer
	}
	current := rows.Session.Value
	if current.Session == c.Session {
		if current.StateFolder != c.StateFolder || current.Boot != c.Boot || current.StartCounter != c.StartCounter {
			return Answer{Close: forge.CloseCloneSuspected, Audit: AuditCloneSuspected}
		}
		if c.TransportSeq <= current.TransportSeq {
			return Answer{Close: forge.CloseFenced}
		}
		s := rows.Session.write()
		s.TransportSeq, s.Version, s.CapabilityDigest = c.TransportSeq, c.Version, c.CapabilityDigest
		return Answer{Done: true}
	}
	answer := c.succession(rows)
	if answer.Done {
		c.take(rows)
	}
	return answer
}

// admission refuses runners that may not speak at all.
func (c *Register) admission(rows *Rows) Answer {
	switch r := rows.Runner; {
	case !r.Found || !rows.Session.Found:
		return Answer{Close: forge.CloseAuthFailed}
	case r.Value.Revoked:
		return Answer{Close: forge.CloseRevoked}
	case r.Value.Disabled:
		return Answer{Close: forge.CloseRunnerDisabled}
	}
	return Answer{}
}

// succession decides whether another process may take the place of the current one.
func (c *Register) succession(rows *Rows) Answer {
	current := rows.Session.Value
	switch {
	case rows.Folder.Found && c.StartCounter < rows.Folder.Value.Highest:
		return Answer{Close: forge.CloseSessionSuperseded}
	case rows.Folder.Found && c.StartCounter == rows.Folder.Value.Highest:
		// The counter moves at every start under the folder's lock: an equal one was current before, or is a copy.
		if current.StateFolder == c.StateFolder {
			return Answer{Close: forge.CloseCloneSuspected, Audit: AuditCloneSuspected}
		}
		return Answer{Close: forge.CloseSessionSuperseded}
	case current.Session.IsZero():
		return Answer{Done: true}
	case current.StateFolder == c.StateFolder:
		return Answer{Done: true, Audit: AuditSessionReplaced}
	case c.mayLive(rows):
		return Answer{Close: forge.CloseCloneSuspected, Audit: AuditCloneSuspected}
	}
	return Answer{Done: true, Audit: AuditFolderReplaced}
}

// mayLive reports whether the current session may still be alive as far as this daemon has watched.
func (c *Register) mayLive(rows *Rows) bool {
	s := rows.Session.Value
	same := c.Seen.Session == s.Session && c.Seen.TransportSeq == s.TransportSeq && c.Seen.Beats == rows.Beat.Value.Count
	return !same || c.Seen.For < c.Patience
}

// take makes the sender the current session.
func (c *Register) take(rows *Rows) {
	*rows.Session.write() = Session{
		Runner: c.Runner, Session: c.Session, StateFolder: c.StateFolder, Boot: c.Boot,
		StartCounter: c.StartCounter, TransportSeq: c.TransportSeq,
		Version: c.Version, CapabilityDigest: c.CapabilityDigest,
	}
	*rows.Folder.write() = Folder{Runner: c.Runner, StateFolder: c.StateFolder, Highest: c.StartCounter}
}

// SetRunner changes what the server has decided about a runner. It ends no lease: a daemon that sees the flags cancels
// and closes.
type SetRunner struct {
	Runner   forge.RunnerID
	Disabled bool
	Revoked  bool
	Draining bool
}

// Keys implements Command.
func (c *SetRunner) Keys(dst []Key) []Key {
	return append(dst, Key{Table: TableRunner, Lock: Update, ID: c.Runner.ULID})
}

// Apply implements Command.
func (c *SetRunner) Apply(rows *Rows) Answer {
	if !rows.Runner.Found {
		return Answer{}
	}
	r := rows.Runner.write()
	r.Disabled, r.Draining = c.Disabled, c.Draining
	r.Revoked = r.Revoked || c.Revoked
	return Answer{Done: true}
}
