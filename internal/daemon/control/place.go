package control

import (
	"context"
	"fmt"
	"sync"

	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

// place gives ready jobs to runners: it reads what is there, lets the scheduler decide, and passes the wishes on.
func (c *Control) place(ctx context.Context) error {
	s, err := c.look(ctx)
	if err != nil {
		return err
	}
	if len(s.Jobs) == 0 {
		return nil
	}
	plan := scheduler.Place(s.Snapshot)
	wishes := c.wish(plan)
	for _, w := range wishes {
		c.wishes(w)
	}
	return nil
}

// wish remembers what is asked for, so that the next round neither asks again at once nor gives the room away.
func (c *Control) wish(plan *scheduler.Plan) []Placement {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	var wishes []Placement
	for _, p := range plan.Placements {
		w := c.waits[p.Job]
		if w == nil || w.onItsWay(now) {
			continue // another round was faster
		}
		w.wished, w.runner = now, p.Runner
		wishes = append(wishes, Placement{Job: p.Job, Runner: p.Runner, Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID]()})
	}
	return wishes
}

// sight is the world as one round sees it.
type sight struct {
	scheduler.Snapshot
	onItsWay map[forge.JobID]forge.RunnerID // jobs that were given to a runner a moment ago; they are not in Jobs
	until    map[forge.JobID]forge.Instant  // when the pausing ones may be offered again
	now      forge.Instant
	needs    map[forge.JobSpecID]forge.Need
	opens    map[forge.RunnerID][]scheduler.Open
}

// rows is what a sight is made of.
type rows struct {
	ready   []store.ReadyJob
	leases  []store.OpenLease
	runners []store.Runner
}

// look reads what is there. Without a job that waits it reads no more than that.
func (c *Control) look(ctx context.Context) (*sight, error) { return c.lookAt(ctx, false) }

// lookAt is look, also at a fleet that no job waits for.
func (c *Control) lookAt(ctx context.Context, fleet bool) (*sight, error) {
	live := c.fleet.since(c.now().Add(-c.silence()))
	s := &sight{
		onItsWay: map[forge.JobID]forge.RunnerID{}, until: map[forge.JobID]forge.Instant{},
		opens: map[forge.RunnerID][]scheduler.Open{},
	}
	var r rows
	err := c.store.View(ctx, func(v *store.View) (err error) {
		if r.ready, err = v.Ready(maxReady); err != nil || len(r.ready) == 0 && !fleet {
			return err
		}
		if r.leases, err = v.OpenLeases(forge.RunnerID{}); err != nil {
			return err
		}
		if r.runners, err = everyRunner(v); err != nil {
			return err
		}
		s.needs = c.needs.all(v, &r, func(err error) { c.say(ctx, "read a specification", err) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range r.leases {
		s.open(r.leases[i].Lease.Context.Runner, r.leases[i].Project, r.leases[i].Lease.Context.Spec)
	}
	c.addJobs(s, r.ready)
	for i := range r.runners {
		s.Runners = append(s.Runners, runnerOf(&r.runners[i], live, s.opens[r.runners[i].ID]))
	}
	return s, nil
}

func everyRunner(v *store.View) ([]store.Runner, error) {
	var all []store.Runner
	var after forge.RunnerID
	for len(all) < maxRunners {
		page, err := v.Runners(after, store.MaxPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < store.MaxPage {
			break
		}
		after = page[len(page)-1].ID
	}
	return all, nil
}

// open counts what a lease takes. One whose specification cannot be read takes a slot at least.
func (s *sight) open(runner forge.RunnerID, project forge.ProjectName, spec forge.JobSpecID) {
	need, known := s.needs[spec]
	if !known {
		need.Resources.Slots = 1
	}
	s.opens[runner] = append(s.opens[runner], scheduler.Open{Project: project, Resources: need.Resources, Devices: need.Constraints.Devices})
}

// addJobs takes in the waiting jobs. One that was given to a runner a moment ago takes room there and is not placed
// again; one whose specification cannot be read is not placed at all.
func (c *Control) addJobs(s *sight, ready []store.ReadyJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.now = c.now()
	c.waits.see(s.now, ready)
	for i := range ready {
		j := &ready[i]
		w := c.waits[j.ID]
		if w.onItsWay(s.now) {
			s.onItsWay[j.ID] = w.runner
			s.open(w.runner, j.Project, j.Spec)
			continue
		}
		need, known := s.needs[j.Spec]
		if !known {
			continue
		}
		job := scheduler.Job{
			ID: j.ID, Project: j.Project, Sequence: j.Sequence, Need: need,
			NotYet: w.pausing(s.now), Refused: w.refused(s.now, j.Refused),
		}
		if job.NotYet {
			s.until[j.ID] = w.until()
		}
		s.Jobs = append(s.Jobs, job)
	}
}

// runnerOf puts together what is stored of a runner and what its connection says.
func runnerOf(r *store.Runner, now map[forge.RunnerID]live, open []scheduler.Open) scheduler.Runner {
	out := scheduler.Runner{
		Runner: r.Runner, Capabilities: r.Capabilities, Summary: r.Summary, Health: r.Health.Status, Open: open,
	}
	out.Disabled = r.Disabled || r.Revoked
	if l, ok := now[r.ID]; ok {
		out.Connected, out.Draining = true, r.Draining || l.draining
		if l.said {
			out.Summary = l.summary
		}
		if l.health != 0 {
			out.Health = l.health
		}
	}
	// What the administrator gives is the most that an offer can take; the store refuses the next.
	if slots := uint32(max(0, r.Slots)); out.Capabilities.Resources.Slots > slots {
		out.Capabilities.Resources.Slots = slots
	}
	return out
}

// needs remembers what specifications ask of a runner: they never change, and are asked for in every round.
type needs struct {
	mu    sync.Mutex
	known map[forge.JobSpecID]forge.Need
}

// all returns the needs of everything that takes or wants room. One that cannot be had is left out and said.
func (n *needs) all(v *store.View, r *rows, failed func(error)) map[forge.JobSpecID]forge.Need {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) > maxNeeds {
		n.known = nil
	}
	if n.known == nil {
		n.known = map[forge.JobSpecID]forge.Need{}
	}
	used := map[forge.JobSpecID]forge.Need{}
	take := func(id forge.JobSpecID) {
		need, known := n.known[id]
		if !known {
			var err error
			if need, err = readNeed(v, id); err != nil {
				failed(err)
				return
			}
			n.known[id] = need
		}
		used[id] = need
	}
	for i := range r.ready {
		take(r.ready[i].Spec)
	}
	for i := range r.leases {
		take(r.leases[i].Lease.Context.Spec)
	}
	return used
}

func readNeed(v *store.View, id forge.JobSpecID) (forge.Need, error) {
	bytes, err := v.Spec(id)
	if err != nil {
		return forge.Need{}, fmt.Errorf("spec %v: %w", id, err)
	}
	spec, err := jobspec.Open(id, bytes)
	if err != nil {
		return forge.Need{}, fmt.Errorf("spec %v: %w", id, err)
	}
	return spec.Need(), nil
}
