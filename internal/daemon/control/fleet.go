package control

import (
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// fleet is what the runners' connections say: who is in step, and how it is. It is empty after a start and fills as agents
// come back.
type fleet struct {
	mu      sync.Mutex
	live    map[forge.RunnerID]live
	refused map[forge.RunnerID]Refusal
}

// Refusal says why the agent of a runner was not let in, before it could say anything.
type Refusal struct {
	Reason forge.CloseReason // TOO_OLD, TOO_NEW or VERSION_MISMATCH
	Why    string            // the versions of both
	At     time.Time
}

// Word says it in a word or two, as the runner's state.
func (r *Refusal) Word() string {
	switch r.Reason {
	case forge.CloseTooOld:
		return "too old"
	case forge.CloseTooNew:
		return "too new"
	}
	return "other version"
}

// Sentence says it with what to do.
func (r *Refusal) Sentence() string {
	text := "its agent was refused, because it speaks no version that this daemon speaks: " + r.Why
	switch r.Reason {
	case forge.CloseTooOld:
		return text + "; install a newer agent on its machine"
	case forge.CloseTooNew:
		return text + "; update this daemon, or install an older agent on its machine"
	}
	return text + "; install an agent on its machine that fits this daemon"
}

// maxRefusals bounds the refusals that are remembered; the rest is in the log.
const maxRefusals = 4096

// live is a runner that is connected and in step. Until its first heartbeat and report, what is stored stands for them.
type live struct {
	session  forge.AgentSessionID
	heard    forge.Instant // its last sign of life
	draining bool          // by its own wish
	summary  forge.ResourceSummary
	said     bool // summary is of this connection
	health   forge.HealthStatus
}

// silentBeats is how many heartbeats a runner may miss before it gets no more jobs. Its machine may be gone although its
// connection still stands: an offer to it would cost the job the time that offers stand.
const silentBeats = 3

// since returns who is in step and was heard of since a moment.
func (f *fleet) since(then forge.Instant) map[forge.RunnerID]live {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[forge.RunnerID]live, len(f.live))
	for id, l := range f.live {
		if l.heard >= then {
			out[id] = l
		}
	}
	return out
}

// change edits what is known of a runner that is in step, and reports whether edit says that jobs may fit now.
func (f *fleet) change(id forge.RunnerID, edit func(*live) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.live[id]
	if !ok {
		return false
	}
	matters := edit(&l)
	f.live[id] = l
	return matters
}

// Connected says that a runner is there to take work: it has registered and said what it still holds. This and the
// methods below are how the agents' edge tells of its runners; none of them waits.
func (c *Control) Connected(runner forge.RunnerID, session forge.AgentSessionID) {
	c.fleet.mu.Lock()
	c.fleet.live[runner] = live{session: session, heard: c.now()}
	delete(c.fleet.refused, runner)
	c.fleet.mu.Unlock()
	c.Nudge()
}

// Refused says that the agent of a runner was not let in, for its version. That is remembered until it is, or this process
// ends (case B43).
func (c *Control) Refused(runner forge.RunnerID, reason forge.CloseReason, why string) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	if _, known := c.fleet.refused[runner]; known || len(c.fleet.refused) < maxRefusals {
		c.fleet.refused[runner] = Refusal{Reason: reason, Why: why, At: clock.Wall()}
	}
}

// Disconnected says that its connection is gone. Its leases stand until they end.
func (c *Control) Disconnected(runner forge.RunnerID) {
	c.fleet.mu.Lock()
	delete(c.fleet.live, runner)
	c.fleet.mu.Unlock()
}

// Capabilities says that a new snapshot of a runner is in the store.
func (c *Control) Capabilities(forge.RunnerID) { c.Nudge() }

// Heartbeat brings what a renewed runner says of its state and, once it has measured it, its load.
func (c *Control) Heartbeat(runner forge.RunnerID, state forge.AgentState, load forge.ResourceSummary) {
	now := c.now()
	draining := state == forge.AgentDraining || state == forge.AgentShuttingDown
	more := c.fleet.change(runner, func(l *live) bool {
		more := l.draining != draining || now.Sub(l.heard) > c.silence()
		l.heard, l.draining = now, draining
		if load != (forge.ResourceSummary{}) {
			more = more || !l.said || l.summary != load
			l.summary, l.said = load, true
		}
		return more
	})
	if more {
		c.Nudge()
	}
}

// silence is how long a runner may be silent and still get jobs.
func (c *Control) silence() time.Duration { return silentBeats * c.policy.Renew }

// Health brings a runner's report.
func (c *Control) Health(runner forge.RunnerID, health forge.Health) {
	changed := c.fleet.change(runner, func(l *live) bool {
		changed := l.health != health.Status
		l.health = health.Status
		return changed
	})
	if changed {
		c.Nudge()
	}
}

// Presence is what a runner's connection says of it, if it has one.
type Presence struct {
	Connected bool     // and in step
	Draining  bool     // by its owner's wish
	Refused   *Refusal // the latest, of one that is not connected
}

// Presence reports whether a runner is there.
func (c *Control) Presence(runner forge.RunnerID) Presence {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	l, ok := c.fleet.live[runner]
	p := Presence{Connected: ok, Draining: l.draining}
	if refusal, refused := c.fleet.refused[runner]; refused && !ok {
		p.Refused = &refusal
	}
	return p
}

// Connections counts the runners that are connected and in step.
func (c *Control) Connections() int {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	return len(c.fleet.live)
}

// Waiting counts the jobs that waited for a runner when the loop last looked.
func (c *Control) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waits)
}

// UnderPressure counts the connected runners that are short of something.
func (c *Control) UnderPressure() int {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	n := 0
	for _, l := range c.fleet.live {
		if !l.summary.Pressure.Normal() {
			n++
		}
	}
	return n
}
