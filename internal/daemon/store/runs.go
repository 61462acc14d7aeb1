package store

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxPage bounds the items of one page of a listing.
const MaxPage = 1000

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	Project forge.ProjectName
	States  []forge.RunState
	Before  uint64 // only runs with a lower sequence: the cursor of the page before
	Limit   int    // 1 to MaxPage; 0 is 50
}

const runColumns = `u.id, u.seq, u.project, u.state, u.trust, u.name, u.idem, u.actor, u.cancel_requested, u.cancel_actor, u.created_at,
	u.started_at, u.ended_at, u.lane, u.retry_of`

func runInto(r *Run) []any {
	return []any{
		id(&r.ID.ULID), num(&r.Sequence), &r.Project, num(&r.State), num(&r.Trust), &r.Name, &r.Key, &r.Actor,
		flag{&r.CancelRequested},
		&r.CancelActor, num(&r.Created), num(&r.Started), num(&r.Ended), &r.Lane, id(&r.RetryOf.ULID),
	}
}

// Projects lists the projects by name, those after the given one, at most limit.
func (v *View) Projects(after forge.ProjectName, limit int) ([]Project, error) {
	return list(v, `SELECT name, created_at FROM project WHERE name > ? ORDER BY name LIMIT ?`,
		func(p *Project) []any { return []any{&p.Name, num(&p.Created)} }, string(after), page(limit))
}

// Run returns a run, or ErrNotFound.
func (v *View) Run(run forge.RunID) (Run, error) {
	return one(v, `SELECT `+runColumns+` FROM run u WHERE u.id = ?`, runInto, run.ULID[:])
}

// RunByKey returns the run that was submitted with an idempotency key, or ErrNotFound.
func (v *View) RunByKey(project forge.ProjectName, key string) (Run, error) {
	if key == "" {
		return Run{}, ErrNotFound
	}
	return one(v, `SELECT `+runColumns+` FROM run u WHERE u.project = ? AND u.idem = ? AND u.idem <> ''`, runInto, string(project), key)
}

// Runs lists runs, newest first, and the cursor of the next page, which is zero after the last.
func (v *View) Runs(f RunFilter) ([]Run, uint64, error) {
	text, args := f.query()
	runs, err := list(v, text, runInto, args...)
	if err != nil || int64(len(runs)) < page(f.Limit) {
		return runs, 0, err
	}
	return runs, runs[len(runs)-1].Sequence, nil
}

// query builds the statement of a filter. There are few different ones: a state is a flag in a fixed list.
func (f *RunFilter) query() (string, []any) {
	var where strings.Builder
	var args []any
	and := func(condition string, values ...any) {
		where.WriteString(" AND " + condition)
		args = append(args, values...)
	}
	if f.Project != "" {
		and("u.project = ?", string(f.Project))
	}
	if f.Before > 0 {
		and("u.seq < ?", toInt(f.Before))
	}
	if len(f.States) > 0 {
		// As many places as there are states, whatever was asked for: one statement for all.
		places := make([]any, forge.RunError)
		for i := range places {
			places[i] = toInt(f.States[min(i, len(f.States)-1)])
		}
		and("u.state IN ("+marksOf("?", len(places))+")", places...)
	}
	return `SELECT ` + runColumns + ` FROM run u WHERE 1 = 1` + where.String() + ` ORDER BY u.seq DESC LIMIT ?`, append(args, page(f.Limit))
}

const jobMoreColumns = `j.run, j.run_seq, j.position, j.key, j.leg, j.needs, j.draft, j.created_at, j.reason, j.title, j.lane, j.excused, u.project, u.trust`

func jobRecordInto(j *Job) []any {
	into := append(jobInto(&j.Authority), num(&j.Ready), num(&j.Started), num(&j.Ended), num(&j.Changed))
	return append(into,
		id(&j.Run.ULID), num(&j.Sequence), num(&j.Position), &j.Key, doc(&j.Leg), doc(&j.Needs), specID(&j.Draft), num(&j.Created),
		&j.Reason, &j.Title, &j.Lane, &j.Excused, &j.Project, num(&j.Trust))
}

const jobSelect = `SELECT ` + jobColumns + `, ` + stampColumns + `, ` + jobMoreColumns + ` FROM job j JOIN run u ON u.id = j.run `

