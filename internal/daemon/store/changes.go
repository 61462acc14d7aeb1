package store

import (
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxChanges bounds each list of Changes; with more, All is set instead.
const MaxChanges = 1024

// Changes is what was committed since the last Take. It says where to look, never what is there now, and may say too much.
type Changes struct {
	All      bool              // too many to list: look at everything
	Runs     []forge.RunID     // their state, flags, or jobs, but for what only the attempts of those have come to
	Jobs     []forge.JobID     // their state, flags or attempts
	Attempts []forge.AttemptID // their state, result or log
	Runners  []forge.RunnerID  // their flags, records, sessions or open leases; not their beats
}

// Subscription tells its owner that something changed. It is bounded and never blocks the store: what is not taken is
// merged.
type Subscription struct {
	hub     *hub
	signal  chan struct{}
	mu      sync.Mutex
	pending changeSet
}

// C gets a value when there is something to Take. It is never closed.
func (s *Subscription) C() <-chan struct{} { return s.signal }

// Take returns what changed since the last Take.
func (s *Subscription) Take() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := Changes(s.pending)
	s.pending = changeSet{}
	return taken
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() { s.hub.remove(s) }

// changeSet collects changes, each once.
type changeSet Changes

func (c *changeSet) run(id forge.RunID)         { note(c, &c.Runs, id) }
func (c *changeSet) job(id forge.JobID)         { note(c, &c.Jobs, id) }
func (c *changeSet) attempt(id forge.AttemptID) { note(c, &c.Attempts, id) }
func (c *changeSet) runner(id forge.RunnerID)   { note(c, &c.Runners, id) }

func note[T comparable](c *changeSet, list *[]T, id T) {
	switch {
	case c.All || slices.Contains(*list, id):
	case len(*list) >= MaxChanges:
		*c = changeSet{All: true}
	default:
		*list = append(*list, id)
	}
}

func (c *changeSet) merge(from *changeSet) {
	if from.All {
		*c = changeSet{All: true}
	}
	for _, id := range from.Runs {
		c.run(id)
	}
	for _, id := range from.Jobs {
		c.job(id)
	}
	for _, id := range from.Attempts {
		c.attempt(id)
	}
	for _, id := range from.Runners {
		c.runner(id)
	}
}

func (c *changeSet) empty() bool {
	return !c.All && len(c.Runs)+len(c.Jobs)+len(c.Attempts)+len(c.Runners) == 0
}

// hub hands changes to the subscriptions.
type hub struct {
	mu   sync.Mutex
	subs []*Subscription
}

func (h *hub) subscribe() *Subscription {
	s := &Subscription{hub: h, signal: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = append(h.subs, s)
	return s
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = slices.DeleteFunc(h.subs, func(other *Subscription) bool { return other == s })
}

// publish adds changes to every subscription.
func (h *hub) publish(c *changeSet) {
	if c.empty() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subs {
		s.add(c)
	}
}

func (s *Subscription) add(c *changeSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending.merge(c)
	select {
	case s.signal <- struct{}{}:
	default:
	}
}
