package authority

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Watch is a daemon's memory of counters that it has seen, and since when they stand still. It is how a daemon decides
// that a lease is over without trusting any clock's reading: only its own count of how long it looked.
//
// It is not authority. It is empty after a start, which only makes a daemon more patient, and what it proposes is
// conditional on the counter that it watched. It is owned by one goroutine.
type Watch struct {
	policy   forge.LeasePolicy
	leases   []watchedLease
	at       map[forge.LeaseID]int // index into leases
	sessions map[forge.RunnerID]*watchedSession
	reading  uint64 // number of the latest complete reading
}

type watchedLease struct {
	context  forge.AttemptContext
	state    forge.LeaseState
	renewals uint64
	hardTTL  time.Duration
	since    forge.Instant
	reading  uint64
	asked    bool // an expiry was proposed and its fate is not known
}

type watchedSession struct {
	seen  Stillness
	since forge.Instant
}

// NewWatch returns an empty watch.
func NewWatch(p forge.LeasePolicy) *Watch {
	return &Watch{policy: p, at: map[forge.LeaseID]int{}, sessions: map[forge.RunnerID]*watchedSession{}}
}

// SeeAll takes in a complete reading of the open leases and forgets every other one.
func (w *Watch) SeeAll(now forge.Instant, open []Lease) {
	w.reading++
	for i := range open {
		w.See(now, &open[i])
	}
	for i := 0; i < len(w.leases); {
		if w.leases[i].reading == w.reading {
			i++
			continue
		}
		w.forget(w.leases[i].context.Lease)
	}
}

// See takes in one lease as read or written just now. now is the moment at which the read returned or the commit was
// known: never the moment at which it was asked for. A change of the row starts the watch anew; a reading older than
// what is known already changes nothing.
func (w *Watch) See(now forge.Instant, l *Lease) {
	id := l.Context.Lease
	if l.State.Ended() {
		w.forget(id)
		return
	}
	known := w.lease(id)
	if known == nil {
		w.at[id] = len(w.leases)
		w.leases = append(w.leases, watchedLease{
			context: l.Context, state: l.State, renewals: l.Renewals, hardTTL: l.HardTTL, since: now, reading: w.reading,
		})
		return
	}
	known.reading = w.reading
	if l.Renewals < known.renewals || l.State < known.state {
		return
	}
	if l.Renewals != known.renewals || l.State != known.state {
		known.state, known.renewals, known.hardTTL, known.since = l.State, l.Renewals, l.HardTTL, now
	}
	known.asked = false
}

// SeeSession takes in a runner's session and its beats, like See.
func (w *Watch) SeeSession(now forge.Instant, s *Session, beats uint64) {
	seen := Stillness{Session: s.Session, TransportSeq: s.TransportSeq, Beats: beats}
	known := w.sessions[s.Runner]
	if known == nil {
		w.sessions[s.Runner] = &watchedSession{seen: seen, since: now}
		return
	}
	if known.seen != seen {
		known.seen, known.since = seen, now
	}
}

// Still returns for how long a runner's session has been seen standing still.
func (w *Watch) Still(now forge.Instant, runner forge.RunnerID) Stillness {
	known := w.sessions[runner]
	if known == nil {
		return Stillness{}
	}
	seen := known.seen
	seen.For = now.Sub(known.since)
	return seen
}

// Patience is how long a runner's session must stand still before it counts as dead: as long as any lease of it that is
// still open may live unseen.
func (w *Watch) Patience(runner forge.RunnerID) time.Duration {
	longest := w.policy.TTL + w.policy.Grace
	for i := range w.leases {
		if w.leases[i].context.Runner == runner {
			longest = max(longest, w.leases[i].hardTTL)
		}
	}
	return w.policy.Watch(longest)
}

// Lease returns what has been watched of a lease since its last renewal.
func (w *Watch) Lease(now forge.Instant, id forge.LeaseID) Watched {
	if known := w.lease(id); known != nil {
		return Watched{Lease: id, Renewals: known.renewals, For: now.Sub(known.since)}
	}
	return Watched{Lease: id}
}

// Due appends an expiry for each lease that has stood still for long enough, each at most once until it is seen again.
func (w *Watch) Due(now forge.Instant, dst []*Expire) []*Expire {
	for i := range w.leases {
		l := &w.leases[i]
		if l.asked || now.Sub(l.since) < w.patience(l) {
			continue
		}
		l.asked = true
		dst = append(dst, &Expire{Context: l.context, State: l.state, Renewals: l.renewals})
	}
	return dst
}

// patience is how long a lease must stand still before it may be expired.
func (w *Watch) patience(l *watchedLease) time.Duration {
	if l.state == forge.LeaseOffered {
		return w.policy.OfferTTL
	}
	return w.policy.Watch(l.hardTTL)
}

func (w *Watch) lease(id forge.LeaseID) *watchedLease {
	if i, ok := w.at[id]; ok {
		return &w.leases[i]
	}
	return nil
}

// forget removes a lease by moving the last one into its place.
func (w *Watch) forget(id forge.LeaseID) {
	i, ok := w.at[id]
	if !ok {
		return
	}
	last := len(w.leases) - 1
	if i != last {
		w.leases[i] = w.leases[last]
		w.at[w.leases[i].context.Lease] = i
	}
	w.leases = w.leases[:last]
	delete(w.at, id)
}
