package scheduler

import (
	"cmp"
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// queue deals out jobs fairly: always the oldest untried one of the project that holds the smallest share of the fleet.
type queue struct {
	whole    forge.Resources
	projects []*project // by name
}

type project struct {
	name  forge.ProjectName
	jobs  []*job // untried, oldest first
	used  forge.Resources
	share uint64 // of the whole, in millionths
}

func (w *world) queue() *queue {
	q := &queue{whole: w.whole}
	for _, j := range w.jobs {
		p := q.project(j.Project)
		p.jobs = append(p.jobs, j)
	}
	for _, r := range w.runners {
		for _, open := range r.Open {
			q.use(q.project(open.Project), open.Resources)
		}
	}
	return q
}

// project finds a project, or adds it in its place.
func (q *queue) project(name forge.ProjectName) *project {
	i, found := slices.BinarySearchFunc(q.projects, name, func(p *project, name forge.ProjectName) int {
		return cmp.Compare(p.name, name)
	})
	if !found {
		q.projects = slices.Insert(q.projects, i, &project{name: name})
	}
	return q.projects[i]
}

// next takes the next job, or returns nil after the last.
func (q *queue) next() *job {
	var first *project
	for _, p := range q.projects {
		if len(p.jobs) > 0 && (first == nil || p.before(first)) {
			first = p
		}
	}
	if first == nil {
		return nil
	}
	j := first.jobs[0]
	first.jobs = first.jobs[1:]
	return j
}

// before reports whether p goes before o: its share is smaller or, of equal shares, its next job is older.
func (p *project) before(o *project) bool {
	return cmp.Or(cmp.Compare(p.share, o.share), p.jobs[0].compareAge(o.jobs[0])) < 0
}

// charge counts a job that was placed.
func (q *queue) charge(j *job) { q.use(q.project(j.Project), j.Need.Resources) }

func (q *queue) use(p *project, amount forge.Resources) {
	if sum, err := p.used.Add(amount); err == nil {
		p.used = sum
	}
	p.share = share(p.used, q.whole)
}
