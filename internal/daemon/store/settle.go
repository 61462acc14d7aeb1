package store

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// Settlement is what a run's owner decides about it. Each part is held against the tables of lifecycle; what is not legal
// any more is an error and changes nothing.
type Settlement struct {
	Plan   []Planned
	Skip   []Skip
	Fail   []Skip            // waiting jobs that cannot be planned
	Excuse []forge.JobID     // jobs whose failure counts as a success
	Cancel []forge.JobID     // by authority.CancelJob
	Run    []lifecycle.Event // of the run, in order; at most two (start, then an end)
	Again  bool              // not everything could be decided: the run stays unsettled
}

// Planned makes a waiting job ready.
type Planned struct {
	authority.Plan
	Bytes   []byte // of the spec, where it is not the job's draft
	Terms   *Terms // likewise
	Lane    string // that the job is in from now on
	Replace bool   // of its lane it ends the older jobs; else it waits for them
}

// Skip ends a waiting job that will not run, and says why.
type Skip struct {
	Job    forge.JobID
	Reason string // for people
}

// Unsettled lists runs of which a job has changed since they were settled, oldest first, at most limit.
func (v *View) Unsettled(limit int) ([]forge.RunID, error) {
	return list(v, `SELECT id FROM run WHERE unsettled = 1 ORDER BY seq LIMIT ?`,
		func(run *forge.RunID) []any { return []any{id(&run.ULID)} }, page(limit))
}

// Settle reads a run with its jobs, lets decide decide, and writes that. The run counts as settled until one of its jobs
// changes again, be it by this very settlement: a skipped job may let another be decided.
func (tx *Tx) Settle(run forge.RunID, decide func(Run, []Job) Settlement) error {
	r, err := tx.Run(run)
	if err != nil {
		return fmt.Errorf("settle run %v: %w", run, err)
	}
	jobs, err := tx.Jobs(run)
	if err != nil {
		return fmt.Errorf("settle run %v: %w", run, err)
	}
	if r.Behind, err = tx.Ahead(&r); err != nil && !isNotFound(err) {
		return fmt.Errorf("settle run %v: %w", run, err)
	}
	if _, err := tx.exec(`UPDATE run SET unsettled = 0 WHERE id = ? AND unsettled = 1`, run.ULID[:]); err != nil {
		return err
	}
	s := decide(r, jobs)
	if err := tx.carryOut(&r, jobs, s); err != nil {
		return fmt.Errorf("settle run %v: %w", run, err)
	}
	if s.Again {
		return tx.unsettle(run)
	}
	return nil
}

func (tx *Tx) carryOut(r *Run, jobs []Job, s Settlement) error {
	at := make(map[forge.JobID]*Job, len(jobs))
	for i := range jobs {
		at[jobs[i].ID] = &jobs[i]
	}
	for i := range s.Plan {
		if at[s.Plan[i].Job] == nil {
			return fmt.Errorf("%w: job %v is not of the run", ErrNotFound, s.Plan[i].Job)
		}
		if err := tx.plan(&s.Plan[i]); err != nil {
			return err
		}
	}
	for _, ends := range []struct {
		event lifecycle.Event
		class forge.Class
		jobs  []Skip
	}{{lifecycle.JobSkip, 0, s.Skip}, {lifecycle.JobFail, forge.Unplanned, s.Fail}} {
		for _, skip := range ends.jobs {
			j := at[skip.Job]
			if j == nil {
				return fmt.Errorf("%w: job %v is not of the run", ErrNotFound, skip.Job)
			}
			if err := tx.endWaiting(j, ends.event, ends.class, skip.Reason); err != nil {
				return err
			}
		}
	}
	for _, job := range s.Excuse {
		if j := at[job]; j == nil || j.State != forge.JobFailed {
			return fmt.Errorf("%w: no job %v of the run has failed", ErrNotFound, job)
		}
		tx.changes.job(job)
		if err := tx.write(`UPDATE job SET excused = 1 WHERE id = ?`, job.ULID[:]); err != nil {
			return err
		}
	}
	for _, job := range s.Cancel {
		if _, err := tx.Do(&authority.CancelJob{Job: job}); err != nil {
			return err
		}
	}
	return tx.moveRun(r, s.Run)
}

// plan stores the spec of a job, and what it says about leases, before the rule that makes the job ready.
func (tx *Tx) plan(p *Planned) error {
	if err := tx.putSpec(p.Spec, p.Bytes); err != nil {
		return err
	}
	if t := p.Terms; t != nil {
		if err := tx.write(`UPDATE job SET hard_ttl = ?, max_lifetime = ?, retry = ? WHERE id = ?`,
			toInt(t.HardTTL), toInt(t.MaxLifetime), toText(t.Retry), p.Job.ULID[:]); err != nil {
			return err
		}
	}
	if p.Lane != "" {
		if err := tx.takeLane(p); err != nil {
			return err
		}
	}
	answer, err := tx.Do(&p.Plan)
	if err == nil && !answer.Done {
		err = fmt.Errorf("job %v cannot be planned any more", p.Job)
	}
	return err
}

func (tx *Tx) endWaiting(j *Job, event lifecycle.Event, class forge.Class, reason string) error {
	to, err := lifecycle.Job.Next(j.State, event)
	if err != nil {
		return fmt.Errorf("job %v: %w", j.ID, err)
	}
	tx.changes.job(j.ID)
	tx.changes.run(j.Run)
	if err := tx.write(`UPDATE job SET state = ?, outcome = ?, ended_at = ?, changed_at = ?, reason = ? WHERE id = ?`,
		toInt(to), toInt(class), toInt(tx.now), toInt(tx.now), reason, j.ID.ULID[:]); err != nil {
		return err
	}
	return tx.unsettle(j.Run)
}

// moveRun brings the run through its events.
func (tx *Tx) moveRun(r *Run, events []lifecycle.Event) error {
	if len(events) == 0 {
		return nil
	}
	for _, event := range events {
		to, err := lifecycle.Run.Next(r.State, event)
		if err != nil {
			return err
		}
		r.State = to
		switch {
		case to == forge.RunRunning:
			r.Started = tx.now
		case to.Ended():
			r.Ended = tx.now
		}
	}
	tx.changes.run(r.ID)
	if r.State.Ended() && r.Lane != "" {
		if err := tx.leaveLane(r); err != nil {
			return err
		}
	}
	return tx.write(`UPDATE run SET state = ?, started_at = ?, ended_at = ? WHERE id = ?`,
		toInt(r.State), toInt(r.Started), toInt(r.Ended), r.ID.ULID[:])
}
