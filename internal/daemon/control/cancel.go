package control

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// CancelRun asks for the end of a run: the request and the end of every job that nobody holds are one transaction, so
// that nothing of the run starts after it. What runs is told by its daemon within about a second. It may be repeated; a
// run that has ended stays as it is. store.ErrNotFound.
func (c *Control) CancelRun(ctx context.Context, id forge.RunID, actor string) (run store.Run, err error) {
	var held []forge.JobID
	err = c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		before, err := tx.Run(id)
		if err != nil {
			return err
		}
		if _, err := tx.RequestRunCancel(id, actor); err != nil {
			return err
		}
		if err := settleIn(tx, id); err != nil {
			return err
		}
		if run, err = tx.Run(id); err != nil || before.CancelRequested || before.State.Ended() {
			return err
		}
		if held, err = heldJobs(tx, id); err != nil {
			return err
		}
		return tx.AppendAudit(store.AuditEvent{Kind: "run.cancel", Actor: actor, Subject: id.String()})
	})
	if err == nil {
		c.cancelling(held)
	}
	return run, err
}

// heldJobs are the jobs of a run that have not ended.
func heldJobs(tx *store.Tx, run forge.RunID) (held []forge.JobID, err error) {
	jobs, err := tx.Jobs(run)
	for i := range jobs {
		if !jobs[i].State.Ended() {
			held = append(held, jobs[i].ID)
		}
	}
	return held, err
}

// CancelJob asks for the end of one job, and settles its run in the same transaction. It may be repeated; a job that has
// ended stays as it is. store.ErrNotFound.
func (c *Control) CancelJob(ctx context.Context, id forge.JobID, actor string) (job store.Job, err error) {
	err = c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		before, err := tx.Job(id)
		if err != nil {
			return err
		}
		if _, err := tx.Do(&authority.CancelJob{Job: id}); err != nil {
			return err
		}
		if err := settleIn(tx, before.Run); err != nil {
			return err
		}
		if job, err = tx.Job(id); err != nil || before.Authority.CancelRequested || before.State.Ended() {
			return err
		}
		return tx.AppendAudit(store.AuditEvent{Kind: "job.cancel", Actor: actor, Subject: id.String()})
	})
	if err == nil && !job.State.Ended() {
		c.cancelling([]forge.JobID{id})
	}
	return job, err
}
