package control

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// settle decides what happens next in a run, from nothing but its rows (D03):
//
//   - A cancelled run asks every job that has not ended to stop.
//   - A waiting job whose needs have all ended well is planned; one of whose needs has ended otherwise is skipped, and so
//     are those that wait for it. Optional means that a skipped need does as well.
//   - A failure that the plan allows is excused, which is kept with the job.
//   - A run starts with its first job and ends with its last: Failed if a job failed by its own fault, else Cancelled if
//     one was cancelled, else Error if one failed by ours, else Succeeded.
//
// It is pure, and settling again what it has settled changes nothing.
func settle(run store.Run, jobs []store.Job) store.Settlement { return settleBy(run, jobs, nil) }

// settleBy is settle with what was made ready for a run that came as a pipeline: there it is the plan that says which job
// runs, which is skipped, and which failures count. It may not know of everything, and then leaves the rest for the next time.
func settleBy(run store.Run, jobs []store.Job, by *prepared) store.Settlement {
	s := settlement{cancel: run.CancelRequested, legs: map[forge.JobKey][]*settled{}, by: by}
	if run.State.Ended() {
		return s.out
	}
	if by != nil && !s.cancel && !by.knows(jobs) {
		s.out.Again = true
		return s.out
	}
	all := make([]*settled, len(jobs))
	for i := range jobs {
		j := &settled{Job: &jobs[i], after: jobs[i].State, allowed: by.allows(jobs[i].ID)}
		all[i] = j
		s.legs[j.Key] = append(s.legs[j.Key], j)
		if j.allowed && j.State == forge.JobFailed && !j.Excused {
			s.out.Excuse = append(s.out.Excuse, j.ID)
		}
	}
	for _, j := range all {
		s.decide(j)
	}
	s.failFast(all)
	s.out.Run = advance(run.State, all)
	return s.out
}

// failFast stops the other legs of a job of which one has failed, where its plan says so.
func (s *settlement) failFast(all []*settled) {
	if s.by == nil {
		return
	}
	for _, j := range all {
		if j.after != forge.JobFailed || j.allowed || !s.by.failFast[j.Key] {
			continue
		}
		for _, leg := range s.legs[j.Key] {
			if !leg.after.Ended() {
				s.stop(leg)
			}
		}
	}
}

// settlement is a decision on its way.
type settlement struct {
	cancel bool
	by     *prepared // nil: the jobs came with their specs
	legs   map[forge.JobKey][]*settled
	out    store.Settlement
}

// settled is a job and the state in which the settlement leaves it.
type settled struct {
	*store.Job
	decided bool
	after   forge.JobState
	allowed bool // its failure counts as a success
}

// decide says what becomes of a job. It looks at the needs first, and at theirs: as deep as the graph, which has no
// circles and at most forge.MaxJobsPerRun jobs (Submit checks both).
func (s *settlement) decide(j *settled) {
	if j.decided {
		return
	}
	j.decided = true
	if s.cancel {
		s.stop(j)
		return
	}
	if j.State != forge.JobWaiting {
		return
	}
	if s.by != nil {
		s.planned(j)
		return
	}
	ready := true
	for _, need := range j.Needs {
		how, well := s.ended(need)
		if how != "" {
			j.after = forge.JobSkipped
			s.out.Skip = append(s.out.Skip, store.Skip{Job: j.ID, Reason: fmt.Sprintf("%s, which it needs, %s", need.Job, how)})
			return
		}
		ready = ready && well
	}
	if ready {
		j.after = forge.JobReady
		s.out.Plan = append(s.out.Plan, store.Planned{Plan: authority.Plan{Job: j.ID, Spec: j.Draft}})
	}
}

// planned carries out what was decided about a job of a pipeline, if anything was.
func (s *settlement) planned(j *settled) {
	v, ok := s.by.verdicts[j.ID]
	switch {
	case !ok:
	case v.fail != "":
		j.after, j.Authority.Outcome = forge.JobFailed, forge.Unplanned
		s.out.Fail = append(s.out.Fail, store.Skip{Job: j.ID, Reason: v.fail})
	case v.skip != "":
		j.after = forge.JobSkipped
		s.out.Skip = append(s.out.Skip, store.Skip{Job: j.ID, Reason: v.skip})
	default:
		j.after = forge.JobReady
		s.out.Plan = append(s.out.Plan, v.plan)
	}
}

// stop asks for the end of a job. One that nobody holds ends at once.
func (s *settlement) stop(j *settled) {
	if j.State.Ended() || j.Authority.CancelRequested {
		return
	}
	s.out.Cancel = append(s.out.Cancel, j.ID)
	if j.State == forge.JobWaiting || j.State == forge.JobReady {
		j.after = forge.JobCancelled
	}
}

// ended reports whether all legs of a need have ended well, or how one has ended otherwise. A need that is nowhere cannot
// be, since Submit refuses it; it has ended, so that nothing waits for it for ever.
func (s *settlement) ended(need forge.JobNeed) (otherwise string, well bool) {
	well = true
	for _, leg := range s.legs[need.Job] {
		s.decide(leg)
		switch {
		case leg.after == forge.JobFailed:
			return "failed", false
		case leg.after == forge.JobCancelled:
			return "was cancelled", false
		case leg.after == forge.JobSkipped && !need.Optional:
			return "was skipped", false
		case !leg.after.Ended():
			well = false
		}
	}
	return "", well
}

// advance moves a run on, given the states of its jobs.
func advance(from forge.RunState, jobs []*settled) []lifecycle.Event {
	var events []lifecycle.Event
	var started, open, failed, cancelled, ours bool
	for _, j := range jobs {
		switch j.after {
		case forge.JobActive:
			started, open = true, true
		case forge.JobSucceeded:
			started = true
		case forge.JobFailed:
			started = true
			if j.allowed {
				continue
			}
			byUs := j.Authority.Outcome.Fault() == forge.FaultInfrastructure
			ours, failed = ours || byUs, failed || !byUs
		case forge.JobCancelled:
			cancelled = true
		case forge.JobSkipped:
		default:
			open = true
		}
	}
	if started && from == forge.RunPlanned {
		events = append(events, lifecycle.RunStart)
	}
	switch {
	case open:
		return events
	case failed:
		return append(events, lifecycle.RunFail)
	case cancelled:
		return append(events, lifecycle.RunCancel)
	case ours:
		return append(events, lifecycle.RunAbort)
	default:
		return append(events, lifecycle.RunSucceed)
	}
}
