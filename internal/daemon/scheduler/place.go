// Package scheduler decides which waiting job goes to which runner, and says why each of the others still waits.
//
// Place is a pure function over a snapshot: the same jobs and runners give the same plan, whatever order they are listed
// in. It changes nothing, sends nothing, and never looks at a clock. Its caller offers what it places, each offer in a
// transaction that checks again, and calls it anew when something has changed.
//
//	snapshot → hold a runner for each old job that only fits an empty one
//	         → project with the least share first, its oldest job first:
//	             best runner that suits, has room, and is not held for an older job
//	         → plan: placements, holds, waiting jobs, and the reasons on request
//
// What it promises:
//   - No runner is given more than it has, less what its agent and its administrator keep.
//   - No job waits while a runner that suits it has room, unless that runner is held for an older job.
//   - Between projects the one that holds the smallest share of the fleet goes first; the share is that of the resource
//     it holds most of, so that large jobs count as large.
//   - A job that fits a runner when it is empty gets it in the end: once the job is the oldest that does not fit anywhere,
//     one runner takes no younger jobs until it does. Each round holds the runner nearest to having room, and a held
//     runner only gets nearer, so the hold may move but never starts over.
package scheduler

import (
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Snapshot is what is known at one moment. Ids are unique within each list.
type Snapshot struct {
	Jobs    []Job // ready: planned, and not offered or running
	Runners []Runner
}

// Job is a job that waits for a runner.
type Job struct {
	ID       forge.JobID
	Project  forge.ProjectName
	Sequence uint64 // order of submission; of two with the same, the lower id is older
	Need     forge.Need
	Inputs   []digest.Digest  // roots of its input trees; a runner that has them is better, not required
	NotYet   bool             // is pausing after what was tried came to nothing: placed nowhere for now
	Refused  []forge.RunnerID // that refused it and are not asked again
}

// Runner is a runner with everything that counts for placement.
type Runner struct {
	forge.Runner
	Capabilities forge.Capabilities
	Summary      forge.ResourceSummary // of its last heartbeat; zero before the first
	Health       forge.HealthStatus    // zero: nothing was said
	Connected    bool                  // registered and in step with the daemon
	Open         []Open                // every lease on it that is offered or accepted
	Warm         []digest.Digest       // roots of trees that it has
}

// Open is a lease that takes room on a runner.
type Open struct {
	Project   forge.ProjectName
	Resources forge.Resources
	Devices   []forge.DeviceCount
}

// Plan is what is to be done about a snapshot. It keeps parts of the snapshot, which must not be changed while the plan
// is asked for reasons.
type Plan struct {
	Placements []Placement   // in the order in which they were decided
	Holds      []Hold        // by age of the job
	Waiting    []forge.JobID // jobs that were not placed, oldest first

	world *world
}

// Placement gives a job to a runner.
type Placement struct {
	Job    forge.JobID
	Runner forge.RunnerID
}

// Hold keeps a runner free of jobs younger than one that needs it empty, or emptier.
type Hold struct {
	Job    forge.JobID
	Runner forge.RunnerID
}

// Place decides.
func Place(s Snapshot) *Plan {
	w := newWorld(s)
	plan := &Plan{world: w}
	plan.Holds = w.holdRunners() // first: what is held bounds what may be placed
	plan.Placements = w.placeJobs()
	for _, j := range w.jobs {
		if !j.placed {
			plan.Waiting = append(plan.Waiting, j.ID)
		}
	}
	return plan
}

// placeJobs tries each job once. That is enough: room only shrinks while jobs are placed, so what did not fit will not.
func (w *world) placeJobs() []Placement {
	var placements []Placement
	for q := w.queue(); ; {
		j := q.next()
		if j == nil {
			return placements
		}
		r := j.best()
		if r == nil {
			continue
		}
		r.take(j.Need.Resources, j.Need.Constraints.Devices)
		q.charge(j)
		j.placed = true
		placements = append(placements, Placement{j.ID, r.ID})
	}
}

// holdRunners goes through the jobs by age and keeps a runner for each that fits none now. One that is held for an older
// job counts as one that it does not fit.
func (w *world) holdRunners() []Hold {
	var holds []Hold
	for _, j := range w.jobs {
		if j.NotYet {
			continue
		}
		if r := j.nearest(); r != nil {
			r.held = j
			j.holds = r
			holds = append(holds, Hold{j.ID, r.ID})
		}
	}
	return holds
}

// nearest returns the runner to hold for a job: of those that suit it and are not held, the one that lacks least. Nil if
// the job fits one of them now, or there is none.
func (j *job) nearest() *runner {
	var nearest *runner
	var least uint64
	for _, r := range j.suited {
		if r.held != nil {
			continue
		}
		lacks := r.lacks(j)
		if lacks == 0 {
			return nil
		}
		if nearest == nil || lacks < least {
			nearest, least = r, lacks
		}
	}
	return nearest
}
