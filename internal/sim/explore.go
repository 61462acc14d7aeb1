package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Exploration runs the smallest worlds in every order that a bound allows. What is on its way (a frame, a statement, a
// disk operation) may arrive now or after anything else that can happen; what a clock does happens when its time has come.
// A run follows the natural order except for a number of deviations: another event first, or a fault. All runs with up to
// so many deviations are tried.
//
// Two orders of events that do not touch each other lead to the same state. States are told by what each part of the
// world has been through, so such orders are tried once.

// Explorable is a shape of a small world.
type Explorable struct {
	Name                   string
	Runners, Daemons, Jobs int
	Runs                   time.Duration // of each workload
}

// Explorables are the smallest shapes in which authority is contested.
var Explorables = []Explorable{
	{"one of each", 1, 1, 1, 100 * time.Millisecond},
	{"two daemons", 1, 2, 1, 100 * time.Millisecond},
	{"two runners", 2, 1, 1, 100 * time.Millisecond},
	{"two jobs", 1, 1, 2, 100 * time.Millisecond},
	{"a long job", 1, 1, 1, 4 * time.Second},
}

// Exploration is what was tried.
type Exploration struct {
	Runs      int
	States    int
	Longest   int  // steps of a run
	Exhausted bool // everything within the bound was tried
	Violation *Violation
	Script    []Deviation // of the violating run
}

// Deviation says that at some step something other than the natural event came next.
type Deviation struct {
	Step   int
	Choice int
}

// explorer decides what comes next in one run.
type explorer struct {
	script  []Deviation
	visited map[uint64]int // state → deviations that were still allowed there
	left    int            // deviations still allowed behind the script
	step    int
	found   []Deviation // alternatives behind the script
	pruned  bool
	natural bool // only the natural order, nothing is collected: for a replay

	label    uint64 // of the running event
	children uint64
	touched  uint64
	parts    map[int]uint64 // what each part has been through
}

// Parts of the world. Hosts and daemons have numbers above these.
const (
	partElsewhere = 0
	partStore     = 1
	partDaemon    = 100
	partHost      = 200
)

// Explore tries every run of a shape with at most bound deviations, and at most most runs.
func Explore(shape Explorable, bound, most int) Exploration {
	var out Exploration
	visited := map[uint64]int{}
	stack := [][]Deviation{nil}
	for len(stack) > 0 && out.Runs < most {
		script := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		x := &explorer{script: script, visited: visited, left: bound - len(script), parts: map[int]uint64{}}
		w := exploredWorld(shape, x, false)
		w.loop()
		out.Runs++
		out.Longest = max(out.Longest, w.result.Steps)
		if w.result.Violation == nil && !x.pruned {
			w.checkEnd()
		}
		if w.result.Violation != nil {
			out.Violation, out.Script = w.result.Violation, script
			break
		}
		for _, d := range x.found {
			stack = append(stack, append(slices.Clone(script), d))
		}
	}
	out.States = len(visited)
	out.Exhausted = len(stack) == 0 && out.Violation == nil
	return out
}

// Retrace runs one script again and returns its trace.
func Retrace(shape Explorable, script []Deviation) []string {
	x := &explorer{script: script, natural: true, parts: map[int]uint64{}}
	w := exploredWorld(shape, x, true)
	w.loop()
	return w.result.Trace
}

// exploredWorld is a world without chance: every draw gives the least.
func exploredWorld(e Explorable, x *explorer, trace bool) *World {
	w := emptyWorld(Options{Trace: trace}, rand.New(least{}), shape{
		policy: policies[1], interleave: true, runners: e.Runners, daemons: e.Daemons, jobs: e.Jobs, slots: 1,
	})
	w.explore = x
	w.faulty = false
	w.start()
	for _, j := range w.jobs {
		j.runs, j.frames, j.outputs = e.Runs, 2, 1
	}
	return w
}

// least is a source whose every draw is about the least. It is not zero, which a fair draw would refuse for ever.
type least struct{}

func (least) Uint64() uint64 { return 1<<32 | 1 }

// next picks what comes next.
func (x *explorer) next(w *World) (event, bool) {
	ready := x.ready(&w.queue)
	if len(ready) == 0 {
		return event{}, false
	}
	x.settle()
	choice := 0
	if len(x.script) > 0 && x.script[0].Step == x.step {
		choice, x.script = x.script[0].Choice, x.script[1:]
	} else if len(x.script) == 0 && !x.natural {
		if x.seen(w) {
			return event{}, false
		}
		for c := 1; x.left > 0 && c < len(ready)+len(explorableFaults); c++ {
			x.found = append(x.found, Deviation{x.step, c})
		}
	}
	x.step++
	if choice < len(ready) {
		e := ready[choice]
		w.queue.remove(e.seq)
		x.label, x.children, x.touched = e.label, 0, 0
		return e, true
	}
	fault := explorableFaults[choice-len(ready)]
	label := mixed(0xfa017, uint64(choice-len(ready)))
	x.label, x.children, x.touched = label, 0, 0
	return event{at: w.now, label: label, do: func() {
		w.logf("FAULT %s", fault.name)
		for part := range fault.parts(w) {
			x.touch(part)
		}
		fault.do(w)
	}}, true
}

// ready lists the events that can come next, the natural one first: everything that is on its way, in the order of each
// channel, and the timer that is due first.
func (x *explorer) ready(q *queue) []event {
	var ready []event
	for _, e := range *q {
		if x.first(q, e) {
			ready = append(ready, e)
		}
	}
	slices.SortFunc(ready, func(a, b event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.seq) - int(b.seq)
	})
	return ready
}

