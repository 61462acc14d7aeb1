package scheduler

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// misses yields everything that keeps the runner from taking the job now, in the order of the kinds.
func (r *runner) misses(j *job) iter.Seq[forge.Miss] {
	return func(yield func(forge.Miss) bool) {
		_ = r.unsuited(j, yield) && r.busy(j, yield) && r.heldAgainst(j, yield)
	}
}

// suits reports whether the runner could take the job as soon as it is empty.
func (r *runner) suits(j *job) bool {
	return r.unsuited(j, func(forge.Miss) bool { return false })
}

// fits reports whether a runner that suits the job has room for it now.
func (r *runner) fits(j *job) bool {
	return r.busy(j, func(forge.Miss) bool { return false })
}

// unsuited yields what would keep even an empty runner from the job. It reports whether the reader wants more.
func (r *runner) unsuited(j *job, yield func(forge.Miss) bool) bool {
	if !r.unavailable(yield) {
		return false
	}
	need := &j.Need.Constraints
	if r.Pool != need.Pool && !yield(forge.Miss{Kind: forge.MissPool, What: need.Pool, Got: r.Pool}) {
		return false
	}
	if !r.Trust.Runs(need.Trust) && !yield(forge.Miss{Kind: forge.MissTrust, What: need.Trust.String(), Got: r.Trust.String()}) {
		return false
	}
	if r.unknown() {
		return true // it was said that it is not connected, and what it can do is not known
	}
	for m := range j.Need.Misses(&r.caps) {
		if !yield(m) {
			return false
		}
	}
	return !slices.Contains(j.Refused, r.ID) || yield(forge.Miss{Kind: forge.MissRefused})
}

// unknown reports whether the runner has never said what it can do: it was made and did not come yet.
func (r *runner) unknown() bool { return !r.Connected && r.caps.SchemaVersion == 0 }

// unavailable yields what keeps the runner from any job. A want of processor time does not: there work is slow and nothing
// breaks, so it only makes the runner the last choice. Else one busy neighbour would stop every job of a small fleet.
func (r *runner) unavailable(yield func(forge.Miss) bool) bool {
	return (!r.Disabled || yield(forge.Miss{Kind: forge.MissDisabled})) && // before what it leads to: summaries say the first alone
		(r.Connected || yield(forge.Miss{Kind: forge.MissDisconnected})) &&
		(!r.Draining || yield(forge.Miss{Kind: forge.MissDraining})) &&
		(r.Health < forge.Unhealthy || yield(forge.Miss{Kind: forge.MissUnhealthy})) &&
		(r.Summary.Pressure.Normal() || r.Summary.Pressure == forge.PressureCPU || yield(forge.Miss{Kind: forge.MissPressure, Got: r.Summary.Pressure.String()}))
}

// busy yields what the job would find in an empty runner and does not find in this one. What not even an empty one has
// is left out: that is said by unsuited.
func (r *runner) busy(j *job, yield func(forge.Miss) bool) bool {
	if !j.Need.Resources.Fits(r.free) {
		for m := range j.Need.Resources.Misses(forge.MissBusy, r.free) {
			if !r.tooSmall(j, m.What) && !yield(m) {
				return false
			}
		}
	}
	for _, d := range j.Need.Constraints.Devices {
		have := forge.CountOf(r.devices, d.Kind)
		if have < d.Count && d.Count <= forge.CountOf(r.caps.Devices, d.Kind) &&
			!yield(forge.Miss{Kind: forge.MissBusy, What: "device " + d.Kind, Need: uint64(d.Count), Have: uint64(have)}) {
			return false
		}
	}
	return true
}

// tooSmall reports whether not even the empty runner has enough of a resource.
func (r *runner) tooSmall(j *job, what string) bool {
	for m := range j.Need.Resources.Misses(forge.MissCapacity, r.caps.Resources) {
		if m.What == what {
			return true
		}
	}
	return false
}

// heldAgainst yields the hold of an older job.
func (r *runner) heldAgainst(j *job, yield func(forge.Miss) bool) bool {
	return !r.closedTo(j) || yield(forge.Miss{Kind: forge.MissHeld, What: r.held.ID.String()})
}

// closedTo reports whether the runner is held for a job older than j.
func (r *runner) closedTo(j *job) bool { return r.held != nil && r.held.compareAge(j) < 0 }

// lacks measures how far a runner that suits the job is from having room for it: the sum over all that it needs of the
// part that is not free, in millionths. Zero means that it fits. It never grows while nothing is placed on the runner.
func (r *runner) lacks(j *job) uint64 {
	var sum uint64
	r.busy(j, func(m forge.Miss) bool {
		sum += millionths(m.Need-m.Have, m.Need)
		return true
	})
	return sum
}

// millionths returns part of whole in millionths, rounded up, at most a million.
func millionths(part, whole uint64) uint64 {
	const million = 1_000_000
	if part >= whole {
		return million
	}
	hi, lo := bits.Mul64(part, million)
	quotient, rest := bits.Div64(hi, lo, whole) // hi < whole, since part < whole
	if rest > 0 {
		quotient++
	}
	return quotient
}

// share is the part of the whole that an amount is, by the resource of which it is most, in millionths.
func share(of, whole forge.Resources) uint64 {
	return max(
		portion(uint64(of.CPU), uint64(whole.CPU)), portion(uint64(of.Memory), uint64(whole.Memory)),
		portion(uint64(of.Disk), uint64(whole.Disk)), portion(uint64(of.Slots), uint64(whole.Slots)),
	)
}

func portion(part, whole uint64) uint64 {
	if part == 0 {
		return 0
	}
	return millionths(part, whole)
}
