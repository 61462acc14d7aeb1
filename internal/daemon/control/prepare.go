package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// Bounds of what is read of a job's outputs.
const (
	maxOutputFiles = 4096
	maxOutputBytes = 64 * forge.KiB
)

// prepared is what was made ready for the settlement of a run that came as a pipeline: objects are read and trees joined
// before the transaction, which then only looks whether everything is still as it was.
type prepared struct {
	states   map[forge.JobID]forge.JobState
	verdicts map[forge.JobID]verdict // of waiting jobs whose needs have ended
	allowed  map[forge.JobID]bool    // failures that count as successes
	failFast map[forge.JobKey]bool
}

// verdict is what becomes of a job: it fails, is skipped, or is planned.
type verdict struct {
	fail, skip string
	plan       store.Planned
}

// knows reports whether the jobs are in the states that everything was made ready for.
func (p *prepared) knows(jobs []store.Job) bool {
	return !slices.ContainsFunc(jobs, func(j store.Job) bool { return p.states[j.ID] != j.State })
}

func (p *prepared) allows(job forge.JobID) bool { return p != nil && p.allowed[job] }

// settleOne settles a run.
func (c *Control) settleOne(ctx context.Context, id forge.RunID) error {
	var run store.Run
	var jobs, taken []store.Job
	var from store.Origin
	plain, behind := false, false
	err := c.store.View(ctx, func(v *store.View) (err error) {
		if run, err = v.Run(id); err != nil {
			return err
		}
		if from, err = v.Origin(id); errors.Is(err, store.ErrNotFound) {
			plain = true
			return nil
		} else if err != nil {
			return err
		}
		if _, err = v.Ahead(&run); err == nil || !errors.Is(err, store.ErrNotFound) {
			behind = err == nil
			return err
		}
		if taken, err = v.Taken(id); err != nil {
			return err
		}
		jobs, err = v.Jobs(id)
		return err
	})
	switch {
	case err != nil:
		return err
	case plain:
		return c.store.Settle(ctx, id, settle)
	case behind && !run.CancelRequested:
		// Its end unsettles this one again, unless it has come since that look.
		return c.store.Settle(ctx, id, func(run store.Run, _ []store.Job) store.Settlement {
			return store.Settlement{Again: run.Behind.IsZero()}
		})
	}
	p, err := c.prepare(ctx, &run, jobs, taken, &from)
	if err != nil {
		return err
	}
	return c.store.Settle(ctx, id, func(run store.Run, jobs []store.Job) store.Settlement { return settleBy(run, jobs, p) })
}

// settleIn settles a run within the transaction of another change. One that came as a pipeline is only stopped there, if that was
// asked for: what else follows is decided by the next round, which may read objects.
func settleIn(tx *store.Tx, id forge.RunID) error {
	_, err := tx.Origin(id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tx.Settle(id, settle)
	case err != nil:
		return err
	}
	return tx.Settle(id, stopOnly)
}

// stopOnly asks for the end of every job of a run that is cancelled, and leaves all else to the next round.
func stopOnly(run store.Run, jobs []store.Job) (s store.Settlement) {
	s.Again = !run.State.Ended()
	for i := range jobs {
		if j := &jobs[i]; run.CancelRequested && !j.State.Ended() && !j.Authority.CancelRequested {
			s.Cancel = append(s.Cancel, j.ID)
		}
	}
	return s
}

// desk is the preparation of one run.
type desk struct {
	*planned
	c      *Control
	ctx    context.Context //nolint:containedctx // it lives for one call
	run    *store.Run
	byKey  map[forge.JobKey][]*store.Job
	out    *prepared
	ended  map[forge.JobKey]*pipeline.Ended
	result map[forge.JobID]*kept
	// unusable are jobs that have written outputs which nobody can read.
	unusable map[forge.JobKey]error
}

// kept is what the last attempt of a job has left.
type kept struct {
	exit    uint8
	outputs map[string]forge.TreeRef // by the name of the output
	gone    map[string]error         // outputs that are lost or damaged, likewise
}

