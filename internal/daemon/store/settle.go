package store

import (
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// Settlement is what a run's owner decides about it. Each part is held against the tables of lifecycle; what is not legal
// any more is an error and changes nothing.
type Settlement struct {
	Plan   []Planned
	Skip   []Skip
	Cancel []forge.JobID     // by authority.CancelJob
	Run    []lifecycle.Event // of the run, in order; at most two (start, then an end)
}

// Planned makes a waiting job ready.
type Planned struct {
	authority.Plan
	Bytes []byte // of the spec, where it is not the job's draft
	Terms *Terms // likewise
}

// Skip ends a waiting job that will not run.
type Skip struct {
	Job    forge.JobID
	Reason string // for people
}

// Settle reads a run with its jobs, lets decide decide, and writes that.
func (tx *Tx) Settle(run forge.RunID, decide func(Run, []Job) Settlement) error { return errUnbuilt }

// Unsettled lists runs of which a job has changed since they were settled, oldest first, at most limit.
func (v *View) Unsettled(limit int) ([]forge.RunID, error) { return nil, errUnbuilt }
