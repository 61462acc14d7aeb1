package authority

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// The third rule on time: a daemon expires only what it has itself watched standing still for long enough.

// start is when a watch here begins.
const start = forge.Instant(time.Hour)

func leaseOf(n byte, s forge.LeaseState, renewals uint64) Lease {
	return Lease{
		Context: forge.AttemptContext{Lease: forge.LeaseID{ULID: forge.ULID{15: n}}, Job: forge.JobID{ULID: forge.ULID{15: n}}},
		State:   s, Renewals: renewals, HardTTL: hardTTL,
	}
}

// patience is what a lease of hardTTL needs by default: 2 % of it is more than the margin.
const patience = hardTTL + hardTTL/50

// due returns the numbers of the leases that are proposed to expire.
func due(w *Watch, now forge.Instant) []byte {
	var numbers []byte
	for _, cmd := range w.Due(now, nil) {
		numbers = append(numbers, cmd.Context.Lease.ULID[15])
	}
	slices.Sort(numbers)
	return numbers
}

func TestALeaseIsDueOnceItWasSeenStandingStillForItsTTLAndTheMargin(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		6 * time.Second:   8 * time.Second,           // 2 s are more than 2 %
		100 * time.Second: 102 * time.Second,         // both alike
		120 * time.Second: 122400 * time.Millisecond, // 2 % are more
	} {
		w := NewWatch(policy)
		l := leaseOf(1, forge.LeaseAccepted, 7)
		l.HardTTL = ttl
		w.See(start, &l)
		if got := due(w, start.Add(want-1)); got != nil {
			t.Errorf("hard ttl %v: due before %v", ttl, want)
		}
		got := w.Due(start.Add(want), nil)
		if diff := cmp.Diff([]*Expire{{Context: l.Context, State: forge.LeaseAccepted, Renewals: 7}}, got); diff != "" {
			t.Errorf("hard ttl %v, at %v:\n%s", ttl, want, diff)
		}
	}
}

func TestAnOfferIsDueAfterItsOwnTime(t *testing.T) {
	w := NewWatch(policy)
	l := leaseOf(1, forge.LeaseOffered, 0)
	w.See(start, &l)
	if due(w, start.Add(policy.OfferTTL-1)) != nil || due(w, start.Add(policy.OfferTTL)) == nil {
		t.Errorf("an offer is not due at %v sharp", policy.OfferTTL)
	}
}

func TestADaemonThatStartedKnowsNothing(t *testing.T) {
	old, l := NewWatch(policy), leaseOf(1, forge.LeaseAccepted, 7)
	old.See(start, &l)
	fresh := NewWatch(policy)
	restarted := start.Add(patience)
	if due(old, restarted) == nil || due(fresh, restarted) != nil {
		t.Fatal("a restart does not empty the watch")
	}
	fresh.See(restarted, &l)
	if due(fresh, restarted.Add(patience-1)) != nil || due(fresh, restarted.Add(patience)) == nil {
		t.Error("after a restart the watch does not begin with its first reading")
	}
}

func TestEachChangeStartsTheWatchAnew(t *testing.T) {
	for name, change := range map[string]func(*Lease){
		"a renewal":     func(l *Lease) { l.Renewals++ },
		"an acceptance": func(l *Lease) { l.State = forge.LeaseAccepted },
	} {
		w := NewWatch(policy)
		l := leaseOf(1, forge.LeaseOffered, 0)
		l.HardTTL = policy.OfferTTL - time.Second // an offer and a lease are due after much the same time
		w.See(start, &l)
		changed := start.Add(policy.OfferTTL - 1)
		change(&l)
		w.See(changed, &l)
		if due(w, start.Add(policy.OfferTTL)) != nil || due(w, changed.Add(policy.OfferTTL-1)) != nil {
			t.Errorf("%s: the watch goes on", name)
		}
		if due(w, changed.Add(policy.OfferTTL+time.Second)) == nil {
			t.Errorf("%s: the watch has ended", name)
		}
	}
}

func TestAnUnchangedReadingDoesNotStartTheWatchAnew(t *testing.T) {
	w := NewWatch(policy)
	l := leaseOf(1, forge.LeaseAccepted, 7)
	for s := range 200 {
		now := start.Add(time.Duration(s) * time.Second)
		w.SeeAll(now, []Lease{l})
		if isDue := due(w, now) != nil; isDue != (now.Sub(start) >= patience) {
			t.Fatalf("after %v: due %v", now.Sub(start), isDue)
		}
	}
}