// unplannable is for a run whose plan cannot be made any more, as after an upgrade that reads files more strictly: what has not
// begun fails and says why, and what runs goes on to its end.
func unplannable(jobs []store.Job, why error) *prepared {
	p := &prepared{states: map[forge.JobID]forge.JobState{}, verdicts: map[forge.JobID]verdict{}}
	for i := range jobs {
		p.states[jobs[i].ID] = jobs[i].State
		p.verdicts[jobs[i].ID] = verdict{fail: "it cannot be planned: " + why.Error()}
	}
	return p
}

// prepare decides about every waiting job whose needs have ended, and of a run that is cancelled only which failures count. What
// was taken over from earlier runs counts as if it had ended in this one.
func (c *Control) prepare(ctx context.Context, run *store.Run, jobs, taken []store.Job, from *store.Origin) (*prepared, error) {
	plan, err := c.planOf(run, from)
	if err != nil {
		c.log.Error("a run cannot be planned any more", "run", run.ID, "err", err)
		return unplannable(jobs, err), nil
	}
	d := &desk{
		planned: plan, c: c, ctx: ctx, run: run, byKey: map[forge.JobKey][]*store.Job{},
		ended: map[forge.JobKey]*pipeline.Ended{}, result: map[forge.JobID]*kept{}, unusable: map[forge.JobKey]error{},
		out: &prepared{
			states: map[forge.JobID]forge.JobState{}, verdicts: map[forge.JobID]verdict{}, allowed: map[forge.JobID]bool{}, failFast: map[forge.JobKey]bool{},
		},
	}
	for i := range taken {
		j := &taken[i]
		d.byKey[j.Key] = append(d.byKey[j.Key], j)
		if err := d.allow(j, d.node(j)); err != nil {
			return nil, err
		}
	}
	for i := range jobs {
		j := &jobs[i]
		d.byKey[j.Key] = append(d.byKey[j.Key], j)
		d.out.states[j.ID] = j.State
		n := d.node(j)
		d.out.failFast[j.Key] = n.Job.Matrix != nil && n.Job.Matrix.FailFast
		if err := d.allow(j, n); err != nil {
			return nil, err
		}
	}
	if run.CancelRequested {
		return d.out, nil
	}
	for i := range jobs {
		if err := d.keepCaches(&jobs[i]); err != nil {
			return nil, err
		}
	}
	for i := range jobs {
		if j := &jobs[i]; j.State == forge.JobWaiting && d.ready(j) {
			if err := d.decide(j); err != nil {
				return nil, err
			}
		}
	}
	return d.out, nil
}

func (d *desk) node(j *store.Job) pipeline.Node { return d.nodes[nodeName(j.Key, j.Leg)] }

// allow notes whether the failure of a job counts as a success.
func (d *desk) allow(j *store.Job, n pipeline.Node) error {
	if j.State != forge.JobFailed {
		return nil
	}
	k, err := d.left(j)
	if err != nil {
		return err
	}
	d.out.allowed[j.ID] = n.Job.Allows(j.Authority.Outcome, k.exit)
	return nil
}

// ready reports whether everything that a job needs has ended.
func (d *desk) ready(j *store.Job) bool {
	return !slices.ContainsFunc(j.Needs, func(n forge.JobNeed) bool {
		return slices.ContainsFunc(d.byKey[n.Job], func(leg *store.Job) bool { return !leg.State.Ended() })
	})
}

// decide makes the verdict about a job whose needs have ended.
func (d *desk) decide(j *store.Job) error {
	n := d.node(j)
	g, err := d.given(n)
	if lost(err) {
		d.out.verdicts[j.ID] = verdict{fail: "it cannot be planned: " + err.Error()}
		return nil
	}
	if err != nil {
		return err
	}
	var v verdict
	decision, err := d.plan.Job(n, g)
	broken := d.broken(n)
	switch {
	case err == nil && decision.Skip != "":
		v.skip = decision.Skip
	case broken != nil:
		v.fail = "it cannot be planned: " + broken.Error()
	case err != nil:
		v.fail = "it cannot be planned: " + err.Error()
	default:
		v = d.verdict(j, n, decision.Spec)
	}
	d.out.verdicts[j.ID] = v
	return nil
}

