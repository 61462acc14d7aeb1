package relay

import (
	"container/heap"
	"context"
	"fmt"
	"net"
	"time"
)

// A fate is what happens to one datagram.
type fate struct {
	lost, twice, late bool
	jitter            float64 // share of the jitter that it gets
}

// fateOf decides over the datagram number n of a client in a direction.
func fateOf(seed, client uint64, d Direction, n uint64, s Settings) fate {
	state := mix(mix(mix(seed+1)^client)^uint64(d)) ^ n
	draw := func() float64 {
		state = mix(state)
		return float64(state>>11) / (1 << 53)
	}
	return fate{lost: draw() < s.Loss, twice: draw() < s.Duplicate, late: draw() < s.Reorder, jitter: draw()}
}

// mix spreads the bits of x over all of the result (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Counts is what became of the datagrams of one direction.
type Counts struct {
	Received, Sent                  uint64
	Lost, Cut, TooLong, Overflow    uint64 // those that were dropped, by reason
	Duplicated, Reordered, Rejected uint64 // Rejected: the system did not take them
	Bytes                           uint64 // in those that were sent
}

// Stats is what a relay did so far.
type Stats struct {
	Clients uint64 // that it ever saw
	Up      Counts
	Down    Counts
}

// String writes the figures on one line.
func (s Stats) String() string {
	return fmt.Sprintf("clients=%d up={%v} down={%v}", s.Clients, s.Up, s.Down)
}

// String writes the figures on one line.
func (c Counts) String() string {
	return fmt.Sprintf("received=%d sent=%d lost=%d cut=%d too_long=%d overflow=%d duplicated=%d reordered=%d rejected=%d bytes=%d",
		c.Received, c.Sent, c.Lost, c.Cut, c.TooLong, c.Overflow, c.Duplicated, c.Reordered, c.Rejected, c.Bytes)
}

// Stats returns the figures so far.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Clients = r.made
	return s
}

// Settings returns the settings in force.
func (r *Relay) Settings() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

// Set changes the settings, for datagrams that come from now on.
func (r *Relay) Set(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = s
	return nil
}

// Cut drops everything in the given directions from now on, also what is under way.
func (r *Relay) Cut(ways ...Direction) { r.setCut(true, ways) }

// Heal ends a cut.
func (r *Relay) Heal(ways ...Direction) { r.setCut(false, ways) }

func (r *Relay) setCut(cut bool, ways []Direction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range ways {
		r.cut[d] = cut
	}
	r.changedLocked()
}

// changedLocked tells who waits for it that something is another than before.
func (r *Relay) changedLocked() {
	select {
	case r.cfg.changed <- struct{}{}:
	default: // told already, or nobody waits
	}
}

// A parcel is a datagram with the time at which it goes on.
type parcel struct {
	due   time.Time
	order uint64 // of its coming, for those that are due together
	c     *client
	way   Direction
	data  []byte
}

// queue is a heap of parcels, the first one due on top.
type queue struct {
	parcels []parcel
	count   uint64
}

func (q *queue) Len() int      { return len(q.parcels) }
func (q *queue) Swap(i, j int) { q.parcels[i], q.parcels[j] = q.parcels[j], q.parcels[i] }
func (q *queue) Push(x any)    { q.parcels = append(q.parcels, x.(parcel)) }
func (q *queue) Less(i, j int) bool {
	a, b := q.parcels[i], q.parcels[j]
	return a.due.Before(b.due) || a.due.Equal(b.due) && a.order < b.order
}

func (q *queue) Pop() any {
	last := q.parcels[len(q.parcels)-1]
	q.parcels[len(q.parcels)-1] = parcel{}
	q.parcels = q.parcels[:len(q.parcels)-1]
	return last
}

// pass takes a datagram, decides over it, and puts it into the queue if it lives. data is the caller's again afterwards.
func (r *Relay) pass(c *client, d Direction, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changedLocked()
	n, counts := c.count[d], r.countsLocked(d)
	c.count[d]++
	counts.Received++
	s := r.settings
	f := fateOf(r.cfg.Seed, c.number, d, n, s)
	switch {
	case r.cut[d]:
		counts.Cut++
		return
	case s.MTU > 0 && len(data) > s.MTU:
		counts.TooLong++
		return
	case f.lost:
		counts.Lost++
		return
	}
	now := time.Now()
	due := r.departureLocked(d, now, len(data)).Add(s.Delay + time.Duration(f.jitter*float64(s.Jitter)))
	if f.late {
		counts.Reordered++
		due = due.Add(overtaken + s.Jitter)
	}
	r.enqueueLocked(parcel{due: due, c: c, way: d, data: append([]byte(nil), data...)})
	if f.twice {
		counts.Duplicated++
		r.enqueueLocked(parcel{due: due, c: c, way: d, data: append([]byte(nil), data...)})
	}
}

// departureLocked is when the rate lets a datagram go.
func (r *Relay) departureLocked(d Direction, now time.Time, size int) time.Time {
	if r.settings.Rate == 0 {
		return now
	}
	start := now
	if r.free[d].After(now) {
		start = r.free[d]
	}
	r.free[d] = start.Add(time.Duration(float64(size) / float64(r.settings.Rate) * float64(time.Second)))
	return r.free[d]
}

func (r *Relay) enqueueLocked(p parcel) {
	if r.queue.Len() == MaxQueued {
		r.countsLocked(p.way).Overflow++
		return
	}
	p.order = r.queue.count
	r.queue.count++
	heap.Push(&r.queue, p)
	if r.queue.parcels[0].order == p.order {
		select {
		case r.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

func (r *Relay) countsLocked(d Direction) *Counts {
	if d == Up {
		return &r.stats.Up
	}
	return &r.stats.Down
}

// sendQueued sends parcels when they are due, until ctx ends. What is in the queue then is lost.
func (r *Relay) sendQueued(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, wait, ok := r.next(time.Now())
		if ok {
			r.send(p)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// next takes the first parcel if it is due, or says how long it takes until then.
func (r *Relay) next(now time.Time) (p parcel, wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue.Len() == 0 {
		return p, time.Hour, false
	}
	if wait = r.queue.parcels[0].due.Sub(now); wait > 0 {
		return p, wait, false
	}
	p = heap.Pop(&r.queue).(parcel)
	if r.cut[p.way] {
		r.countsLocked(p.way).Cut++
		r.changedLocked()
		return p, 0, false
	}
	return p, 0, true
}

func (r *Relay) send(p parcel) {
	r.mu.Lock()
	back := p.c.back
	r.mu.Unlock()
	err := write(r.front, back, p)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changedLocked()
	if counts := r.countsLocked(p.way); err != nil {
		counts.Rejected++ // the other end is not there, or the system has no room: a network says nothing either
	} else {
		counts.Sent++
		counts.Bytes += uint64(len(p.data))
	}
}

func write(front, back *net.UDPConn, p parcel) error {
	if p.way == Up {
		_, err := back.Write(p.data)
		return err
	}
	_, err := front.WriteToUDPAddrPort(p.data, p.c.addr)
	return err
}

// schedule carries out the cuts that were planned.
func (r *Relay) schedule(ctx context.Context) {
	start := time.Now()
	for _, cut := range r.cfg.Cuts {
		if !sleepUntil(ctx, start.Add(cut.After)) {
			return
		}
		r.Cut(cut.Ways...)
		if !sleepUntil(ctx, start.Add(cut.After+cut.For)) {
			return
		}
		r.Heal(cut.Ways...)
	}
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