// first reports whether nothing has to come before e.
func (x *explorer) first(q *queue, e event) bool {
	for _, other := range *q {
		switch {
		case other.seq == e.seq || other.timer != e.timer:
		case e.timer && (other.at < e.at || other.at == e.at && other.seq < e.seq):
			return false
		case !e.timer && e.channel != 0 && other.channel == e.channel && other.seq < e.seq:
			return false
		}
	}
	return true
}

// seen reports whether the state was reached before with at least as many deviations left, and notes it.
func (x *explorer) seen(w *World) bool {
	state := uint64(w.now)
	for part, h := range x.parts {
		state ^= mixed(uint64(part), h)
	}
	if left, ok := x.visited[state]; ok && left >= x.left {
		x.pruned = true
		return true
	}
	x.visited[state] = x.left
	return false
}

// touch notes that the running event meets a part of the world.
func (x *explorer) touch(part int) {
	if x == nil {
		return
	}
	h := mixed(x.parts[part], x.label)
	x.parts[part] = h
	x.touched ^= h
}

// settle closes the books on the event that ran last. One that met no part of the world is noted all the same.
func (x *explorer) settle() {
	if x.label != 0 && x.touched == 0 {
		x.touch(partElsewhere)
	}
}

// child names an event by what caused it.
func (x *explorer) child() uint64 {
	if x == nil {
		return 0
	}
	x.children++
	return mixed(x.label^x.touched, x.children)
}

func mixed(a, b uint64) uint64 {
	h := (a ^ b*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return h ^ h>>31
}

// explorableFault is a fault that may strike at any step.
type explorableFault struct {
	name string
	do   func(*World)
}

// parts are what the fault meets: everything, to be safe.
func (explorableFault) parts(w *World) map[int]bool {
	all := map[int]bool{partStore: true}
	for _, d := range w.daemons {
		all[partDaemon+d.number] = true
	}
	for i := range w.runners {
		all[partHost+i] = true
	}
	return all
}

var explorableFaults = []explorableFault{
	{"the agent and its launcher are killed", func(w *World) {
		h := w.runners[0].hosts[0]
		if h.process != nil && h.process.alive {
			h.process.kill(true)
			w.after(time.Second, h.startAgent)
		}
	}},
	{"a daemon is killed", func(w *World) {
		if d := w.daemons[0]; d.alive {
			d.die()
			w.after(time.Second, d.begin)
		}
	}},
	{"the connection is cut", func(w *World) { w.disturb(FaultDrop, w.runners[0]) }},
	{"what the daemon says is lost", func(w *World) { w.disturb(FaultHalfOpenDown, w.runners[0]) }},
	{"the agent opens another connection", func(w *World) { w.injectAtAgent(FaultTwoConnections, w.runners[0]) }},
	{"the agent stops for a while", func(w *World) {
		if p := w.runners[0].hosts[0].process; p != nil {
			p.pause(7 * time.Second)
		}
	}},
	{"a user cancels", func(w *World) { w.cancelJob(w.jobs[0]) }},
	{"the agent gives its leases back", func(w *World) { w.injectAtAgent(FaultAgentReject, w.runners[0]) }},
	{"the next answer of the store is lost", func(w *World) { w.loseAnswer = true }},
}

// remove takes the event with a number out of the queue.
func (q *queue) remove(seq uint64) {
	h := *q
	at := slices.IndexFunc(h, func(e event) bool { return e.seq == seq })
	rest := slices.Delete(slices.Clone(h), at, at+1)
	*q = (*q)[:0]
	for _, e := range rest {
		q.push(e)
	}
}
