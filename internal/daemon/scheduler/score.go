package scheduler

import (
	"cmp"
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// best returns the runner that the job goes to: of those that suit it, have room and are not held for an older job, the
// one with the best rank; of equals, the one with the lowest id. Nil if there is none.
func (j *job) best() *runner {
	if j.NotYet {
		return nil
	}
	var best *runner
	var bestRank rank
	for _, r := range j.suited {
		if r.closedTo(j) || !r.fits(j) {
			continue
		}
		if rank := r.rank(j); best == nil || rank.compare(bestRank) < 0 {
			best, bestRank = r, rank
		}
	}
	return best
}

// rank says how good a runner is for a job; less is better, and what stands first counts most.
type rank struct {
	degraded bool   // healthy runners first
	pressed  bool   // those with processor time to spare first
	cold     int    // input trees and toolchains that it would have to fetch
	spare    int    // devices that would stand idle beside the job: leave those to jobs that want them
	load     uint64 // of the runner with the job on it, so that jobs spread
}

func (r *runner) rank(j *job) rank {
	return rank{
		degraded: r.Health == forge.Degraded,
		pressed:  r.Summary.Pressure == forge.PressureCPU,
		cold:     len(j.Inputs) + len(j.Need.Constraints.Toolchains) - r.warmth(j),
		spare:    r.spare(j),
		load:     share(r.caps.Resources.Without(r.free.Without(j.Need.Resources)), r.caps.Resources),
	}
}

func (a rank) compare(b rank) int {
	return cmp.Or(
		compareBools(a.degraded, b.degraded), compareBools(a.pressed, b.pressed), cmp.Compare(a.cold, b.cold), cmp.Compare(a.spare, b.spare),
		cmp.Compare(a.load, b.load),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// warmth counts what the job wants and the runner has already.
func (r *runner) warmth(j *job) int {
	warm := j.Need.WarmToolchains(&r.caps)
	for _, root := range j.Inputs {
		if _, found := slices.BinarySearchFunc(r.warm, root, compareDigests); found {
			warm++
		}
	}
	return warm
}

// spare counts the kinds of devices that the runner has and the job does not want.
func (r *runner) spare(j *job) int {
	spare := 0
	for _, d := range r.caps.Devices {
		if forge.CountOf(j.Need.Constraints.Devices, d.Kind) == 0 {
			spare++
		}
	}
	return spare
}
