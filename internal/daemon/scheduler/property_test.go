package scheduler_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// referee knows the rules a second time, the plain way, and follows a plan through them.
type referee struct {
	jobs    map[forge.JobID]*scheduler.Job
	runners map[forge.RunnerID]*scheduler.Runner
	used    map[forge.RunnerID]forge.Resources
	gpus    map[forge.RunnerID]int
	held    map[forge.RunnerID]*scheduler.Job
	share   map[forge.ProjectName]forge.Resources
	fleet   forge.Resources
	placed  map[forge.JobID]bool
}

func newReferee(t *rapid.T, s scheduler.Snapshot) *referee {
	f := &referee{
		jobs: map[forge.JobID]*scheduler.Job{}, runners: map[forge.RunnerID]*scheduler.Runner{},
		used: map[forge.RunnerID]forge.Resources{}, gpus: map[forge.RunnerID]int{}, held: map[forge.RunnerID]*scheduler.Job{},
		share: map[forge.ProjectName]forge.Resources{}, placed: map[forge.JobID]bool{},
	}
	for i := range s.Jobs {
		f.jobs[s.Jobs[i].ID] = &s.Jobs[i]
	}
	for i := range s.Runners {
		r := &s.Runners[i]
		f.runners[r.ID] = r
		f.fleet = add(t, f.fleet, size(r))
		for _, open := range r.Open {
			f.used[r.ID] = add(t, f.used[r.ID], open.Resources)
			f.gpus[r.ID] += int(forge.CountOf(open.Devices, "gpu"))
			f.share[open.Project] = add(t, f.share[open.Project], open.Resources)
		}
	}
	return f
}

func add(t *rapid.T, a, b forge.Resources) forge.Resources {
	sum, err := a.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func size(r *scheduler.Runner) forge.Resources { return r.Capabilities.Resources.Without(r.Reserved) }

// suits reports whether the runner may take the job when it is empty.
func suits(r *scheduler.Runner, j *scheduler.Job) bool {
	need := j.Need.Constraints
	available := r.Connected && !r.Disabled && !r.Draining && r.Health != forge.Unhealthy && r.Summary.Pressure <= forge.PressureCPU
	labels := slices.Concat(r.Labels, r.Capabilities.Labels)
	for _, label := range need.Labels {
		available = available && slices.Contains(labels, label)
	}
	for _, d := range need.Devices {
		available = available && forge.CountOf(r.Capabilities.Devices, d.Kind) >= d.Count
	}
	return available && r.Pool == need.Pool && r.Trust.Runs(need.Trust) && !slices.Contains(j.Refused, r.ID) &&
		j.Need.Resources.Fits(size(r))
}

// fits reports whether a runner that suits the job has room for it now.
func (f *referee) fits(r *scheduler.Runner, j *scheduler.Job) bool {
	gpus := int(forge.CountOf(j.Need.Constraints.Devices, "gpu"))
	return j.Need.Resources.Fits(size(r).Without(f.used[r.ID])) &&
		(gpus == 0 || f.gpus[r.ID]+gpus <= int(forge.CountOf(r.Capabilities.Devices, "gpu")))
}

func older(a, b *scheduler.Job) bool {
	return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), a.ID.Compare(b.ID.ULID)) < 0
}

// runnable reports whether the job could start on some runner that is not held against it.
func (f *referee) runnable(j *scheduler.Job) bool {
	for id, r := range f.runners {
		if !j.NotYet && suits(r, j) && f.fits(r, j) && (f.held[id] == nil || !older(f.held[id], j)) {
			return true
		}
	}
	return false
}

func (f *referee) dominant(p forge.ProjectName) float64 {
	of := f.share[p]
	part := func(a, b uint64) float64 {
		if a == 0 {
			return 0
		}
		return min(float64(a)/max(float64(b), 1e-9), 1)
	}
	return max(part(uint64(of.CPU), uint64(f.fleet.CPU)), part(uint64(of.Memory), uint64(f.fleet.Memory)),
		part(uint64(of.Disk), uint64(f.fleet.Disk)), part(uint64(of.Slots), uint64(f.fleet.Slots)))
}

