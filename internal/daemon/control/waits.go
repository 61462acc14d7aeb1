package control

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Pauses between offers (D09).
const (
	// freeOffers is how many offers that came to nothing are made again at once.
	freeOffers = 5
	// promptRetries is how many attempts that a fault of a machine has ended are tried again at once: what is lost with a
	// machine goes on at the next one, and what fails everywhere, as on a full disk, does not use up its retries in a second.
	promptRetries = 1
	// firstPause follows the next one; each further one doubles it, up to longestPause.
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	// askAgain is how long a runner that refused a job is not asked about it, since it waits again. Refusals may pass: a
	// full disk is cleaned, a busy machine becomes idle.
	askAgain = 30 * time.Second
	// wishStands is how long a wish is taken to be on its way. Then the job is looked at again.
	wishStands = 2 * time.Second
)

// pauseAfter is how long a job waits before it is offered again, after so many offers that came to nothing and so many
// attempts that a fault of a machine has ended.
func pauseAfter(free, infra uint32) time.Duration {
	return max(growing(free, freeOffers), growing(infra, promptRetries+1))
}

// growing is the pause for n tries, of which that with number first is the first that pauses.
func growing(n, first uint32) time.Duration {
	if n < first {
		return 0
	}
	pause := firstPause
	for ; n > first && pause < longestPause; n-- {
		pause *= 2
	}
	return min(pause, longestPause)
}

// waits is what is remembered of the jobs that wait. It is empty after a start, which makes their pauses begin anew.
type waits map[forge.JobID]*wait

// wait is one job that waits for a runner, since it became ready the last time.
type wait struct {
	since  forge.Instant
	free   uint32 // retries when it became ready
	infra  uint32
	ready  forge.WallTime // as stored: it tells one wait from the next, and nothing is counted from it
	wished forge.Instant  // when a placement was asked for; zero: none was
	runner forge.RunnerID // for which
}

// see takes in the jobs that wait now and forgets all others.
func (w waits) see(now forge.Instant, ready []store.ReadyJob) {
	there := make(map[forge.JobID]bool, len(ready))
	for i := range ready {
		j := &ready[i]
		there[j.ID] = true
		if old := w[j.ID]; old == nil || old.free != j.FreeRetries || old.infra != j.InfraRetries || old.ready != j.Changed {
			w[j.ID] = &wait{since: now, free: j.FreeRetries, infra: j.InfraRetries, ready: j.Changed}
		}
	}
	for id := range w {
		if !there[id] {
			delete(w, id)
		}
	}
}

// until is when the job may be offered again.
func (w *wait) until() forge.Instant { return w.since.Add(pauseAfter(w.free, w.infra)) }

// pausing reports whether it may not be offered yet.
func (w *wait) pausing(now forge.Instant) bool { return now < w.until() }

// onItsWay reports whether it was given to a runner and the offer may still come.
func (w *wait) onItsWay(now forge.Instant) bool {
	return w.wished != 0 && now < w.wished.Add(wishStands)
}

// refused lists the runners that are not asked again for now.
func (w *wait) refused(now forge.Instant, by []forge.RunnerID) []forge.RunnerID {
	if now >= w.since.Add(askAgain) {
		return nil
	}
	return by
}
