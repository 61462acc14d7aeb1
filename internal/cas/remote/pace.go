package remote

import (
	"context"
	"sync"
	"time"
)

// Bounds of what is on its way.
const (
	leastWindow = 64 << 10
	firstWindow = 256 << 10
	mostWindow  = 4 << 20
	leastRun    = 16 << 10
	mostRun     = 256 << 10
	// slack is how long bytes may wait in the network besides: on a short road, what the machines themselves need.
	slack = 10 * time.Millisecond
	// fastRoad is the rate in bytes a second from which compression by zstd takes longer than the road: one processor gives that
	// many out.
	fastRoad = 48 << 20
	// memorySpan is for how long a measurement counts. The shortest round trip is measured anew as often, with
	// nothing else on its way: with a full road every trip is long.
	memorySpan = 5 * time.Second
	// leastProbe is how long that may take at least.
	leastProbe = 100 * time.Millisecond
)

// pacer keeps what one end has written on a connection and the other has not acknowledged near twice what the road holds
// (bandwidth × shortest round trip), so that a control message does not wait behind bytes that only wait themselves. It is
// shared by all streams of a direction. A nil pacer lets everything pass.
type pacer struct {
	now func() time.Time

	mu       sync.Mutex
	flying   int           // bytes written and not acknowledged
	landed   uint64        // bytes acknowledged
	landedAt time.Time     // when the last were
	rate     best[float64] // bytes a second, the highest
	trip     best[float64] // seconds, the shortest
	probing  bool          // the shortest trip is being measured anew, by one run with nothing before it
	probeAt  time.Time     // when to do so next
	probeEnd time.Time     // when to give that up: a receiver may be held up
	moved    chan struct{} // closed when something was acknowledged
}

// flight is one run on its way.
type flight struct {
	bytes    int
	at       time.Time
	landed   uint64 // when it left
	landedAt time.Time
	alone    bool // nothing else was on its way
}

func newPacer() *pacer {
	return &pacer{
		now: time.Now, moved: make(chan struct{}),
		rate: best[float64]{better: func(a, b float64) bool { return a > b }},
		trip: best[float64]{better: func(a, b float64) bool { return a < b }},
	}
}

// run is how long a run should be now: a part of the window, and on a narrow road not more than takes a moment.
func (p *pacer) run() int {
	if p == nil {
		return mostRun
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.windowLocked() / 4
	if p.rate.known {
		n = min(n, int(p.rate.value()*slack.Seconds()))
	}
	return min(max(n, leastRun), mostRun)
}

// fast reports whether the road takes bytes faster than zstd gives them out.
func (p *pacer) fast() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rate.known && p.rate.value() >= fastRoad
}

func (p *pacer) windowLocked() int {
	if !p.rate.known || !p.trip.known {
		return firstWindow
	}
	trip := p.trip.value()
	return int(min(max(p.rate.value()*max(2*trip, trip+slack.Seconds()), leastWindow), mostWindow))
}

// admit waits until n bytes may be written. What is admitted is landed or dropped later. A stream that has nothing on its way
// is let through at once: others may be held up by their receivers, and must not hold it up too.
func (p *pacer) admit(ctx context.Context, n int, idle func() bool) (*flight, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // no pacer, no flight
	}
	for {
		p.mu.Lock()
		moved := p.moved // before idle is asked: what lands after that closes it
		p.mu.Unlock()
		first := idle()
		p.mu.Lock()
		p.probeLocked()
		ok := first || p.flying+n <= p.windowLocked()
		if p.probing {
			ok = p.flying == 0
		}
		if ok {
			f := p.leaveLocked(n)
			p.mu.Unlock()
			return f, nil
		}
		var probed <-chan time.Time
		if p.probing {
			probed = time.After(p.probeEnd.Sub(p.now()))
		}
		p.mu.Unlock()
		select {
		case <-moved:
		case <-probed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// probeLocked begins to measure the shortest trip anew when it is time, and gives up when that takes too long.
func (p *pacer) probeLocked() {
	switch now := p.now(); {
	case p.probing && !now.Before(p.probeEnd):
		p.probing = false
	case !p.probing && p.trip.known && now.After(p.probeAt):
		p.probing, p.probeAt = true, now.Add(memorySpan)
		p.probeEnd = now.Add(leastProbe + seconds(4*p.trip.value()))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (p *pacer) leaveLocked(n int) *flight {
	now := p.now()
	if p.flying == 0 {
		p.landedAt = now // the road was idle: that time counts for nothing
	}
	f := &flight{bytes: n, at: now, landed: p.landed, landedAt: p.landedAt, alone: p.flying == 0}
	p.flying += n
	return f
}

// land notes that a run was acknowledged.
func (p *pacer) land(f *flight) {
	if p == nil || f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.landed += uint64(f.bytes)
	p.landedAt = now
	trip := now.Sub(f.at).Seconds()
	if p.probeAt.IsZero() {
		p.probeAt = now.Add(memorySpan)
	}
	if p.probing && f.alone {
		p.probing = false
		p.trip.only(now, trip)
	} else {
		p.trip.add(now, trip)
	}
	if took := now.Sub(f.landedAt).Seconds(); took > 0 {
		p.rate.add(now, float64(p.landed-f.landed)/took)
	}
	p.lessLocked(f.bytes)
}

// drop forgets a run whose stream has ended.
func (p *pacer) drop(f *flight) {
	if p == nil || f == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lessLocked(f.bytes)
}

func (p *pacer) lessLocked(n int) {
	p.flying -= n
	close(p.moved)
	p.moved = make(chan struct{})
}

// best is the best of what was measured within the last span or two.
type best[T any] struct {
	better   func(a, b T) bool
	known    bool
	old, new T
	since    time.Time // of new
}

func (b *best[T]) add(now time.Time, v T) {
	switch {
	case !b.known:
		b.only(now, v)
	case now.Sub(b.since) > memorySpan:
		b.old, b.new, b.since = b.new, v, now
	case b.better(v, b.new):
		b.new = v
	}
}

// only forgets everything before.
func (b *best[T]) only(now time.Time, v T) { b.known, b.old, b.new, b.since = true, v, v, now }

func (b *best[T]) value() T {
	if b.better(b.old, b.new) {
		return b.old
	}
	return b.new
}