// follow checks each placement when it is made.
func (f *referee) follow(t *rapid.T, plan *scheduler.Plan) {
	for _, p := range plan.Placements {
		j, r := f.jobs[p.Job], f.runners[p.Runner]
		if f.placed[p.Job] || j.NotYet {
			t.Fatalf("%v is placed twice or too early", p.Job)
		}
		if !suits(r, j) || !f.fits(r, j) {
			t.Fatalf("%v is placed on a runner that does not suit it or has no room: %+v", p.Job, r)
		}
		if h := f.held[p.Runner]; h != nil && older(h, j) {
			t.Fatalf("%v is placed on a runner that is held for the older %v", p.Job, h.ID)
		}
		f.fair(t, j)
		f.placed[p.Job] = true
		f.used[p.Runner] = add(t, f.used[p.Runner], j.Need.Resources)
		f.gpus[p.Runner] += int(forge.CountOf(j.Need.Constraints.Devices, "gpu"))
		f.share[j.Project] = add(t, f.share[j.Project], j.Need.Resources)
	}
}

// fair checks that nobody with a smaller share, and nobody older in the same project, could have been placed instead.
func (f *referee) fair(t *rapid.T, j *scheduler.Job) {
	for _, other := range f.jobs {
		if f.placed[other.ID] || other == j || !f.runnable(other) {
			continue
		}
		if other.Project == j.Project && older(other, j) {
			t.Fatalf("%v is placed before %v, which is older and of the same project", j.ID, other.ID)
		}
		if other.Project != j.Project && f.dominant(other.Project) < f.dominant(j.Project)-2e-6 {
			t.Fatalf("%v of %s is placed before %v of %s, which has less", j.ID, j.Project, other.ID, other.Project)
		}
	}
}

func checkHolds(t *rapid.T, f *referee, plan *scheduler.Plan) {
	holders := map[forge.JobID]bool{}
	for i, h := range plan.Holds {
		j, r := f.jobs[h.Job], f.runners[h.Runner]
		switch {
		case f.held[h.Runner] != nil || holders[h.Job]:
			t.Fatal("a runner is held twice, or a job holds two")
		case j.NotYet || !suits(r, j):
			t.Fatal("a runner is held for a job that it would never take")
		case f.fits(r, j):
			t.Fatal("a runner is held for a job that fits it now")
		case i > 0 && !older(f.jobs[plan.Holds[i-1].Job], j):
			t.Fatal("holds are not by age")
		}
		if f.runnable(j) {
			t.Fatal("a runner is held for a job that could start on another")
		}
		f.held[h.Runner], holders[h.Job] = j, true
	}
}

// A property that is never put to the test holds as well: each of these must come up while the rules are checked.
type reached struct {
	placed, held, closed, overtaken, full, devices, unfit int
}

func (n *reached) count(s scheduler.Snapshot, plan *scheduler.Plan) {
	n.placed += len(plan.Placements)
	n.held += len(plan.Holds)
	last := uint64(0)
	for _, p := range plan.Placements {
		j := s.Jobs[p.Job.ULID[15]]
		if j.Sequence < last {
			n.overtaken++ // by a younger job of a project with less
		}
		last = j.Sequence
		n.devices += len(j.Need.Constraints.Devices)
	}
	for _, id := range plan.Waiting {
		why, _ := plan.Why(id)
		for _, p := range why.Passed {
			if len(p.Misses) == 0 {
				continue
			}
			switch p.Misses[0].Kind {
			case forge.MissHeld:
				n.closed++
			case forge.MissBusy:
				n.full++
			default:
				n.unfit++
			}
		}
	}
}

func (n *reached) enough() bool {
	return n.placed >= 100 && n.held >= 50 && n.closed >= 5 && n.overtaken >= 20 && n.full >= 100 && n.devices >= 10 && n.unfit >= 100
}

// untilReached draws on until the states that matter were reached, and fails where they are not within reason.
func (n *reached) untilReached(t *testing.T, property func(*rapid.T)) {
	for range 20 {
		rapid.Check(t, property)
		if t.Failed() || n.enough() {
			return
		}
	}
	t.Errorf("too little was reached: %+v", *n)
}

// Capacity, constraints, holds and fairness, each placement checked in the state in which it was decided.
func TestEveryPlacementIsOneThatTheRulesAllow(t *testing.T) {
	var n reached
	n.untilReached(t, func(t *rapid.T) {
		s := anySnapshot(t)
		f := newReferee(t, s)
		plan := scheduler.Place(s)
		n.count(s, plan)
		checkHolds(t, f, plan)
		f.follow(t, plan)
	})
	t.Logf("%+v", n)
}

func TestCapacityIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		f := newReferee(t, s)
		touched := map[forge.RunnerID]bool{}
		for _, p := range scheduler.Place(s).Placements {
			f.used[p.Runner] = add(t, f.used[p.Runner], f.jobs[p.Job].Need.Resources)
			f.gpus[p.Runner] += int(forge.CountOf(f.jobs[p.Job].Need.Constraints.Devices, "gpu"))
			touched[p.Runner] = true
		}
		for id := range touched {
			r := f.runners[id]
			if !within(f.used[id], size(r), r.Open) {
				t.Fatalf("%v of %v is used", f.used[id], size(r))
			}
		}
	})
}

