package sim

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Report is what many schedules showed together.
type Report struct {
	Schedules int
	Steps     int
	Simulated time.Duration
	Faults    [faultKinds]uint64
	States    [states]uint64
	Violation *Result // of the lowest seed that has one
	Replayed  int     // schedules that were run twice
	Diverged  []uint64
}

// Batch says which schedules to run.
type Batch struct {
	First, Count uint64
	Replay       uint64 // run one schedule in so many twice and compare; zero for none
	Workers      int    // zero: one for each processor
	Progress     func(done uint64)
}

// RunMany runs the schedules First … First+Count-1, and stops early at a violation.
func RunMany(b Batch) Report {
	var (
		next, done atomic.Uint64
		stop       atomic.Bool
		mu         sync.Mutex
		total      Report
		join       sync.WaitGroup
	)
	workers := b.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range workers {
		join.Go(func() {
			var part Report
			for !stop.Load() {
				i := next.Add(1) - 1
				if i >= b.Count {
					break
				}
				r := b.one(b.First+i, &part)
				if r.Violation != nil {
					stop.Store(true)
				}
				if n := done.Add(1); b.Progress != nil {
					b.Progress(n)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(&part)
		})
	}
	join.Wait()
	return total
}

// one runs a schedule, and perhaps runs it again.
func (b *Batch) one(seed uint64, into *Report) Result {
	opts := Options{Seed: seed}
	r := Run(opts)
	into.count(&r)
	if b.Replay != 0 && seed%b.Replay == 0 {
		into.Replayed++
		if again := Run(opts); again.Digest != r.Digest || again.Steps != r.Steps {
			into.Diverged = append(into.Diverged, seed)
		}
	}
	return r
}

func (r *Report) count(one *Result) {
	r.Schedules++
	r.Steps += one.Steps
	r.Simulated += one.Simulated
	for i, n := range one.Faults {
		r.Faults[i] += uint64(n)
	}
	for i, n := range one.States {
		r.States[i] += uint64(n)
	}
	if one.Violation != nil && (r.Violation == nil || one.Seed < r.Violation.Seed) {
		r.Violation = one
	}
}

func (r *Report) add(other *Report) {
	r.Schedules += other.Schedules
	r.Steps += other.Steps
	r.Simulated += other.Simulated
	r.Replayed += other.Replayed
	r.Diverged = append(r.Diverged, other.Diverged...)
	for i, n := range other.Faults {
		r.Faults[i] += n
	}
	for i, n := range other.States {
		r.States[i] += n
	}
	if v := other.Violation; v != nil && (r.Violation == nil || v.Seed < r.Violation.Seed) {
		r.Violation = v
	}
}
