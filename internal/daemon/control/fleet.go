package control

import (
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// fleet is what the runners' connections say: who is in step, and how it is. It is empty after a start and fills as agents
// come back.
type fleet struct {
	mu   sync.Mutex
	live map[forge.RunnerID]live
}

// live is a runner that is connected and in step. Until its first heartbeat and report, what is stored stands for them.
type live struct {
	session  forge.AgentSessionID
	draining bool // by its own wish
	summary  forge.ResourceSummary
	said     bool // summary is of this connection
	health   forge.HealthStatus
}

// now returns who is in step at this moment.
func (f *fleet) now() map[forge.RunnerID]live {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[forge.RunnerID]live, len(f.live))
	for id, l := range f.live {
		out[id] = l
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
	c.fleet.live[runner] = live{session: session}
	c.fleet.mu.Unlock()
	c.Nudge()
}

// Disconnected says that its connection is gone. Its leases stand until they end.
func (c *Control) Disconnected(runner forge.RunnerID) {
	c.fleet.mu.Lock()
	delete(c.fleet.live, runner)
	c.fleet.mu.Unlock()
}

// Capabilities says that a new snapshot of a runner is in the store.
func (c *Control) Capabilities(forge.RunnerID) { c.Nudge() }

// Heartbeat brings what a renewed runner says of its state and load.
func (c *Control) Heartbeat(runner forge.RunnerID, state forge.AgentState, load forge.ResourceSummary) {
	more := c.fleet.change(runner, func(l *live) bool {
		more := !l.said || l.draining != (state == forge.AgentDraining) || l.summary != load
		l.draining, l.summary, l.said = state == forge.AgentDraining, load, true
		return more
	})
	if more {
		c.Nudge()
	}
}

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

// IsConnected reports whether a runner is connected and in step, and which of its processes speaks.
func (c *Control) IsConnected(runner forge.RunnerID) (forge.AgentSessionID, bool) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	l, ok := c.fleet.live[runner]
	return l.session, ok
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
