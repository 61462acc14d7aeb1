// Package watchdog ends a workload before its lease's deadline.
//
// The same rule runs in three places, so that no single one has to live: in the agent, in the launcher, and in pid 1 of
// the sandbox, each with a Dog of its own on the host's BOOTTIME clock. A renewal moves the deadline; the kill starts
// KillLead before it with a soft signal and is hard SoftGrace later, so that nothing of the attempt is alive at the
// deadline. Once the soft signal is out, no renewal calls it back. A workload that was signalled so is lost, whatever
// its exit code says.
//
//	Armed ──soft at deadline − lead──▶ Softened ──hard after grace──▶ Killed
//	  ▲ │
//	  └─┘ Move: later deadlines only
//
// Pure: the holder feeds it the time and carries out what it says.
package watchdog

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Action is what the holder has to do now.
type Action uint8

// The actions.
const (
	Nothing Action = 0
	Soft    Action = 1 // send the soft signal
	Hard    Action = 2 // kill everything
)

// Dog holds one attempt's deadline. The zero value lets nothing start.
type Dog struct {
	deadline forge.Instant
	lead     time.Duration
	grace    time.Duration
	softened bool
	softAt   forge.Instant
	killed   bool
}

// New returns a dog for a deadline under a policy.
func New(p forge.LeasePolicy, deadline forge.Instant) Dog {
	return Dog{deadline: deadline, lead: p.KillLead, grace: p.SoftGrace}
}

// Deadline is the instant at which nothing may be alive.
func (d *Dog) Deadline() forge.Instant { return d.deadline }

// Move takes a renewed deadline. It never moves backward, and not at all once the kill has begun.
func (d *Dog) Move(deadline forge.Instant) {
	if d.softened || deadline <= d.deadline {
		return
	}
	d.deadline = deadline
}

// MayStart reports whether a workload may still be started. It is asked again just before execve: whatever happened in
// between, a pause of the whole process included, the answer is about now.
func (d *Dog) MayStart(now forge.Instant) bool { return !d.softened && now < d.softDue() }

// Wake returns when Step wants to be called next, or forge.Never.
func (d *Dog) Wake() forge.Instant {
	switch {
	case d.killed:
		return forge.Never
	case d.softened:
		return d.hardDue()
	default:
		return d.softDue()
	}
}

// Step says what to do at now. Each action is said once; a late call may skip Soft.
func (d *Dog) Step(now forge.Instant) Action {
	switch {
	case d.killed:
		return Nothing
	case d.softened && now >= d.hardDue():
		d.killed = true
		return Hard
	case d.softened || now < d.softDue():
		return Nothing
	}
	d.softened, d.softAt = true, now
	if now >= d.hardDue() {
		d.killed = true
		return Hard
	}
	return Soft
}

// Bite begins the kill now, for a holder that is told so by another one.
func (d *Dog) Bite(now forge.Instant) {
	if !d.softened {
		d.softened, d.softAt = true, now
	}
}

// Bitten reports whether the dog has signalled the workload: then it is lost.
func (d *Dog) Bitten() bool { return d.softened }

func (d *Dog) softDue() forge.Instant { return d.deadline.Add(-d.lead) }

// hardDue leaves the grace to a workload that was signalled in time, and nothing to one that was signalled late.
func (d *Dog) hardDue() forge.Instant {
	return min(d.softAt.Add(d.grace), d.deadline.Add(d.grace-d.lead))
}