// broken says why a needed job has no outputs that can be used, where its author has declared some. Nobody can tell whether a script
// reads them, so it is told before it runs with something else; but what is to run whatever came before it does run.
func (d *desk) broken(n pipeline.Node) error {
	if n.DecidesAlone() {
		return nil
	}
	for _, need := range n.Needs() {
		if err := d.unusable[need.Job]; err != nil {
			return err
		}
	}
	return nil
}

// lost reports whether an error says that objects are gone or damaged, which no waiting mends.
func lost(err error) bool {
	var corrupt *cas.CorruptError
	var wrong *cas.TreeError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt) || errors.As(err, &wrong)
}

// verdict encodes the specification of a job.
func (d *desk) verdict(j *store.Job, n pipeline.Node, spec *forge.JobSpec) verdict {
	d.c.fill(d.ctx, d.project, d.run.Trust, spec)
	bytes, err := jobspec.Encode(*spec)
	if err != nil {
		return verdict{fail: "it cannot be planned: " + err.Error()}
	}
	if len(bytes) > MaxInlineSpec {
		return verdict{fail: fmt.Sprintf("its specification has %d bytes, more than the %d that can travel today; put long scripts into files of the source", len(bytes), MaxInlineSpec)}
	}
	lane, replace, err := d.plan.GroupOf(n)
	if err == nil {
		err = laneFits(lane)
	}
	if err != nil {
		return verdict{fail: "its concurrency group: " + err.Error()}
	}
	terms := d.c.terms(spec)
	return verdict{plan: store.Planned{
		Plan: authority.Plan{Job: j.ID, Spec: jobspec.ID(bytes)}, Bytes: bytes, Terms: &terms, Lane: lane, Replace: replace,
	}}
}

// texts gathers what a job is planned from, but for the files of the jobs that it needs.
func (d *desk) texts(n pipeline.Node) (*pipeline.Given, error) {
	g := &pipeline.Given{
		Project: d.project, Trust: d.run.Trust, Source: d.Source, WithGit: d.WithGit, Sandbox: d.Sandbox, Hashes: d.Hashes,
		Connectivity: d.c.Connectivity(),
	}
	for _, need := range n.Needs() {
		ended, err := d.how(need.Job)
		if err != nil {
			return nil, err
		}
		g.Needs = append(g.Needs, *ended)
	}
	return g, nil
}

// given gathers all that a job is planned from.
func (d *desk) given(n pipeline.Node) (*pipeline.Given, error) {
	g, err := d.texts(n)
	if err != nil {
		return nil, err
	}
	var parts []cas.Part
	for _, need := range n.Needs() {
		if parts, err = d.artifacts(parts, need.Job); err != nil {
			return nil, err
		}
	}
	if len(parts) > 0 {
		joined, err := cas.Join(d.ctx, d.c.stored(d.project), parts...)
		if err != nil {
			return nil, fmt.Errorf("put together what %s needs: %w", n.Job.Key, err)
		}
		g.Kept = &joined
	}
	return g, nil
}

// how says how a job has ended, all legs of it. It goes as deep as the graph, which has no circles.
func (d *desk) how(key forge.JobKey) (*pipeline.Ended, error) {
	if e := d.ended[key]; e != nil {
		return e, nil
	}
	e := &pipeline.Ended{Job: key, Outcome: pipeline.Skipped}
	legs := d.byKey[key]
	for _, leg := range legs {
		switch {
		case leg.State == forge.JobSucceeded || d.out.allowed[leg.ID]:
			if e.Outcome == pipeline.Skipped {
				e.Outcome = pipeline.Succeeded
			}
		case leg.State == forge.JobFailed:
			e.Outcome = pipeline.Failed
		case leg.State == forge.JobCancelled && e.Outcome != pipeline.Failed:
			e.Outcome = pipeline.Cancelled
		}
	}
	d.ended[key] = e
	if len(legs) == 0 {
		return e, nil
	}
	n := d.node(legs[0])
	for _, need := range n.Needs() {
		above, err := d.how(need.Job)
		if err != nil {
			return nil, err
		}
		e.Above = e.Above || above.Above || above.Outcome == pipeline.Failed
	}
	if len(legs) > 1 || len(n.Job.Outputs) == 0 {
		return e, nil
	}
	var err error
	e.Outputs, err = d.outputs(legs[0], n)
	return e, err
}

