package store

import "github.com/forgeyard/forgeyard/internal/forge"

// MaxPage bounds the items of one page of a listing.
const MaxPage = 1000

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	Project forge.ProjectName
	States  []forge.RunState
	Before  uint64 // only runs with a lower sequence: the cursor of the page before
	Limit   int    // 1 to MaxPage; 0 is 50
}

// Projects lists the projects by name, those after the given one, at most limit.
func (v *View) Projects(after forge.ProjectName, limit int) ([]Project, error) {
	return nil, errUnbuilt
}

// Run returns a run, or ErrNotFound.
func (v *View) Run(id forge.RunID) (Run, error) { return Run{}, errUnbuilt }

// RunByKey returns the run that was submitted with an idempotency key, or ErrNotFound.
func (v *View) RunByKey(project forge.ProjectName, key string) (Run, error) { return Run{}, errUnbuilt }

// Runs lists runs, newest first, and the cursor of the next page, which is zero after the last.
func (v *View) Runs(f RunFilter) ([]Run, uint64, error) { return nil, 0, errUnbuilt }

// Job returns a job, or ErrNotFound.
func (v *View) Job(id forge.JobID) (Job, error) { return Job{}, errUnbuilt }

// Jobs lists the jobs of a run in the order of their submission.
func (v *View) Jobs(run forge.RunID) ([]Job, error) { return nil, errUnbuilt }

// Ready lists the jobs that wait for a runner, oldest first, at most limit. Jobs that are to be cancelled are left out.
func (v *View) Ready(limit int) ([]ReadyJob, error) { return nil, errUnbuilt }

// Spec returns the bytes of a spec, or ErrNotFound.
func (v *View) Spec(id forge.JobSpecID) ([]byte, error) { return nil, errUnbuilt }

// Attempt returns an attempt, or ErrNotFound.
func (v *View) Attempt(id forge.AttemptID) (Attempt, error) { return Attempt{}, errUnbuilt }

// Attempts lists the attempts of a job by number.
func (v *View) Attempts(job forge.JobID) ([]Attempt, error) { return nil, errUnbuilt }

// UnsealedLogs lists logs that were never sealed although their attempt ended before a time, at most limit.
func (v *View) UnsealedLogs(endedBefore forge.WallTime, limit int) ([]Attempt, error) {
	return nil, errUnbuilt
}

// CreateRun stores a submission: run and jobs in one transaction, all jobs Waiting, the run Planned and unsettled. A second
// submission with the same project and key changes nothing and returns the run of the first, with made false.
func (tx *Tx) CreateRun(n NewRun) (run Run, made bool, err error) { return Run{}, false, errUnbuilt }

// RequestRunCancel records that a run is to be cancelled, and by whom; the caller cancels its jobs by authority.CancelJob. It does
// nothing to a run that has ended and returns whether the request stands.
func (tx *Tx) RequestRunCancel(id forge.RunID, actor string) (bool, error) { return false, errUnbuilt }

// RecordUpload notes that an attempt uploaded an output, or that one it uploaded has become readable.
func (tx *Tx) RecordUpload(attempt forge.AttemptID, ref forge.OutputRef, live bool) error {
	return errUnbuilt
}
