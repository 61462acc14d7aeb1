package scheduler

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// world is a snapshot made ready for decisions: sorted, with the room of each runner worked out.
type world struct {
	jobs    []*job    // oldest first
	runners []*runner // by id
	whole   forge.Resources
}

type job struct {
	*Job
	suited []*runner // by id; could take it when they are empty
	holds  *runner
	placed bool
}

type runner struct {
	*Runner
	caps    forge.Capabilities  // with the administrator's labels; Resources is what jobs may use when it is empty
	free    forge.Resources     // of caps.Resources
	devices []forge.DeviceCount // free
	warm    []digest.Digest     // sorted
	held    *job
}

func newWorld(s Snapshot) *world {
	w := &world{}
	for i := range s.Runners {
		w.runners = append(w.runners, newRunner(&s.Runners[i]))
	}
	slices.SortFunc(w.runners, func(a, b *runner) int { return a.ID.Compare(b.ID.ULID) })
	for _, r := range w.runners {
		if sum, err := w.whole.Add(r.caps.Resources); err == nil {
			w.whole = sum
		}
	}
	for i := range s.Jobs {
		j := &job{Job: &s.Jobs[i]}
		for _, r := range w.runners {
			if r.suits(j) {
				j.suited = append(j.suited, r)
			}
		}
		w.jobs = append(w.jobs, j)
	}
	slices.SortFunc(w.jobs, (*job).compareAge)
	return w
}

// compareAge orders jobs, the oldest first.
func (j *job) compareAge(o *job) int {
	return cmp.Or(cmp.Compare(j.Sequence, o.Sequence), j.ID.Compare(o.ID.ULID))
}

// newRunner works out what jobs may use of a runner, and how much of that is left beside its open leases.
func newRunner(from *Runner) *runner {
	r := &runner{Runner: from, caps: from.Capabilities, devices: slices.Clone(from.Capabilities.Devices)}
	r.caps.Labels = slices.Concat(from.Capabilities.Labels, from.Labels)
	r.caps.Resources = r.Capabilities.Resources.Without(from.Summary.Reserved).Without(from.Reserved).Without(withheld(from.Summary))
	r.free = r.caps.Resources
	for _, open := range from.Open {
		r.take(open.Resources, open.Devices)
	}
	r.warm = slices.SortedFunc(slices.Values(from.Warm), compareDigests)
	return r
}

// withheld is what an agent offers less than it could, because it feels pressure (07§25). It is worked out from amounts of
// one heartbeat, so that it is right also while leases have come or gone since.
func withheld(s forge.ResourceSummary) forge.Resources {
	return forge.Allocatable(s.Total, s.Reserved, forge.Resources{}, s.Active).Without(s.Free)
}

// take uses up room. Open leases may hold more than there is, where a reserve was raised meanwhile.
func (r *runner) take(amount forge.Resources, devices []forge.DeviceCount) {
	r.free = r.free.Without(amount)
	for i := range r.devices {
		d := &r.devices[i]
		d.Count -= min(d.Count, forge.CountOf(devices, d.Kind))
	}
}

func compareDigests(a, b digest.Digest) int { return bytes.Compare(a[:], b[:]) }