// outputs are the texts that a job gives to those that need it. One that did not succeed gives empty ones.
func (d *desk) outputs(j *store.Job, n pipeline.Node) ([]forge.EnvVar, error) {
	none := make([]forge.EnvVar, 0, len(n.Job.Outputs))
	for _, o := range n.Job.Outputs {
		none = append(none, forge.EnvVar{Name: o.Name})
	}
	if j.State != forge.JobSucceeded && !d.out.allowed[j.ID] {
		return none, nil
	}
	g, err := d.texts(n)
	if err != nil {
		return nil, err
	}
	files, err := d.written(j)
	if err != nil && !lost(err) {
		return nil, err
	}
	var steps map[string]map[string]string
	if err == nil {
		steps, err = n.StepValues(files)
	}
	if err != nil {
		d.c.log.Warn("outputs of a job cannot be used", "job", j.ID, "err", err)
		d.unusable[j.Key] = fmt.Errorf("the outputs of %s, which it needs, cannot be read: %w", j.Key, err)
		return nil, nil
	}
	all, err := d.plan.Outputs(n, g, steps)
	if err != nil {
		d.c.log.Info("a job has not written all of its outputs", "job", j.ID, "err", err)
	}
	return all, nil // whoever reads one that was not written has no value, and says so
}

// written reads what the steps of a job have written for its outputs.
func (d *desk) written(j *store.Job) (map[string][]byte, error) {
	k, err := d.left(j)
	if err != nil {
		return nil, err
	}
	if err := k.gone[pipeline.StepOutputs]; err != nil {
		return nil, err
	}
	t, ok := k.outputs[pipeline.StepOutputs]
	if !ok {
		return nil, nil
	}
	files, err := cas.ReadTree(d.ctx, d.c.stored(d.project), t, maxOutputFiles, maxOutputBytes)
	if err != nil {
		return nil, fmt.Errorf("the outputs of %s: %w", j.Key, err)
	}
	return files, nil
}

// artifacts adds what a needed job has kept.
func (d *desk) artifacts(parts []cas.Part, key forge.JobKey) ([]cas.Part, error) {
	for _, j := range d.byKey[key] {
		k, err := d.left(j)
		if err != nil {
			return nil, err
		}
		n := d.node(j)
		for _, a := range n.Job.Artifacts {
			if err := k.gone[a.Name.Value]; err != nil {
				return nil, err
			}
			if t, ok := k.outputs[a.Name.Value]; ok {
				parts = append(parts, cas.Part{Path: pipeline.KeptAt(n, a.Name.Value), Tree: t})
			}
		}
	}
	return parts, nil
}

// left reads what the last attempt of a job has left, if its result was accepted.
func (d *desk) left(j *store.Job) (*kept, error) {
	if k := d.result[j.ID]; k != nil {
		return k, nil
	}
	k := &kept{outputs: map[string]forge.TreeRef{}, gone: map[string]error{}}
	var outputs []forge.OutputRef
	var spec forge.JobSpec
	err := d.c.store.View(d.ctx, func(v *store.View) error {
		attempts, err := v.Attempts(j.ID)
		if err != nil || len(attempts) == 0 {
			return err
		}
		last := &attempts[len(attempts)-1]
		if last.Result == nil {
			return nil
		}
		k.exit, outputs = last.Result.ExitCode, last.Outputs
		bytes, err := v.Spec(j.Spec)
		if err != nil {
			return err
		}
		spec, err = jobspec.Open(j.Spec, bytes)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		if !o.Tree || int(o.Output) >= len(spec.Outputs) {
			continue
		}
		name := spec.Outputs[o.Output].Name
		t, err := cas.Tree(d.ctx, d.c.stored(d.project), o.Ref)
		if err != nil {
			err = fmt.Errorf("what %s has kept as %s: %w", j.Key, name, err)
		}
		switch {
		case err == nil:
			k.outputs[name] = t
		case lost(err):
			k.gone[name] = err // it concerns those that need it
		default:
			return nil, err
		}
	}
	d.result[j.ID] = k
	return k, nil
}
