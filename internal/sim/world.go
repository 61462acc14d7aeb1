package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Options say what to run.
type Options struct {
	Seed  uint64
	Trace bool // keep the text of every step
	Bytes bool // pass every frame through its wire form, whatever the seed says
}

// Result is what one schedule showed.
type Result struct {
	Seed      uint64
	Violation *Violation
	Digest    uint64 // of the whole trace
	Steps     int
	Simulated time.Duration
	Faults    [faultKinds]uint32
	States    [states]uint32
	Trace     []string // with Options.Trace
}

// Violation says which invariant broke, and how.
type Violation struct {
	ID   string
	Text string
	At   time.Duration
}

func (v *Violation) Error() string { return fmt.Sprintf("%s at %v: %s", v.ID, v.At, v.Text) }

// World is one schedule at work.
type World struct {
	opts  Options
	rng   *rand.Rand
	shape shape
	now   int64 // true time, in nanoseconds
	seq   uint64
	queue queue

	store      *store
	daemons    []*daemon
	runners    []*simRunner
	jobs       []*simJob
	conns      []*conn
	faulty     bool // faults may still happen
	explore    *explorer
	loseAnswer bool // of the next commit
	forging    bool // the next accepted completion comes again, changed
	uncertain  bool // commits lose their answers
	boxes      map[forge.AttemptID]*sandbox
	living     []*sandbox // whose workload is alive

	armed     []armedFault
	renewedAt map[forge.LeaseID]int64           // true time of the latest renewal that was committed
	renewedBy map[forge.LeaseID]int             // number of the daemon that did it
	resyncing map[forge.LeaseID]bool            // acceptances that went out inside a resync
	hashes    map[forge.MessageID]digest.Digest // of every completion that was sent
	forged    map[digest.Digest]bool            // results that a forger made up
	missed    map[forge.AttemptID]int           // how often its agent was told that an output is missing, and brought none

	ids     uint64
	result  Result
	history map[forge.LeaseID][]*operation
}

// Run runs the schedule of a seed to its end.
func Run(opts Options) Result {
	w := newWorld(opts)
	w.start()
	w.loop()
	if w.result.Violation == nil {
		w.checkEnd()
	}
	w.result.Simulated = time.Duration(w.now)
	return w.result
}

func newWorld(opts Options) *World {
	rng := rand.New(rand.NewPCG(opts.Seed, 0x666f726765))
	return emptyWorld(opts, rng, drawShape(rng))
}

func emptyWorld(opts Options, rng *rand.Rand, s shape) *World {
	w := &World{
		opts: opts, rng: rng, shape: s, faulty: true,
		boxes: map[forge.AttemptID]*sandbox{}, resyncing: map[forge.LeaseID]bool{},
		renewedAt: map[forge.LeaseID]int64{}, renewedBy: map[forge.LeaseID]int{}, history: map[forge.LeaseID][]*operation{},
		hashes: map[forge.MessageID]digest.Digest{}, forged: map[digest.Digest]bool{},
		missed: map[forge.AttemptID]int{},
	}
	w.result.Seed = opts.Seed
	w.opts.Bytes = opts.Bytes || opts.Seed%bytesEvery == 0
	w.store = newStore(w)
	return w
}

// loop takes events in the order of their time until nothing is left to do, or something broke.
func (w *World) loop() {
	for w.result.Violation == nil {
		e, ok := w.next()
		if w.explore != nil && w.explore.pruned {
			return
		}
		if !ok {
			w.violate("I07", "nothing is left to happen, but not everything has ended")
			return
		}
		w.now = max(w.now, e.at)
		w.result.Steps++
		w.mix(uint64(e.at), e.seq)
		e.do()
		w.check()
		if !w.faulty && w.quiet() {
			return
		}
		if w.now > int64(w.shape.horizon+fairRun) {
			w.violate("I07", "not everything has ended after a fair run: %s", w.leftover())
			return
		}
		if w.result.Steps > maxSteps {
			w.violate("I07", "the world does not come to rest: %s", w.leftover())
			return
		}
	}
}

// bytesEvery: one schedule in so many speaks in real bytes.
const bytesEvery = 16

// Bounds of one schedule.
const (
	fairRun  = 90 * time.Minute // virtual time without faults in which everything must end
	maxSteps = 400_000
)

// next takes the event that comes next.
func (w *World) next() (event, bool) {
	if w.explore != nil {
		return w.explore.next(w)
	}
	return w.queue.pop()
}

// longWait: what takes longer is a matter of clocks, not of what is on its way.
const longWait = 20 * time.Millisecond

// after plans something for a later moment.
func (w *World) after(d time.Duration, do func()) {
	w.plan(event{at: w.now + int64(d), timer: d > longWait, do: do})
}

