package store

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// A lane is the name of a group within a project. Its runs run one after the other, in the order of their submission, and
// so do its jobs, in the order in which they became ready. Who comes to replace the older ones has them cancelled instead of
// waiting for them.

// laneHolds is true of a job o of run w that keeps job j of run u from being offered: of the same lane, and somebody has it, or it
// is older.
const laneHolds = `o.lane = j.lane AND o.lane <> '' AND o.state >= 2 AND o.state <= 4 AND w.project = u.project AND o.id <> j.id
	AND (o.state > 2 OR o.run_seq < j.run_seq OR o.run_seq = j.run_seq AND o.position < j.position)`

// MaxLane bounds the bytes of a lane's name.
const MaxLane = 256

// Origin returns what a run was planned from, or ErrNotFound for a run whose jobs came with their specs.
func (v *View) Origin(run forge.RunID) (Origin, error) {
	return one(v, `SELECT p.text, o.facts FROM origin o JOIN pipeline p ON p.id = o.pipeline WHERE o.run = ?`,
		func(o *Origin) []any { return []any{&o.Pipeline, &o.Facts} }, run.ULID[:])
}

func (tx *Tx) putOrigin(n *NewRun) error {
	if n.Origin == nil {
		return nil
	}
	pipeline := digest.Of(n.Origin.Pipeline)
	if _, err := tx.exec(`INSERT INTO pipeline (id, text) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, pipeline[:], n.Origin.Pipeline); err != nil {
		return err
	}
	return tx.write(`INSERT INTO origin (run, pipeline, facts) VALUES (?, ?, ?)`, n.ID.ULID[:], pipeline[:], n.Origin.Facts)
}

// Ahead returns the oldest run of a run's lane that is older and has not ended, or ErrNotFound.
func (v *View) Ahead(r *Run) (forge.RunID, error) {
	if r.Lane == "" {
		return forge.RunID{}, ErrNotFound
	}
	return one(v, `SELECT id FROM run WHERE project = ? AND lane = ? AND lane <> '' AND state <= 2 AND seq < ? ORDER BY seq LIMIT 1`,
		func(run *forge.RunID) []any { return []any{id(&run.ULID)} }, string(r.Project), r.Lane, toInt(r.Sequence))
}

// AheadOf returns the job of a job's lane that keeps it from being offered, or ErrNotFound.
func (v *View) AheadOf(job forge.JobID) (Job, error) {
	ahead, err := one(v, `SELECT o.id FROM job j JOIN run u ON u.id = j.run JOIN job o ON o.lane = j.lane JOIN run w ON w.id = o.run
		WHERE j.id = ? AND `+laneHolds+` ORDER BY o.state DESC, o.run_seq, o.position LIMIT 1`,
		func(j *forge.JobID) []any { return []any{id(&j.ULID)} }, job.ULID[:])
	if err != nil {
		return Job{}, err
	}
	return v.Job(ahead)
}

// replaceRuns asks for the end of the older runs of a run's lane. Their jobs end when they are settled.
func (tx *Tx) replaceRuns(r *Run) error {
	older, err := list(&tx.View, `SELECT id FROM run WHERE project = ? AND lane = ? AND lane <> '' AND state <= 2 AND seq < ? ORDER BY seq`,
		func(run *forge.RunID) []any { return []any{id(&run.ULID)} }, string(r.Project), r.Lane, toInt(r.Sequence))
	if err != nil {
		return err
	}
	for _, run := range older {
		if _, err := tx.RequestRunCancel(run, fmt.Sprintf("run %v of the same group", r.ID)); err != nil {
			return err
		}
	}
	return nil
}

// leaveLane lets the runs of a lane be settled that may have waited for one that has ended.
func (tx *Tx) leaveLane(r *Run) error {
	_, err := tx.exec(`UPDATE run SET unsettled = 1 WHERE project = ? AND lane = ? AND lane <> '' AND state <= 2 AND id <> ?`,
		string(r.Project), r.Lane, r.ID.ULID[:])
	return err
}

// takeLane puts a job into its lane before it becomes ready. It ends only jobs of older runs: those of its own run wait for
// each other, and a newer run whose job came first is not undone by an older one that was late.
func (tx *Tx) takeLane(p *Planned) error {
	if p.Replace {
		older, err := list(&tx.View, `SELECT o.id FROM job o JOIN run w ON w.id = o.run JOIN job j ON j.id = ? JOIN run u ON u.id = j.run
			WHERE o.lane = ? AND o.lane <> '' AND o.state >= 2 AND o.state <= 4 AND w.project = u.project AND o.run_seq < j.run_seq`,
			func(job *forge.JobID) []any { return []any{id(&job.ULID)} }, p.Job.ULID[:], p.Lane)
		if err != nil {
			return err
		}
		for _, job := range older {
			if _, err := tx.Do(&authority.CancelJob{Job: job}); err != nil {
				return err
			}
		}
	}
	return tx.write(`UPDATE job SET lane = ? WHERE id = ?`, p.Lane, p.Job.ULID[:])
}