func TestAnOlderReadingThanWhatIsKnownChangesNothing(t *testing.T) {
	w := NewWatch(policy)
	newer, older, offered := leaseOf(1, forge.LeaseAccepted, 8), leaseOf(1, forge.LeaseAccepted, 7), leaseOf(1, forge.LeaseOffered, 8)
	w.See(start, &newer)
	w.See(start.Add(time.Second), &older)
	w.See(start.Add(time.Second), &offered)
	if got := w.Lease(start.Add(time.Second), newer.Context.Lease); got.Renewals != 8 || got.For != time.Second {
		t.Errorf("watched %+v", got)
	}
	if due(w, start.Add(patience-1)) != nil || due(w, start.Add(patience)) == nil {
		t.Error("an older reading moved the watch")
	}
}

func TestAnExpiryIsProposedOnceUntilItsLeaseIsSeenAgain(t *testing.T) {
	w := NewWatch(policy)
	l := leaseOf(1, forge.LeaseAccepted, 7)
	w.See(start, &l)
	now := start.Add(patience)
	if due(w, now) == nil || due(w, now) != nil || due(w, now.Add(time.Hour)) != nil {
		t.Fatal("not proposed once")
	}
	older := leaseOf(1, forge.LeaseAccepted, 6)
	w.See(now, &older)
	if due(w, now) != nil {
		t.Error("proposed again after an older reading")
	}
	w.See(now, &l)
	if due(w, now) == nil {
		t.Error("not proposed again though it still stands")
	}
}

func TestWhatACompleteReadingDoesNotHoldIsForgotten(t *testing.T) {
	w := NewWatch(policy)
	a, b, c := leaseOf(1, forge.LeaseAccepted, 1), leaseOf(2, forge.LeaseAccepted, 2), leaseOf(3, forge.LeaseAccepted, 3)
	w.SeeAll(start, []Lease{a, b, c})
	w.SeeAll(start.Add(time.Second), []Lease{b})
	if got := due(w, start.Add(patience)); !slices.Equal(got, []byte{2}) {
		t.Errorf("due: %v", got)
	}
	for _, gone := range []Lease{a, c} {
		if got := w.Lease(start.Add(patience), gone.Context.Lease); got != (Watched{Lease: gone.Context.Lease}) {
			t.Errorf("still known: %+v", got)
		}
	}
	back := start.Add(patience + time.Second)
	w.SeeAll(back, []Lease{a})
	if due(w, back.Add(patience-1)) != nil || !slices.Equal(due(w, back.Add(patience)), []byte{1}) {
		t.Error("a lease that came back was not watched from then on")
	}
}

func TestAnEndedLeaseIsForgotten(t *testing.T) {
	for s := forge.LeaseReleased; s <= forge.LeaseLost; s++ {
		w := NewWatch(policy)
		l, other := leaseOf(1, forge.LeaseAccepted, 7), leaseOf(2, forge.LeaseAccepted, 7)
		w.SeeAll(start, []Lease{l, other})
		l.State = s
		w.See(start, &l)
		if got := due(w, start.Add(patience)); !slices.Equal(got, []byte{2}) {
			t.Errorf("%v: due %v", s, got)
		}
	}
}

func TestASessionStandsStillUntilAnythingOfItMoves(t *testing.T) {
	w := NewWatch(policy)
	s := Session{Runner: forge.RunnerID{ULID: forge.ULID{1}}, Session: forge.AgentSessionID{ULID: forge.ULID{2}}, TransportSeq: 3}
	beats, now := uint64(10), start
	if got := w.Still(now, s.Runner); got != (Stillness{}) {
		t.Errorf("never seen: %+v", got)
	}
	for _, step := range []struct {
		name string
		move func()
	}{
		{"the first reading", func() {}},
		{"a beat", func() { beats++ }},
		{"a connection", func() { s.TransportSeq++ }},
		{"a process", func() { s.Session.ULID[0]++ }},
	} {
		step.move()
		w.SeeSession(now, &s, beats)
		w.SeeSession(now.Add(time.Second), &s, beats)
		now = now.Add(time.Minute)
		want := Stillness{Session: s.Session, TransportSeq: s.TransportSeq, Beats: beats, For: time.Minute}
		if got := w.Still(now, s.Runner); got != want {
			t.Errorf("after %s: %+v, want %+v", step.name, got, want)
		}
	}
}

func TestASessionCountsAsAliveForAsLongAsItsLongestLeaseMayLiveUnseen(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	if got, want := w.watch.Patience(a.runner), policy.Watch(policy.TTL+policy.Grace); got != want {
		t.Errorf("without a lease %v, want %v", got, want)
	}
	offline := Lease{Context: forge.AttemptContext{Runner: a.runner, Lease: forge.LeaseID{ULID: w.id()}}, State: forge.LeaseAccepted, HardTTL: 12 * time.Hour}
	w.watch.See(w.now, &offline)
	if got, want := w.watch.Patience(a.runner), policy.Watch(12*time.Hour); got != want {
		t.Errorf("with an offline lease %v, want %v", got, want)
	}
}
