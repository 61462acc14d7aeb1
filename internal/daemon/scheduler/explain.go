package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Explanation says why a job waits: what each runner lacks for it, the nearest first.
type Explanation struct {
	Job    forge.JobID
	NotYet bool           // it is pausing after what was tried came to nothing
	Ahead  int            // older jobs that wait as well
	Held   forge.RunnerID // the runner that is held for it, if one is
	Passed []Passed       // every runner, the nearest miss first
}

// Passed is a runner that was passed over, with everything that it lacked.
type Passed struct {
	Runner forge.RunnerID
	Name   string
	Misses []forge.Miss // in the order of their kinds; none where only the job's own pause stands between
}

// Group counts the runners that were passed over for the same thing.
type Group struct {
	Miss    forge.Miss // of the nearest of them
	Runners int
}

// Why explains a job that waits, and reports false for any other. It looks at the world as the plan leaves it: what was
// placed in the same round takes room already.
func (p *Plan) Why(id forge.JobID) (Explanation, bool) {
	ahead := 0
	for _, j := range p.world.jobs {
		switch {
		case j.placed:
		case j.ID == id:
			return p.world.explain(j, ahead), true
		default:
			ahead++
		}
	}
	return Explanation{}, false
}

func (w *world) explain(j *job, ahead int) Explanation {
	e := Explanation{Job: j.ID, NotYet: j.NotYet, Ahead: ahead}
	if j.holds != nil {
		e.Held = j.holds.ID
	}
	for _, r := range w.runners {
		e.Passed = append(e.Passed, Passed{Runner: r.ID, Name: r.Name, Misses: slices.Collect(r.misses(j))})
	}
	slices.SortStableFunc(e.Passed, func(a, b Passed) int { return compareMisses(a.Misses, b.Misses) })
	return e
}

// compareMisses puts the nearer miss first: what passes as jobs end, then what passes by itself, then what somebody has
// to change; of those, fewer things; of as few, the smaller lack.
func compareMisses(a, b []forge.Miss) int {
	return cmp.Or(
		cmp.Compare(distance(a), distance(b)), cmp.Compare(len(a), len(b)), cmp.Compare(lack(a), lack(b)),
	)
}

// distance is how much has to change before the last of the misses is gone.
func distance(misses []forge.Miss) int {
	far := 0
	for _, m := range misses {
		switch {
		case !m.Kind.Passes():
			far = max(far, 3)
		case m.Kind < forge.MissBusy:
			far = max(far, 2)
		default:
			far = max(far, 1)
		}
	}
	return far
}

// lack is the largest missing part among the countable misses, in millionths.
func lack(misses []forge.Miss) uint64 {
	var most uint64
	for _, m := range misses {
		if m.Need > m.Have {
			most = max(most, millionths(m.Need-m.Have, m.Need))
		}
	}
	return most
}

// decisive is the miss that stands for a runner: the first that does not pass by itself, else the first.
func decisive(misses []forge.Miss) forge.Miss {
	if i := slices.IndexFunc(misses, func(m forge.Miss) bool { return !m.Kind.Passes() }); i >= 0 {
		return misses[i]
	}
	return misses[0]
}

// Groups counts the runners by what decided, the nearest first. Runners that lack different amounts of the same thing are
// one group, which shows the nearest's amount.
func (e Explanation) Groups() []Group {
	var groups []Group
	for _, p := range e.Passed {
		if len(p.Misses) == 0 {
			continue
		}
		m := decisive(p.Misses)
		i := slices.IndexFunc(groups, func(g Group) bool {
			return g.Miss.Kind == m.Kind && g.Miss.What == m.What && g.Miss.Got == m.Got
		})
		if i < 0 {
			groups = append(groups, Group{Miss: m})
			i = len(groups) - 1
		}
		groups[i].Runners++
	}
	return groups
}

// String says it in one sentence.
func (e Explanation) String() string {
	var parts []string
	if e.NotYet {
		parts = append(parts, "pausing before it is offered again")
	}
	if !e.Held.IsZero() {
		parts = append(parts, "runner "+e.name(e.Held)+" is held for it")
	}
	if len(e.Passed) == 0 {
		parts = append(parts, "there is no runner")
	}
	for _, g := range e.Groups() {
		parts = append(parts, fmt.Sprintf("%v on %s", g.Miss, runners(g.Runners)))
	}
	return strings.Join(parts, ", ")
}

func runners(n int) string {
	if n == 1 {
		return "1 runner"
	}
	return fmt.Sprintf("%d runners", n)
}

// name finds the name of a runner.
func (e Explanation) name(id forge.RunnerID) string {
	for _, p := range e.Passed {
		if p.Runner == id && p.Name != "" {
			return p.Name
		}
	}
	return id.String()
}

// String says in one sentence why the runner was passed over.
func (p Passed) String() string {
	if len(p.Misses) == 0 {
		return p.Name + " would take it"
	}
	texts := make([]string, len(p.Misses))
	for i, m := range p.Misses {
		texts[i] = m.String()
	}
	return p.Name + ": " + strings.Join(texts, ", ")
}

// RunnerExplanation says why a runner gets no more jobs.
type RunnerExplanation struct {
	Runner  forge.RunnerID
	Free    forge.Resources
	HeldFor forge.JobID // the job that it is held for, if it is
	Jobs    []PassedJob // every waiting job, the nearest miss first
}

// PassedJob is a waiting job that the runner did not get, with everything that the runner lacked for it.
type PassedJob struct {
	Job    forge.JobID
	Misses []forge.Miss
}

// WhyRunner explains a runner, and reports false for one that is not in the snapshot.
func (p *Plan) WhyRunner(id forge.RunnerID) (RunnerExplanation, bool) {
	i, found := slices.BinarySearchFunc(p.world.runners, id, func(r *runner, id forge.RunnerID) int { return r.ID.Compare(id.ULID) })
	if !found {
		return RunnerExplanation{}, false
	}
	r := p.world.runners[i]
	e := RunnerExplanation{Runner: id, Free: r.free}
	if r.held != nil {
		e.HeldFor = r.held.ID
	}
	for _, j := range p.world.jobs {
		if !j.placed {
			e.Jobs = append(e.Jobs, PassedJob{j.ID, slices.Collect(r.misses(j))})
		}
	}
	slices.SortStableFunc(e.Jobs, func(a, b PassedJob) int { return compareMisses(a.Misses, b.Misses) })
	return e, true
}
