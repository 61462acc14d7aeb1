package pipeline

import (
	"github.com/forgeyard/forgeyard/internal/forge"
)

// nameTrial stands among the values of a trial. No expression can name it.
const nameTrial = "trial"

// specReserve is what a specification takes besides its texts, with room.
const specReserve = 64 << 10

// try plans a job whose expressions all have stand-ins for values, so that what no run of it could pass is told when the file
// is read: names that are none, too many variables, too long scripts together.
func try(r *reader, f *File, j *Job) {
	n := Node{Job: j}
	if len(j.legs) > 0 {
		n.Leg = j.legs[0]
	}
	p := &Plan{file: f, facts: Facts{Event: "x", SHA: "x", Ref: "x", Branch: "x", Tag: "x"}}
	g := &Given{Project: forge.DefaultProject, Trust: forge.TrustTrusted}
	for _, need := range n.Needs() {
		g.Needs = append(g.Needs, Ended{Job: need.Job, Outcome: Succeeded})
	}
	v := p.values(n.Leg)
	v[nameTrial] = true
	p.needs(v, n, g)
	env, err := p.environment(n, v, g)
	if err != nil {
		return // nothing is evaluated, so nothing fails
	}
	s, err := p.spec(n, v, g, env)
	if err != nil {
		r.wrong(CodeValue, j.At, "", "the job %q cannot run: %v", j.Key, err)
		return
	}
	if size := textsOf(s); size > forge.MaxSpecBytes-specReserve {
		r.wrong(CodeLimit, j.At, "keep long scripts in files of the source", "the scripts and variables of the job %q have %d bytes together, more than %d", j.Key, size, forge.MaxSpecBytes-specReserve)
	}
}

// textsOf counts the bytes of the texts that may be long.
func textsOf(s *forge.JobSpec) (size int) {
	vars := func(all []forge.EnvVar) {
		for _, e := range all {
			size += len(e.Name) + len(e.Value)
		}
	}
	vars(s.Env)
	for _, step := range s.Steps {
		vars(step.Env)
		size += len(step.Script)
		for _, word := range step.Shell {
			size += len(word)
		}
	}
	for _, o := range s.Outputs {
		for _, p := range o.Patterns {
			size += len(p)
		}
	}
	return size
}

// adviseRetry names reasons for which nothing is tried again.
func adviseRetry(r *reader, j *Job) {
	if j.Retry != nil && j.Retry.Max == 0 && len(j.Retry.On) > 0 {
		r.wrong(CodeAdvice, j.At, "say how often, as in retry: { max: 1, on: … }", "the job %q names reasons to try again, and no max, so it never is", j.Key)
	}
}
