package store

import "github.com/forgeyard/forgeyard/internal/forge"

// MaxChanges bounds each list of Changes; with more, All is set instead.
const MaxChanges = 1024

// Changes is what was committed since the last Take. It says where to look, never what is there now, and may say too much.
type Changes struct {
	All      bool // too many to list, or not known: look at everything
	Runs     []forge.RunID
	Jobs     []forge.JobID     // their state, flags or attempts
	Attempts []forge.AttemptID // their state, result or log
	Runners  []forge.RunnerID  // their flags, records, sessions or open leases; not their beats
}

// Subscription tells its owner that something changed. It is bounded and never blocks the store: what is not taken is
// merged.
type Subscription struct{}

// C gets a value when there is something to Take. It is never closed.
func (s *Subscription) C() <-chan struct{} { return nil }

// Take returns what changed since the last Take.
func (s *Subscription) Take() Changes { return Changes{} }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {}
