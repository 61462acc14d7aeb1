package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Why says why a job is where it is.
type Why struct {
	Job        store.Job
	Summary    string   // one sentence
	Details    []string // more of them
	WaitingFor []string // with JobWaiting: the needs that have not ended well
	// Placement is the scheduler's view of a job that waits for a runner; nil otherwise.
	Placement *scheduler.Explanation
}

// Explain says why a job is where it is, as of now. store.ErrNotFound.
func (c *Control) Explain(ctx context.Context, id forge.JobID) (*Why, error) {
	var job store.Job
	var others []store.Job
	var attempts []store.Attempt
	var holder store.Runner
	group := ""
	err := c.store.View(ctx, func(v *store.View) (err error) {
		if job, err = v.Job(id); err != nil {
			return err
		}
		if others, err = v.Jobs(job.Run); err != nil {
			return err
		}
		if attempts, err = v.Attempts(id); err != nil {
			return err
		}
		if group, err = groupHolds(v, &job); err != nil {
			return err
		}
		if open := job.Authority.Open; !open.Runner.IsZero() {
			holder, err = v.Runner(open.Runner)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	why := &Why{Job: job, Summary: JobReason(&job)}
	for i := range attempts {
		if len(attempts) == 1 && job.State.Ended() {
			break // the summary says it
		}
		if reason := AttemptReason(&attempts[i]); reason != "" {
			why.Details = append(why.Details, fmt.Sprintf("attempt %d: %s", attempts[i].Authority.Number, reason))
		}
	}
	if group != "" {
		why.WaitingFor, why.Summary = []string{group}, "it waits for "+group
		return why, nil
	}
	switch job.State {
	case forge.JobWaiting:
		why.waiting(others)
	case forge.JobReady:
		return why, c.whyReady(ctx, why, attempts)
	case forge.JobOffered:
		why.Summary = "it is offered to runner " + holder.Name
	case forge.JobActive:
		why.active(&holder, attempts, c.Presence(holder.ID).Connected)
	case forge.JobFailed, forge.JobSucceeded, forge.JobCancelled:
		if n := len(attempts); n > 0 {
			if reason := AttemptReason(&attempts[n-1]); reason != "" {
				why.Summary = fmt.Sprintf("attempt %d of %d: %s", n, n, reason)
			}
		}
	}
	return why, nil
}

// groupHolds names what of its group a job waits for, if it waits for that.
func groupHolds(v *store.View, j *store.Job) (string, error) {
	switch j.State {
	case forge.JobWaiting:
		run, err := v.Run(j.Run)
		if err != nil {
			return "", err
		}
		ahead, err := v.Ahead(&run)
		if errors.Is(err, store.ErrNotFound) {
			return "", nil
		}
		return fmt.Sprintf("run %v, which is older in the group %s", ahead, run.Lane), err
	case forge.JobReady:
		ahead, err := v.AheadOf(j.ID)
		if errors.Is(err, store.ErrNotFound) {
			return "", nil
		}
		return fmt.Sprintf("%s of run %v, which is before it in the group %s (%v)", jobName(&ahead), ahead.Run, j.Lane, ahead.State), err
	}
	return "", nil
}

func (w *Why) waiting(others []store.Job) {
	for _, need := range w.Job.Needs {
		for i := range others {
			if o := &others[i]; o.Key == need.Job && !o.State.Ended() {
				w.WaitingFor = append(w.WaitingFor, fmt.Sprintf("%s (%v)", jobName(o), o.State))
			}
		}
	}
	if len(w.WaitingFor) > 0 {
		w.Summary = "it waits for " + strings.Join(w.WaitingFor, ", ")
	}
}

func jobName(j *store.Job) string {
	if len(j.Leg) == 0 {
		return string(j.Key)
	}
	return fmt.Sprintf("%s (%v)", j.Key, j.Leg)
}

// active says who has a job. It waits where that runner is not there: nobody else may have it before the lease is over.
func (w *Why) active(holder *store.Runner, attempts []store.Attempt, there bool) {
	if len(attempts) == 0 {
		return
	}
	a := &attempts[len(attempts)-1]
	w.Summary = fmt.Sprintf("runner %s has it: attempt %d is %v", holder.Name, a.Authority.Number, a.Authority.State)
	asked := w.Job.Authority.CancelRequested
	if asked {
		w.Summary += ", and is asked to stop"
	}
	within := (a.Lease.HardTTL + forge.ClockSlack(a.Lease.HardTTL)).Round(time.Second)
	switch {
	case !there:
		w.WaitingFor = []string{"runner " + holder.Name}
		w.Summary += fmt.Sprintf("; it is not connected, and if it does not come back the attempt is lost at most %v after its last sign of life", within)
	case asked:
		w.Details = append(w.Details, fmt.Sprintf(
			"if its runner is not heard of, it ends when its lease has run out: at most %v after the last sign of life", within))
	}
}

// whyReady asks the scheduler about a job that waits for a runner. Nothing is placed by that.
func (c *Control) whyReady(ctx context.Context, w *Why, attempts []store.Attempt) error {
	s, err := c.look(ctx)
	if err != nil {
		return err
	}
	if runner, ok := s.onItsWay[w.Job.ID]; ok {
		w.Summary = "it is about to be offered to runner " + s.name(runner)
		return nil
	}
	plan := scheduler.Place(s.Snapshot)
	e, waits := plan.Why(w.Job.ID)
	if !waits {
		w.Summary = "it is about to be offered"
		return nil
	}
	w.Placement = &e
	w.Summary = "it waits for a runner: " + e.String()
	if n := len(attempts); n > 0 && attempts[n-1].Authority.State == forge.AttemptRefused {
		w.Summary += "; it was refused last because " + RejectReason(attempts[n-1].Reject)
	}
	switch {
	case e.Ahead == 1:
		w.Details = append(w.Details, "one older job waits as well")
	case e.Ahead > 1:
		w.Details = append(w.Details, fmt.Sprintf("%d older jobs wait as well", e.Ahead))
	}
	if until, ok := s.until[w.Job.ID]; ok {
		w.Summary += "; " + failedBefore(&w.Job.Authority)
		w.Details = append(w.Details, fmt.Sprintf("%s; it is offered again in %v", failedBefore(&w.Job.Authority), until.Sub(s.now).Round(time.Second)))
	}
	return nil
}

// failedBefore is what makes a job wait before it is offered again.
func failedBefore(j *authority.Job) string {
	if j.InfraRetries > promptRetries {
		return fmt.Sprintf("%d attempts were ended by faults of machines", j.InfraRetries)
	}
	return fmt.Sprintf("%d offers came to nothing", j.FreeRetries)
}

func (s *sight) name(id forge.RunnerID) string {
	for i := range s.Runners {
		if s.Runners[i].ID == id {
			return s.Runners[i].Name
		}
	}
	return id.String()
}

// WhyRunner says why a runner gets no more jobs.
type WhyRunner struct {
	Runner    store.Runner
	Summary   string
	Details   []string
	Free      forge.Resources
	HeldFor   forge.JobID
	Jobs      []scheduler.PassedJob // every waiting job, the nearest miss first
	Connected bool
}

// ExplainRunner says why a runner gets no more jobs, as of now (07§277). store.ErrNotFound.
func (c *Control) ExplainRunner(ctx context.Context, id forge.RunnerID) (*WhyRunner, error) {
	w := &WhyRunner{}
	err := c.store.View(ctx, func(v *store.View) (err error) {
		w.Runner, err = v.Runner(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	s, err := c.lookAt(ctx, true)
	if err != nil {
		return nil, err
	}
	there := c.Presence(id)
	w.Connected = there.Connected
	e, _ := scheduler.Place(s.Snapshot).WhyRunner(id)
	w.Free, w.HeldFor, w.Jobs = e.Free, e.HeldFor, e.Jobs
	w.Summary = w.summary(there)
	if w.Runner.LastReject != 0 {
		w.Details = append(w.Details, "it last refused a job because "+RejectReason(w.Runner.LastReject))
	}
	for _, check := range w.Runner.Health.Checks {
		if check.Status > forge.Healthy {
			w.Details = append(w.Details, fmt.Sprintf("%v is %v: %s", check.Kind, check.Status, check.Detail))
		}
	}
	return w, nil
}

func (w *WhyRunner) summary(there Presence) string {
	r := &w.Runner
	switch {
	case r.Revoked:
		return "it was revoked, which is for good; enrol its machine anew"
	case r.Disabled:
		return "it is disabled; end that with: forgeyard runner enable " + r.Name
	case there.Refused != nil:
		return there.Refused.Sentence()
	case !w.Connected && r.Session.Session.IsZero():
		return "it has never connected"
	case !w.Connected:
		return "it is not connected"
	case r.Draining:
		return "it is draining; end that with: forgeyard runner resume " + r.Name
	case there.Draining:
		return "the owner of its machine drains it; end that there with: forgeyard-agent resume"
	case r.Health.Status == forge.Unhealthy:
		return "it is not healthy"
	case !w.HeldFor.IsZero():
		return "it is held for job " + w.HeldFor.String()
	case len(w.Jobs) == 0:
		return "no job waits"
	}
	if len(w.Jobs[0].Misses) == 0 {
		return "it is about to get job " + w.Jobs[0].Job.String()
	}
	texts := make([]string, len(w.Jobs[0].Misses))
	for i, m := range w.Jobs[0].Misses {
		texts[i] = m.String()
	}
	return "none of the waiting jobs fits; the nearest lacks " + strings.Join(texts, ", ")
}