// within allows an amount that open leases alone already exceeded.
func within(used, whole forge.Resources, open []scheduler.Open) bool {
	for _, o := range open {
		if !o.Resources.Fits(whole) {
			return true
		}
	}
	return used.Fits(whole) || !sum(open).Fits(whole)
}

func sum(open []scheduler.Open) forge.Resources {
	var all forge.Resources
	for _, o := range open {
		all, _ = all.Add(o.Resources)
	}
	return all
}

func TestNoRunnableJobWaitsWhileAFittingRunnerIsNotHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		f := newReferee(t, s)
		plan := scheduler.Place(s)
		for _, h := range plan.Holds {
			f.held[h.Runner] = f.jobs[h.Job]
		}
		for _, p := range plan.Placements {
			f.used[p.Runner] = add(t, f.used[p.Runner], f.jobs[p.Job].Need.Resources)
			f.gpus[p.Runner] += int(forge.CountOf(f.jobs[p.Job].Need.Constraints.Devices, "gpu"))
		}
		for _, id := range plan.Waiting {
			if f.runnable(f.jobs[id]) {
				t.Fatalf("%v waits and could run", id)
			}
		}
		if len(plan.Waiting)+len(plan.Placements) != len(s.Jobs) {
			t.Fatal("a job is neither placed nor waiting")
		}
	})
}

// told is a plan with all its reasons.
func told(p *scheduler.Plan, s scheduler.Snapshot) []any {
	all := []any{p.Placements, p.Holds, p.Waiting}
	for _, id := range p.Waiting {
		why, _ := p.Why(id)
		all = append(all, why)
	}
	ids := make([]forge.RunnerID, 0, len(s.Runners))
	for _, r := range s.Runners {
		ids = append(ids, r.ID)
	}
	slices.SortFunc(ids, func(a, b forge.RunnerID) int { return a.Compare(b.ULID) })
	for _, id := range ids {
		why, _ := p.WhyRunner(id)
		all = append(all, why)
	}
	return all
}

func TestTheSameSnapshotGivesTheSamePlanInWhateverOrderItIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		want := told(scheduler.Place(s), s)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		shuffled := scheduler.Snapshot{Jobs: slices.Clone(s.Jobs), Runners: slices.Clone(s.Runners)}
		r.Shuffle(len(shuffled.Jobs), func(i, j int) { shuffled.Jobs[i], shuffled.Jobs[j] = shuffled.Jobs[j], shuffled.Jobs[i] })
		r.Shuffle(len(shuffled.Runners), func(i, j int) {
			shuffled.Runners[i], shuffled.Runners[j] = shuffled.Runners[j], shuffled.Runners[i]
		})
		if diff := gocmp.Diff(want, told(scheduler.Place(shuffled), s)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPlacingChangesNothingInTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		before := fmt.Sprintf("%+v", s)
		told(scheduler.Place(s), s)
		if after := fmt.Sprintf("%+v", s); after != before {
			t.Fatalf("%s\nwas\n%s", after, before)
		}
	})
}

// The reasons agree with the rules: a runner that is said to lack nothing for a job could take it, but for a pause; and
// one that could is never said to lack something.
func TestAReasonIsGivenForEveryRunnerThatIsPassedOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		plan := scheduler.Place(s)
		for i, id := range plan.Waiting {
			why, ok := plan.Why(id)
			if !ok || len(why.Passed) != len(s.Runners) || why.Ahead != i || why.String() == "" {
				t.Fatalf("%v is explained by %+v", id, why)
			}
			for _, p := range why.Passed {
				if len(p.Misses) == 0 && !why.NotYet {
					t.Fatalf("no reason against %s: %v", p.Name, why)
				}
			}
			counted := 0
			for _, g := range why.Groups() {
				counted += g.Runners
			}
			if free := slices.IndexFunc(why.Passed, func(p scheduler.Passed) bool { return len(p.Misses) > 0 }); free >= 0 && counted != len(s.Runners)-free {
				t.Fatalf("%d of %d runners are counted", counted, len(s.Runners)-free)
			}
		}
		for _, p := range plan.Placements {
			if _, ok := plan.Why(p.Job); ok {
				t.Fatalf("%v is placed and said to wait", p.Job)
			}
		}
	})
}
