package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Bounds of a round of the loop.
const (
	// Every is how often the loop looks at everything although nothing told it to.
	Every = time.Second
	// maxReady is how many waiting jobs are looked at in a round; younger ones wait for a later one.
	maxReady = 2048
	// maxUnsettled is how many runs are settled in a round.
	maxUnsettled = 256
	// maxRunners bounds the fleet that is looked at.
	maxRunners = 10_000
	// maxNeeds bounds the specifications whose needs are remembered.
	maxNeeds = 4096
	// roundWithin bounds a round, so that a store that hangs is noticed and tried again.
	roundWithin = 30 * time.Second
)

// Placement is the wish that a job be offered to a runner. The ids are new.
type Placement struct {
	Job     forge.JobID
	Runner  forge.RunnerID
	Attempt forge.AttemptID
	Lease   forge.LeaseID
}

// Config is what a Control is made of. All but Log is required.
type Config struct {
	Store *store.Store
	// Place wishes for an offer. It does not wait, and may forget the wish.
	Place func(Placement)
	// Cancelling hears of jobs whose end was asked for and that somebody holds. It does not wait. Nil: nobody wants to know.
	Cancelling func([]forge.JobID)
	CA         *trust.CA
	Policy     forge.LeasePolicy
	Trees      Trees // nil: no run has inputs
	// Objects are those of a project; nil: no run comes as a pipeline.
	Objects func(forge.ProjectName) cas.Store
	Log     *slog.Logger
}

// Trees knows which trees of files a project has; objects.Objects does.
type Trees interface {
	// CheckTree returns nil for a tree that is there whole, and is what it says. A *objects.MissingError or a *cas.TreeError
	// says what is wrong with it; any other error leaves that open.
	CheckTree(ctx context.Context, project forge.ProjectName, t forge.TreeRef) error
}

// Control owns runs and runners.
type Control struct {
	store  *store.Store
	wishes func(Placement)
	// cancelling is never nil.
	cancelling func([]forge.JobID)
	ca         *trust.CA
	policy     forge.LeasePolicy
	trees      Trees
	stored     func(forge.ProjectName) cas.Store
	log        *slog.Logger
	now        func() forge.Instant
	nudge      chan struct{} // holds one
	needs      needs         // has a lock of its own; it reads the store while it holds it, and takes no other

	fleet fleet
	plans plans // of Run's goroutine

	mu      sync.Mutex
	waits   waits
	nextSay forge.Instant // when an error of a round is logged next

	rounds struct{ changed, nudged, ticked atomic.Uint64 }
}

// New returns a Control that does nothing by itself until Run.
func New(cfg Config) *Control {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	cancelling := cfg.Cancelling
	if cancelling == nil {
		cancelling = func([]forge.JobID) {}
	}
	return &Control{
		store: cfg.Store, wishes: cfg.Place, cancelling: cancelling, ca: cfg.CA, policy: cfg.Policy, trees: cfg.Trees, stored: cfg.Objects, log: log, now: clock.Boot,
		nudge: make(chan struct{}, 1), waits: waits{}, fleet: fleet{live: map[forge.RunnerID]live{}, refused: map[forge.RunnerID]Refusal{}},
		plans: plans{of: map[forge.RunID]*planned{}},
	}
}

// Nudge says that something about the agents has changed: one came into step or went, or has other capabilities, another
// load or other health. It does not wait.
func (c *Control) Nudge() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}

// Rounds counts the rounds of the loop by what woke it: a change in the store, a nudge, and the passing of time. Work that
// is there is begun by one of the first two.
func (c *Control) Rounds() (changed, nudged, ticked uint64) {
	return c.rounds.changed.Load(), c.rounds.nudged.Load(), c.rounds.ticked.Load()
}

// Run settles runs and places jobs until ctx ends. An error of the store is logged and what it kept from being done is
// tried again: only the store itself decides when it is done for. It returns nil.
//
// News of runners waits as long as the round before has taken: a fleet says something all the time, and a hostile runner as
// often as it can, and neither is to keep the loop busy without end. News of runs and jobs waits for nothing.
func (c *Control) Run(ctx context.Context) error {
	changes := c.store.Subscribe()
	defer changes.Close()
	tick := time.NewTicker(Every)
	defer tick.Stop()
	rest := time.After(c.round(ctx))
	for {
		nudge := c.nudge
		if rest != nil {
			nudge = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
			what := changes.Take()
			if !matters(what) {
				continue
			}
			if !ofJobs(what) {
				c.Nudge()
				continue
			}
			c.rounds.changed.Add(1)
		case <-rest:
			rest = nil
			continue
		case <-nudge:
			c.rounds.nudged.Add(1)
		case <-tick.C:
			c.rounds.ticked.Add(1)
		}
		rest = time.After(c.round(ctx))
	}
}

// matters reports whether a change can settle a run or place a job. What grows all the time, logs and phases, cannot.
func matters(ch store.Changes) bool { return ofJobs(ch) || len(ch.Runners) > 0 }

// ofJobs reports whether it is about more than runners. A job that has come to another state is a change of its run.
func ofJobs(ch store.Changes) bool { return ch.All || len(ch.Runs) > 0 }

// round looks at everything once, and says how long that took, at most Every.
func (c *Control) round(ctx context.Context) time.Duration {
	began := c.now()
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	if err := c.settleAll(ctx); err != nil {
		c.say(ctx, "settle runs", err)
	}
	if err := c.place(ctx); err != nil {
		c.say(ctx, "place jobs", err)
	}
	return min(c.now().Sub(began), Every)
}

// say logs an error of a round, at most once in a while: a store that is full stays so for a time.
func (c *Control) say(ctx context.Context, what string, err error) {
	const quiet = 10 * time.Second
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return // the daemon stops
	}
	c.mu.Lock()
	now := c.now()
	due := now >= c.nextSay
	if due {
		c.nextSay = now.Add(quiet)
	}
	c.mu.Unlock()
	if due {
		c.log.Error("a round could not be finished; it is tried again", "what", what, "err", err)
	}
}

// settleAll settles every run of which a job has changed. One that cannot be settled does not keep the others from it.
func (c *Control) settleAll(ctx context.Context) error {
	var runs []forge.RunID
	err := c.store.View(ctx, func(v *store.View) (err error) {
		runs, err = v.Unsettled(maxUnsettled)
		return err
	})
	if err != nil {
		return err
	}
	var first error
	for _, id := range runs {
		if err := c.settleOne(ctx, id); err != nil && first == nil {
			first = err
		}
	}
	return first
}