// at plans something that is on its way and arrives about then.
func (w *World) at(when int64, do func()) { w.plan(event{at: when, do: do}) }

// inOrder plans something that arrives behind everything before it on a channel.
func (w *World) inOrder(channel int, when int64, do func()) {
	w.plan(event{at: when, channel: channel, do: do})
}

// timer plans what a clock does.
func (w *World) timer(when int64, do func()) { w.plan(event{at: when, timer: true, do: do}) }

func (w *World) plan(e event) {
	w.seq++
	e.at, e.seq, e.label = max(e.at, w.now), w.seq, w.explore.child()
	w.queue.push(e)
}

// violate records the first violation. The schedule ends with it.
func (w *World) violate(id, format string, args ...any) {
	if w.result.Violation == nil {
		w.result.Violation = &Violation{ID: id, Text: fmt.Sprintf(format, args...), At: time.Duration(w.now)}
		w.logf("VIOLATION %s: %s", id, w.result.Violation.Text)
	}
}

// logf adds a line to the trace.
func (w *World) logf(format string, args ...any) {
	if w.opts.Trace {
		w.result.Trace = append(w.result.Trace, fmt.Sprintf("%12.6f  ", float64(w.now)/1e9)+fmt.Sprintf(format, args...))
	}
}

// mix folds numbers into the digest of the trace.
func (w *World) mix(values ...uint64) {
	h := w.result.Digest
	for _, v := range values {
		h = (h ^ v) * 0x100000001b3
		h ^= h >> 29
	}
	w.result.Digest = h
}

// reach counts an interesting state.
func (w *World) reach(s State) { w.result.States[s]++ }

// between draws a duration.
func (w *World) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(w.rng.Int64N(int64(high-low)))
}

// chance is true in one of n cases.
func (w *World) chance(n int) bool { return w.explore == nil && w.rng.IntN(n) == 0 }

// ulid returns a new id. Ids count upward, so that a trace reads well.
func (w *World) ulid() forge.ULID {
	w.ids++
	var u forge.ULID
	for i := range 8 {
		u[15-i] = byte(w.ids >> (8 * i))
	}
	u[0] = 1
	return u
}

// short names an id in the trace.
func short(u forge.ULID) string {
	return fmt.Sprint(uint64(u[12])<<24 | uint64(u[13])<<16 | uint64(u[14])<<8 | uint64(u[15]))
}

// clock is a local clock: true time seen through a rate and an offset. It never steps.
type clock struct {
	rate   float64
	offset int64
}

func (c clock) read(now int64) forge.Instant {
	return forge.Instant(c.offset + int64(c.rate*float64(now)))
}

// when returns the first moment of true time at which the clock reads at least i.
func (c clock) when(i forge.Instant) int64 {
	t := int64(float64(int64(i)-c.offset) / c.rate)
	for c.read(t) < i {
		t++
	}
	return t
}

// event is something that will happen.
type event struct {
	at      int64
	seq     uint64
	channel int    // events of one channel come in order; zero is none
	timer   bool   // happens when its time has come, not when it arrives
	label   uint64 // in an exploration: what caused it
	do      func()
}

// queue is a binary heap of events by time, then by order of planning.
type queue []event

func (q queue) before(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}

func (q *queue) push(e event) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *queue) pop() (event, bool) {
	h := *q
	if len(h) == 0 {
		return event{}, false
	}
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h.before(child+1, child) {
			child++
		}
		if !h.before(child, i) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*q = h
	return top, true
}

// leftover names what has not ended, for a failure.
func (w *World) leftover() string {
	var text strings.Builder
	for _, j := range w.jobs {
		if row := w.store.job(j.id); !row.State.Ended() {
			fmt.Fprintf(&text, " job %s %v", short(j.id.ULID), row.State)
		}
	}
	for _, l := range w.store.open {
		fmt.Fprintf(&text, " lease %s %v", short(l.value.Context.Lease.ULID), l.value.State)
	}
	for _, r := range w.runners {
		for _, b := range r.hosts[0].boxes {
			fmt.Fprintf(&text, " workspace %s", short(b.ctx.Attempt.ULID))
		}
		for _, j := range r.hosts[0].folder.journal {
			fmt.Fprintf(&text, " record %s", short(j.Context.Attempt.ULID))
		}
		for _, p := range r.processes() {
			if n := len(p.core.Held()); n > 0 || p.state() != forge.AgentOnline {
				fmt.Fprintf(&text, " agent %s %v holding %d", p.name, p.state(), n)
			}
		}
	}
	fmt.Fprintf(&text, " workloads %d", len(w.living))
	return text.String()
}
