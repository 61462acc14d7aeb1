package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// A run that is tried again stays as it is. There is a new one, which has the jobs that are to run, and takes over the results
// of the others: their texts, their artifacts and how they ended, by reference (ADR 0021).

// Retry asks for a run that tries again what another has left undone.
type Retry struct {
	Run   forge.RunID
	All   bool             // every job, whatever came of it
	Jobs  []string         // keys of the jobs to try again; empty, without All: those that failed or were cancelled
	Trust forge.TrustClass // of whoever asks; the new run has no more of it than the old one
	Key   string           // idempotency key, or empty
	Actor string
}

// ErrNoRetry is for a run of which nothing can be tried again as it was asked for. The text around it says why.
var ErrNoRetry = errors.New("it cannot be tried again")

// Retry makes a run of the jobs that are asked for, of what they need where that did not succeed, and of everything that needs
// any of these. It has the source, the pipeline and the facts of the old one, and today's secrets. Otherwise it is Submit.
func (c *Control) Retry(ctx context.Context, r Retry) (store.Run, bool, error) {
	p, err := c.past(ctx, r.Run)
	if err != nil {
		return store.Run{}, false, err
	}
	chosen, err := p.choose(&r)
	if err != nil {
		return store.Run{}, false, err
	}
	s, err := p.submission(ctx, c, chosen)
	if err != nil {
		return store.Run{}, false, err
	}
	s.Key, s.Actor, s.Trust = r.Key, r.Actor, min(r.Trust, p.run.Trust)
	return c.Submit(ctx, s)
}

// past is what came of a run, with the jobs that it had taken over itself.
type past struct {
	run   store.Run
	from  *store.Origin // nil: its jobs came with their specs
	jobs  []store.Job
	needs map[string][]forge.JobNeed // by key and leg, as they were before any of them was taken over
}

// past reads a run that has ended.
func (c *Control) past(ctx context.Context, id forge.RunID) (*past, error) {
	p := &past{needs: map[string][]forge.JobNeed{}}
	err := c.store.View(ctx, func(v *store.View) (err error) {
		if p.run, err = v.Run(id); err != nil {
			return err
		}
		if !p.run.State.Ended() {
			return fmt.Errorf("%w: run %v has not ended; wait for its end, or cancel it", ErrNoRetry, id)
		}
		from, err := v.Origin(id)
		switch {
		case err == nil:
			p.from = &from
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		return p.readJobs(v)
	})
	return p, err
}

// readJobs reads the jobs of the run, those that it took over, and what each needed in the run that was the first.
func (p *past) readJobs(v *store.View) error {
	taken, err := v.Taken(p.run.ID)
	if err != nil {
		return err
	}
	own, err := v.Jobs(p.run.ID)
	if err != nil {
		return err
	}
	p.jobs = append(taken, own...)
	first := p.run
	for !first.RetryOf.IsZero() { // each is older than the one before
		if first, err = v.Run(first.RetryOf); err != nil {
			return err
		}
	}
	if first.ID != p.run.ID {
		if own, err = v.Jobs(first.ID); err != nil {
			return err
		}
	}
	for i := range own {
		p.needs[nodeName(own[i].Key, own[i].Leg)] = own[i].Needs
	}
	return nil
}

// undone reports whether a job has failed, or was kept from its end.
func (p *past) undone(j *store.Job) bool {
	return j.State == forge.JobFailed && !j.Excused || j.State == forge.JobCancelled
}

func (p *past) needsOf(j *store.Job) []forge.JobNeed { return p.needs[nodeName(j.Key, j.Leg)] }

// choose says which jobs run again.
func (p *past) choose(r *Retry) (map[forge.JobID]bool, error) {
	chosen := map[forge.JobID]bool{}
	for _, key := range r.Jobs {
		known := false
		for i := range p.jobs {
			if p.jobs[i].Key == forge.JobKey(key) {
				chosen[p.jobs[i].ID], known = true, true
			}
		}
		if !known {
			return nil, &pipeline.UnknownJobError{Key: key, Known: p.keys()}
		}
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; r.All || len(r.Jobs) == 0 && p.undone(j) {
			chosen[j.ID] = true
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no job of run %v has failed; name the jobs that are to run again, or ask for all", ErrNoRetry, p.run.ID)
	}
	for p.spread(chosen) {
	}
	return chosen, nil
}

func (p *past) keys() (all []string) {
	for i := range p.jobs {
		if key := string(p.jobs[i].Key); !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// spread adds what needs a chosen job, and what a chosen job needs and has not got. It reports whether there was anything.
func (p *past) spread(chosen map[forge.JobID]bool) bool {
	keys, needed := map[forge.JobKey]bool{}, map[forge.JobKey]bool{}
	for i := range p.jobs {
		j := &p.jobs[i]
		keys[j.Key] = keys[j.Key] || chosen[j.ID]
		for _, n := range p.needsOf(j) {
			needed[n.Job] = needed[n.Job] || chosen[j.ID]
		}
	}
	before := len(chosen)
	for i := range p.jobs {
		j := &p.jobs[i]
		if needed[j.Key] && (p.undone(j) || j.State == forge.JobSkipped) || slices.ContainsFunc(p.needsOf(j), func(n forge.JobNeed) bool { return keys[n.Job] }) {
			chosen[j.ID] = true
		}
	}
	return len(chosen) > before
}

// submission is the new run. What is not chosen is taken over.
func (p *past) submission(ctx context.Context, c *Control, chosen map[forge.JobID]bool) (Submission, error) {
	s := Submission{Project: p.run.Project, Name: p.run.Name, retryOf: p.run.ID}
	keys := map[forge.JobKey]bool{}
	for i := range p.jobs {
		if j := &p.jobs[i]; chosen[j.ID] {
			keys[j.Key] = true
		} else {
			s.taken = append(s.taken, j.ID)
		}
	}
	if p.from != nil {
		err := p.pipelined(&s, chosen)
		return s, err
	}
	err := c.store.View(ctx, func(v *store.View) error {
		for i := range p.jobs {
			j := &p.jobs[i]
			if !chosen[j.ID] {
				continue
			}
			bytes, err := v.Spec(j.Draft)
			if err != nil {
				return err
			}
			spec, err := jobspec.Open(j.Draft, bytes)
			if err != nil {
				return err
			}
			s.Jobs = append(s.Jobs, SubmittedJob{Key: j.Key, Leg: j.Leg, Needs: within(p.needsOf(j), keys), Spec: spec})
		}
		return nil
	})
	return s, err
}

// pipelined makes the new run one of the same pipeline.
func (p *past) pipelined(s *Submission, chosen map[forge.JobID]bool) error {
	var o origin
	if err := json.Unmarshal(p.from.Facts, &o); err != nil {
		return fmt.Errorf("what is kept of run %v: %w", p.run.ID, err)
	}
	s.Pipeline = &Pipeline{
		File: o.File, Text: p.from.Pipeline, Wanted: o.Wanted, Facts: o.Facts, Source: o.Source, WithGit: o.WithGit, Sandbox: o.Sandbox,
		only: map[string]bool{},
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; chosen[j.ID] {
			s.Pipeline.only[nodeName(j.Key, j.Leg)] = true
		}
	}
	return nil
}

// within are those needs that name a job of a run. What else was needed has ended, and is taken over.
func within(needs []forge.JobNeed, keys map[forge.JobKey]bool) (some []forge.JobNeed) {
	for _, n := range needs {
		if keys[n.Job] {
			some = append(some, n)
		}
	}
	return some
}