// complete fills in what a record says twice.
func (j *Job) complete() {
	fillOpen(&j.Authority)
	j.ID, j.State, j.Spec = j.Authority.ID, j.Authority.State, j.Authority.Spec
}

// Job returns a job, or ErrNotFound.
func (v *View) Job(job forge.JobID) (Job, error) {
	j, err := one(v, jobSelect+`WHERE j.id = ?`, jobRecordInto, job.ULID[:])
	j.complete()
	return j, err
}

// Jobs lists the jobs of a run in the order of their submission.
func (v *View) Jobs(run forge.RunID) ([]Job, error) {
	jobs, err := list(v, jobSelect+`WHERE j.run = ? ORDER BY j.position`, jobRecordInto, run.ULID[:])
	for i := range jobs {
		jobs[i].complete()
	}
	return jobs, err
}

// JobCounts counts the jobs of a run by their state.
func (v *View) JobCounts(run forge.RunID) (map[forge.JobState]int, error) {
	type counted struct {
		state forge.JobState
		n     int
	}
	rows, err := list(v, `SELECT state, COUNT(*) FROM job WHERE run = ? GROUP BY state`,
		func(c *counted) []any { return []any{num(&c.state), num(&c.n)} }, run.ULID[:])
	counts := make(map[forge.JobState]int, len(rows))
	for _, c := range rows {
		counts[c.state] = c.n
	}
	return counts, err
}

// Ready lists the jobs that wait for a runner, oldest first, at most limit. Jobs that are to be cancelled are left out, and
// those that wait for another of their lane: one that somebody has, or an older one.
func (v *View) Ready(limit int) ([]ReadyJob, error) {
	jobs, err := list(v, `SELECT j.id, j.run, u.project, u.trust, j.run_seq, j.spec, j.free_retries, j.infra_retries, j.changed_at
		FROM job j JOIN run u ON u.id = j.run WHERE j.state = 2 AND j.cancel_requested = 0
		AND (j.lane = '' OR NOT EXISTS (SELECT 1 FROM job o JOIN run w ON w.id = o.run
			WHERE `+laneHolds+`))
		ORDER BY j.run_seq, j.position LIMIT ?`, func(j *ReadyJob) []any {
		return []any{
			id(&j.ID.ULID), id(&j.Run.ULID), &j.Project, num(&j.Trust), num(&j.Sequence), specID(&j.Spec), num(&j.FreeRetries),
			num(&j.InfraRetries), num(&j.Changed),
		}
	}, int64(limit))
	if err != nil {
		return nil, err
	}
	return jobs, v.fillRefused(jobs)
}

