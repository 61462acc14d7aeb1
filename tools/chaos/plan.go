//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is something that is done to a fleet at work.
type kind string

// The faults. Each begins at its moment and is over after its time, if it has one.
const (
	killAgent   kind = "kill agent"  // kill -9; started again after its time
	killDaemon  kind = "kill daemon" // likewise
	killBoth    kind = "kill both"   // the daemon and one agent at the same moment
	stopAgent   kind = "stop agent"  // SIGSTOP, then SIGCONT
	stopDaemon  kind = "stop daemon" // likewise: a store that stalls, a daemon that answers late
	cutLink     kind = "cut link"    // nothing passes
	cutToDaemon kind = "cut to daemon"
	cutToAgent  kind = "cut to agent"
	badLink     kind = "bad link" // loss, duplication and another order
	cancelJob   kind = "cancel job"
	drainAgent  kind = "drain agent" // then resume
	cloneAgent  kind = "clone agent" // a copy of its state folder is started beside it, and ended
	killKeeper  kind = "kill keeper" // whatever keeps watch over one workload is killed
)

// fault is one entry of a plan.
type fault struct {
	kind  kind
	at    time.Duration // since the jobs were submitted
	lasts time.Duration
	agent int
	job   int
}

func (f fault) String() string {
	s := fmt.Sprintf("%6.2fs %s", f.at.Seconds(), f.kind)
	switch f.kind {
	case killDaemon, stopDaemon:
	case cancelJob:
		return s + fmt.Sprintf(" %d", f.job)
	case killKeeper:
		return s + fmt.Sprintf(" of agent %d", f.agent)
	default:
		s += fmt.Sprintf(" %d", f.agent)
	}
	return s + fmt.Sprintf(" for %.2fs", f.lasts.Seconds())
}

// task is a job of a plan.
type task struct {
	lines int
	lasts time.Duration
	exit  int
	deaf  bool
}

// plan is one run: what is to be done, and what goes wrong meanwhile. It follows from the seed alone.
type plan struct {
	agents int
	slots  int
	tasks  []task
	faults []fault
}

// Bounds of a plan. leaseTTL is that of the fleet: some pauses end within it and some do not.
const (
	fewestTasks = 4
	mostTasks   = 8
	fewFaults   = 3
	manyFaults  = 8
	faultsFor   = 14 * time.Second
	leaseTTL    = 6 * time.Second
)

// weights says how often each kind is drawn.
var weights = []struct {
	kind kind
	of   int
}{
	{killAgent, 4},
	{killDaemon, 4},
	{killBoth, 1},
	{stopAgent, 3},
	{stopDaemon, 2},
	{cutLink, 4},
	{cutToDaemon, 2},
	{cutToAgent, 2},
	{badLink, 3},
	{cancelJob, 2},
	{drainAgent, 2},
	{cloneAgent, 1},
	{killKeeper, 1},
}

// newPlan draws a plan.
func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0x666f726765796172))
	p := plan{agents: 2, slots: 2}
	for range fewestTasks + r.IntN(mostTasks-fewestTasks+1) {
		t := task{lines: 20 + r.IntN(400), lasts: between(r, 200*time.Millisecond, 9*time.Second), deaf: r.IntN(8) == 0}
		if r.IntN(5) == 0 {
			t.exit = 1 + r.IntN(125)
		}
		p.tasks = append(p.tasks, t)
	}
	for range fewFaults + r.IntN(manyFaults-fewFaults+1) {
		p.faults = append(p.faults, p.draw(r))
	}
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return p
}

// draw draws one fault.
func (p plan) draw(r *rand.Rand) fault {
	f := fault{at: between(r, 0, faultsFor), agent: r.IntN(p.agents), job: r.IntN(len(p.tasks))}
	total := 0
	for _, w := range weights {
		total += w.of
	}
	n := r.IntN(total)
	for _, w := range weights {
		if n -= w.of; n < 0 {
			f.kind = w.kind
			break
		}
	}
	f.lasts = between(r, 50*time.Millisecond, leaseTTL/2) // comes back while its leases live
	if r.IntN(3) == 0 {
		f.lasts = between(r, leaseTTL, 2*leaseTTL) // does not
	}
	return f
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}
