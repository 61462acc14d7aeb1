package store

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Taken lists the jobs of earlier runs whose results count in a run that tries again what they have left undone. They have
// ended, and stay as they are.
func (v *View) Taken(run forge.RunID) ([]Job, error) {
	jobs, err := list(v, jobSelect+`JOIN taken t ON t.job = j.id WHERE t.run = ? ORDER BY t.position`, jobRecordInto, run.ULID[:])
	for i := range jobs {
		jobs[i].complete()
	}
	return jobs, err
}

// putTaken notes the jobs whose results count in a new run. Each has to have ended in a run of the same project.
func (tx *Tx) putTaken(n *NewRun) error {
	for i, taken := range n.Taken {
		job, err := tx.Job(taken)
		if err != nil {
			return fmt.Errorf("take over job %v: %w", taken, err)
		}
		if job.Project != n.Project || !job.State.Ended() {
			return fmt.Errorf("take over job %v: it is %v in project %s", taken, job.State, job.Project)
		}
		if err := tx.write(`INSERT INTO taken (run, position, job) VALUES (?, ?, ?)`, n.ID.ULID[:], int64(i), taken.ULID[:]); err != nil {
			return err
		}
	}
	return nil
}