// fillRefused adds the runners that refused the jobs. Most jobs were refused by nobody, and those have no free retry.
func (v *View) fillRefused(jobs []ReadyJob) error {
	for i := range jobs {
		j := &jobs[i]
		if j.FreeRetries == 0 {
			continue
		}
		err := v.query(`SELECT DISTINCT runner FROM lease WHERE job = ? AND state = 4 ORDER BY runner`, []any{j.ID.ULID[:]},
			func(r *sql.Rows) error {
				var runner forge.RunnerID
				if err := r.Scan(id(&runner.ULID)); err != nil {
					return err
				}
				j.Refused = append(j.Refused, runner)
				return nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// Spec returns the bytes of a spec, or ErrNotFound.
func (v *View) Spec(spec forge.JobSpecID) ([]byte, error) {
	return one(v, `SELECT bytes FROM spec WHERE id = ?`, func(b *[]byte) []any { return []any{b} }, spec[:])
}

// CreateRun stores a submission: run and jobs in one transaction, all jobs Waiting, the run Planned and unsettled. A second
// submission with the same project and key changes nothing and returns the run of the first, with made false.
func (tx *Tx) CreateRun(n NewRun) (run Run, made bool, err error) {
	if run, err := tx.RunByKey(n.Project, n.Key); err == nil {
		return run, false, nil
	} else if !isNotFound(err) {
		return Run{}, false, err
	}
	if err := tx.checkJobs(&n); err != nil {
		return Run{}, false, err
	}
	seq, err := tx.next("run")
	if err != nil {
		return Run{}, false, err
	}
	if err := tx.createProject(n.Project); err != nil {
		return Run{}, false, err
	}
	run = Run{
		Run:      forge.Run{ID: n.ID, Project: n.Project, State: forge.RunPlanned, Trust: n.Trust, Created: tx.now},
		Sequence: seq, Name: n.Name, Key: n.Key, Actor: n.Actor, Lane: n.Lane, RetryOf: n.RetryOf,
	}
	if err := tx.write(`INSERT INTO run (id, seq, project, state, trust, name, idem, actor, cancel_requested, cancel_actor, created_at,
		started_at, ended_at, unsettled, lane, retry_of) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, '', ?, 0, 0, 1, ?, ?)`, n.ID.ULID[:], toInt(seq),
		string(n.Project), toInt(run.State), toInt(n.Trust), n.Name, n.Key, n.Actor, toInt(tx.now), n.Lane, n.RetryOf.ULID[:]); err != nil {
		return Run{}, false, err
	}
	tx.changes.run(n.ID)
	if err := tx.putOrigin(&n); err != nil {
		return Run{}, false, err
	}
	if err := tx.putTaken(&n); err != nil {
		return Run{}, false, err
	}
	if n.Replace {
		if err := tx.replaceRuns(&run); err != nil {
			return Run{}, false, err
		}
	}
	for i := range n.Jobs {
		if err := tx.createJob(&run, i, &n.Jobs[i]); err != nil {
			return Run{}, false, fmt.Errorf("job %q: %w", n.Jobs[i].Key, err)
		}
	}
	return run, true, nil
}

// checkJobs refuses a graph that no settling could ever end.
func (tx *Tx) checkJobs(n *NewRun) error {
	jobs := make([]forge.Job, len(n.Jobs))
	for i, j := range n.Jobs {
		jobs[i] = forge.Job{ID: j.ID, Run: n.ID, Key: j.Key, Leg: j.Leg, Needs: j.Needs, State: forge.JobWaiting}
	}
	return forge.ValidateGraph(jobs)
}

func (tx *Tx) createProject(name forge.ProjectName) error {
	_, err := tx.exec(`INSERT INTO project (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, string(name), toInt(tx.now))
	return err
}

func (tx *Tx) createJob(run *Run, position int, n *NewJob) error {
	if err := tx.putSpec(n.Draft, n.Bytes); err != nil {
		return err
	}
	return tx.write(`INSERT INTO job (id, run, run_seq, position, key, leg, needs, draft, state, cancel_requested, spec, hard_ttl,
		max_lifetime, retry, attempts, free_retries, infra_retries, user_retries, outcome, open_attempt, open_lease, open_runner,
		open_session, created_at, ready_at, started_at, ended_at, changed_at, reason, title)
		VALUES (`+marksOf("?", 9)+`, 0, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?, 0, 0, 0, ?, '', ?)`,
		n.ID.ULID[:], run.ID.ULID[:], toInt(run.Sequence), int64(position), string(n.Key), toText(n.Leg), toText(n.Needs),
		n.Draft[:], toInt(forge.JobWaiting), noDigest, toInt(n.Terms.HardTTL), toInt(n.Terms.MaxLifetime), toText(n.Terms.Retry),
		noID, noID, noID, noID, toInt(tx.now), toInt(tx.now), n.Title)
}

// putSpec stores the bytes of a spec, once for each id. That they are the id's is the caller's word.
func (tx *Tx) putSpec(spec forge.JobSpecID, b []byte) error {
	if spec.IsZero() || len(b) == 0 {
		return nil
	}
	_, err := tx.exec(`INSERT INTO spec (id, bytes) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, spec[:], b)
	return err
}

// RequestRunCancel records that a run is to be cancelled, and by whom first; the caller cancels its jobs by
// authority.CancelJob. It reports false for a run that has ended, which it leaves as it is. ErrNotFound.
func (tx *Tx) RequestRunCancel(run forge.RunID, actor string) (bool, error) {
	r, err := tx.Run(run)
	switch {
	case err != nil:
		return false, err
	case r.State.Ended():
		return false, nil
	case r.CancelRequested:
		return true, nil
	}
	tx.changes.run(run)
	return true, tx.write(`UPDATE run SET cancel_requested = 1, cancel_actor = ?, unsettled = 1 WHERE id = ?`, actor, run.ULID[:])
}
