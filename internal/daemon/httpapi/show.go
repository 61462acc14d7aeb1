package httpapi

import (
	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func runOf(r *store.Run) api.Run {
	out := api.Run{
		ID: r.ID.String(), Project: string(r.Project), Name: r.Name, State: r.State.String(), Ended: r.State.Ended(), Trust: r.Trust.String(), By: r.Actor,
		Reason: control.RunReason(r), CreatedAt: api.TimeOf(r.Created), EndedAt: api.TimeOf(r.Ended),
	}
	if !r.RetryOf.IsZero() {
		out.RetryOf = r.RetryOf.String()
	}
	if out.Ended {
		code := control.RunExitCode(r.State)
		out.ExitCode = &code
	}
	return out
}

func jobOf(j *store.Job) api.Job {
	a := &j.Authority
	out := api.Job{
		ID: j.ID.String(), Run: j.Run.String(), Project: string(j.Project), Key: string(j.Key), Title: j.Title, Group: j.Lane, State: j.State.String(),
		Ended: j.State.Ended(), CancelRequested: a.CancelRequested, Allowed: j.Excused, Reason: control.JobReason(j), Attempts: a.Attempts,
		CreatedAt: api.TimeOf(j.Created), EndedAt: api.TimeOf(j.Ended),
	}
	for _, v := range j.Leg {
		out.Leg = append(out.Leg, api.AxisValue(v))
	}
	for _, n := range j.Needs {
		out.Needs = append(out.Needs, api.Need{Job: string(n.Job), Optional: n.Optional})
	}
	if a.Outcome != 0 && out.Ended {
		out.Class, out.Fault = a.Outcome.String(), fault(a.Outcome)
	}
	if !j.Spec.IsZero() {
		out.Spec = j.Spec.String()
	}
	if a.FreeRetries+a.InfraRetries+a.UserRetries > 0 {
		out.Retries = &api.Retries{Free: a.FreeRetries, Infrastructure: a.InfraRetries, User: a.UserRetries}
	}
	if !a.Open.Attempt.IsZero() {
		out.CurrentAttempt = a.Open.Attempt.String()
	}
	return out
}

// fault says whose fault an outcome is; nobody's is empty.
func fault(c forge.Class) string {
	switch c.Fault() {
	case forge.FaultUser:
		return "user"
	case forge.FaultInfrastructure:
		return "infrastructure"
	case forge.FaultCancelled:
		return "cancelled"
	}
	return ""
}

// attemptOf writes an attempt. The name of its runner is looked up; it may be gone.
func attemptOf(v *store.View, a *store.Attempt, j *store.Job, spec *forge.JobSpec) api.Attempt {
	state, l := a.Authority.State, &a.Lease
	out := api.Attempt{
		ID: a.Authority.ID.String(), Job: j.ID.String(), Run: j.Run.String(), Number: a.Authority.Number,
		State: state.String(), Ended: state.Ended(), Runner: l.Context.Runner.String(), Reason: control.AttemptReason(a),
		OfferedAt: api.TimeOf(a.Created), AcceptedAt: api.TimeOf(a.Accepted), StartedAt: api.TimeOf(a.Started), EndedAt: api.TimeOf(a.Ended),
		Lease: &api.Lease{
			ID: l.Context.Lease.String(), State: l.State.String(), Session: l.Context.Session.String(), Renewals: l.Renewals,
			HardTTL: api.Duration(l.HardTTL), MaxLifetime: api.Duration(l.MaxLifetime), ExpiresAt: api.TimeOf(a.LeaseExpires),
		},
		Log: &api.Log{
			Next: uint64(a.Log.Next), Bytes: a.Log.Bytes, Sealed: a.Log.Sealed, Closed: a.Log.Sealed && a.Result == nil && state.Ended(),
		},
	}
	if r, err := v.Runner(l.Context.Runner); err == nil {
		out.RunnerName = r.Name
	}
	if out.Ended {
		out.Class, out.Fault = a.Authority.Outcome.String(), fault(a.Authority.Outcome)
		out.Lease.ExpiresAt = nil
	}
	if spec != nil {
		out.Sandbox = spec.Sandbox.Kind.String()
	}
	if a.Result != nil {
		resultOf(&out, a, spec)
	}
	return out
}

// resultOf writes what a completion said. Exit code and signal are apart: 137 is an exit code, 9 a signal.
func resultOf(out *api.Attempt, a *store.Attempt, spec *forge.JobSpec) {
	r := a.Result
	out.ExitCode, out.Signal = howEnded(r.Class, r.ExitCode, r.Signal)
	out.Limit, out.Peak = measure(r.Class, r.Limit), measure(r.Class, r.Peak)
	duration := api.Duration(r.Duration)
	out.Duration = &duration
	for i := range r.Steps {
		out.Steps = append(out.Steps, stepOf(&r.Steps[i], spec))
	}
}

func howEnded(c forge.Class, exit, signal uint8) (code, sig *int) {
	switch c {
	case forge.Succeeded, forge.ExitCode:
		n := int(exit)
		return &n, nil
	case forge.Signal:
		n := int(signal)
		return nil, &n
	}
	return nil, nil
}

func measure(c forge.Class, n uint64) *api.Measure {
	if n == 0 {
		return nil
	}
	return &api.Measure{Value: n, Unit: control.MeasureUnit(c), Text: control.MeasureText(c, n)}
}

func stepOf(s *forge.StepResult, spec *forge.JobSpec) api.StepResult {
	duration := api.Duration(s.Duration)
	out := api.StepResult{
		Index: s.Index, Name: stepName(spec, s.Index), Class: s.Class.String(), StartedAt: api.TimeOf(s.Start), Duration: &duration,
	}
	out.ExitCode, out.Signal = howEnded(s.Class, s.ExitCode, s.Signal)
	return out
}

func stepName(spec *forge.JobSpec, index uint16) string {
	if spec == nil || int(index) >= len(spec.Steps) {
		return ""
	}
	if s := &spec.Steps[index]; s.Name != "" {
		return s.Name
	}
	return spec.Steps[index].ID
}

func explanationOf(w *control.Why) api.Explanation {
	out := api.Explanation{
		Job: w.Job.ID.String(), State: w.Job.State.String(), Summary: w.Summary, Details: w.Details, Waiting: w.WaitingFor,
	}
	p := w.Placement
	if p == nil {
		return out
	}
	out.Ahead = p.Ahead
	if !p.Held.IsZero() {
		out.Held = p.Held.String()
	}
	for _, g := range p.Groups() {
		out.Groups = append(out.Groups, api.MissGroup{Miss: missOf(g.Miss), Runners: g.Runners})
	}
	for _, r := range p.Passed {
		out.Runners = append(out.Runners, api.PassedRunner{Runner: r.Runner.String(), Name: r.Name, Misses: missesOf(r.Misses)})
	}
	return out
}

func missOf(m forge.Miss) api.Miss {
	return api.Miss{Kind: m.Kind.String(), Text: m.String(), Passes: m.Kind.Passes()}
}

func missesOf(list []forge.Miss) []api.Miss {
	var out []api.Miss
	for _, m := range list {
		out = append(out, missOf(m))
	}
	return out
}

func passedOf(list []scheduler.PassedJob) []api.PassedJob {
	var out []api.PassedJob
	for _, j := range list {
		out = append(out, api.PassedJob{Job: j.Job.String(), Misses: missesOf(j.Misses)})
	}
	return out
}
