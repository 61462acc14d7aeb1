package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/spelling"
)

// EventManual is the event of a run that somebody asks for.
const EventManual = "manual"

// Facts are what is known of a run when it is submitted.
type Facts struct {
	Event  string // EventManual, push, …
	SHA    string // of the commit; empty where there is none
	Ref    string // refs/heads/main
	Branch string
	Tag    string // the first that names the commit
	Dirty  bool   // the source is another than the commit's
}

// Environment is what jobs see of it. A variable is empty where there is nothing for it: bash -u takes offence at what is not set.
func (f Facts) Environment() []forge.EnvVar {
	return []forge.EnvVar{
		{Name: "GIT_SHA", Value: f.SHA},
		{Name: "GIT_REF", Value: f.Ref},
		{Name: "GIT_BRANCH", Value: f.Branch},
		{Name: "GIT_TAG", Value: f.Tag},
		{Name: "GIT_EVENT", Value: f.Event},
	}
}

// A Plan is the jobs of one run.
type Plan struct {
	Nodes []Node

	file  *File
	facts Facts
}

// Node is one job of a plan: one leg of one job of the file.
type Node struct {
	Job *Job
	Leg forge.Leg
}

// Needs are those of the node, in the order of the file.
func (n Node) Needs() []forge.JobNeed {
	needs := make([]forge.JobNeed, 0, len(n.Job.Needs))
	for _, need := range n.Job.Needs {
		needs = append(needs, forge.JobNeed{Job: forge.JobKey(need.Job.Value), Optional: need.Optional})
	}
	return needs
}

// UnknownJobError says that a job was asked for that is not there.
type UnknownJobError struct {
	Key   string
	Known []string
}

func (e *UnknownJobError) Error() string {
	text := fmt.Sprintf("the pipeline has no job %q", clip(e.Key))
	if best := spelling.Nearest(e.Key, e.Known); best != "" {
		return text + fmt.Sprintf("; did you mean %q?", best)
	}
	return text + "; it has " + strings.Join(e.Known, ", ")
}

// Expand lists the jobs of a run, in the order of the file: all of them, or those that are wanted and whatever these need.
// Its error is *UnknownJobError.
func (f *File) Expand(facts Facts, wanted []string) (*Plan, error) {
	chosen := map[forge.JobKey]bool{}
	known := make([]string, 0, len(f.Jobs))
	byKey := map[forge.JobKey]*Job{}
	for _, j := range f.Jobs {
		known = append(known, string(j.Key))
		byKey[j.Key] = j
		chosen[j.Key] = len(wanted) == 0
	}
	queue := slices.Clone(wanted)
	for i := 0; i < len(queue); i++ { // each job enters once, so it ends
		j := byKey[forge.JobKey(queue[i])]
		if j == nil {
			return nil, &UnknownJobError{queue[i], known}
		}
		if chosen[j.Key] {
			continue
		}
		chosen[j.Key] = true
		for _, n := range j.Needs {
			queue = append(queue, n.Job.Value)
		}
	}
	p := &Plan{file: f, facts: facts}
	for _, j := range f.Jobs {
		switch {
		case !chosen[j.Key]:
		case len(j.legs) == 0:
			p.Nodes = append(p.Nodes, Node{Job: j})
		default:
			for _, leg := range j.legs {
				p.Nodes = append(p.Nodes, Node{j, leg})
			}
		}
	}
	return p, nil
}

// job is the job with a key, of which there must be one.
func (f *File) job(key forge.JobKey) *Job {
	return f.Jobs[slices.IndexFunc(f.Jobs, func(j *Job) bool { return j.Key == key })]
}

// Title is the title of the run, for people, or empty.
func (p *Plan) Title() string {
	text, _ := p.file.Name.fill(p.values(nil)) // what cannot be filled in is no title
	return text
}

// Group is what keeps the run from others, if anything does.
func (p *Plan) Group() (group string, cancelRunning bool, err error) {
	return p.group(p.file.Concurrency, nil)
}

// GroupOf is what keeps a job from others, if anything does.
func (p *Plan) GroupOf(n Node) (group string, cancelRunning bool, err error) {
	return p.group(n.Job.Concurrency, n.Leg)
}

func (p *Plan) group(c *Concurrency, leg forge.Leg) (string, bool, error) {
	if c == nil {
		return "", false, nil
	}
	text, err := c.Group.fill(p.values(leg))
	return text, c.CancelRunning, err
}

// TitleOf is the title of a job, for people: as its author named it, or its key.
func (p *Plan) TitleOf(n Node) string {
	if text, err := n.Job.Name.fill(p.values(n.Leg)); err == nil && text != "" {
		return text
	}
	return string(n.Job.Key)
}

// Hashes lists the patterns of every hashFiles in the file, each once and in order. Whoever plans a job gives the hash of
// what they match.
func (f *File) Hashes() [][]string {
	all := make([][]string, 0, len(f.hashes))
	for _, h := range f.hashes {
		all = append(all, strings.Split(h, "\n"))
	}
	return all
}

// Outcome is how all legs of a job have ended.
type Outcome uint8

// The outcomes. A failure that the job allows is a success.
const (
	Succeeded Outcome = 1
	Failed    Outcome = 2
	Cancelled Outcome = 3
	Skipped   Outcome = 4
)

// String is the word by which expressions and variables name it.
func (o Outcome) String() string {
	switch o {
	case Succeeded:
		return "success"
	case Failed:
		return "failure"
	case Cancelled:
		return "cancelled"
	case Skipped:
		return "skipped"
	}
	return "unknown"
}

// Ended is how a job has ended that another one needs.
type Ended struct {
	Job     forge.JobKey
	Outcome Outcome
	Above   bool           // a job that it needs, directly or through others, has failed
	Outputs []forge.EnvVar // of a job with one leg
}

// Given is what is known when a job is planned, besides its file.
type Given struct {
	Project forge.ProjectName
	Trust   forge.TrustClass
	Sandbox forge.SandboxKind // what confines the jobs; zero: the default
	Needs   []Ended           // in the order of the job's needs
	// Connectivity of the jobs; zero: that of forge.DefaultJobSpec.
	Connectivity forge.ConnectivityPolicy
	Source       *forge.TreeRef    // nil: the run has no source
	WithGit      *forge.TreeRef    // the source with its repository; nil: there is none
	Kept         *forge.TreeRef    // what the needed jobs have kept, by job and artifact; nil: nothing
	Hashes       map[string]string // of the patterns of Hashes, joined by line feeds
}

// A Decision is what becomes of a job whose needs have ended.
type Decision struct {
	Skip string         // why it does not run; empty: it runs
	Spec *forge.JobSpec // what it then does; its caches are named and not yet found
}

// Job decides about a job. An error says that an expression has no value, which nobody can tell before; the job cannot run then.
func (p *Plan) Job(n Node, g *Given) (Decision, error) {
	if why := n.Job.held(g); why != "" {
		return Decision{Skip: why}, nil
	}
	v := p.values(n.Leg)
	p.needs(v, n, g)
	status := statusOf(n, g)
	env, err := p.environment(n, v, g)
	if err != nil {
		return Decision{}, err
	}
	if why, err := n.Job.skip(v, status); why != "" || err != nil {
		return Decision{Skip: why}, err
	}
	spec, err := p.spec(n, v, g, env)
	return Decision{Spec: spec}, err
}

// DecidesAlone reports whether the job's condition decides without its needs: it has success() or the like in it.
func (n Node) DecidesAlone() bool { return n.Job.condition != nil && n.Job.condition.status }

// Outputs are the texts that a job gives to those that need it, from what its steps have written, by step and name. Those that
// have no value are left out, and the error is about the first of them.
func (p *Plan) Outputs(n Node, g *Given, steps map[string]map[string]string) ([]forge.EnvVar, error) {
	v := p.values(n.Leg)
	p.needs(v, n, g)
	for _, s := range n.Job.Steps {
		if id := s.ID.Value; id != "" {
			v["steps."+underscored(id)] = steps[id]
		}
	}
	outputs := make([]forge.EnvVar, 0, len(n.Job.Outputs))
	var first error
	for _, o := range n.Job.Outputs {
		text, err := o.Value.fill(v)
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("the output %s of %s: %w", o.Name, n.Job.Key, err))
			continue
		}
		outputs = append(outputs, forge.EnvVar{Name: o.Name, Value: text})
	}
	return outputs, first
}

// values are the names that every expression of a leg can read.
func (p *Plan) values(leg forge.Leg) map[string]any {
	f := p.facts
	v := map[string]any{
		"git.sha": f.SHA, "git.ref": f.Ref, "git.branch": f.Branch, "git.tag": f.Tag, "git.event": f.Event, "git.dirty": f.Dirty,
	}
	for _, a := range leg {
		v["matrix."+underscored(a.Axis)] = a.Value
	}
	return v
}

// needs adds what the needed jobs say. One that has not succeeded has given nothing: its outputs are empty texts.
func (p *Plan) needs(v map[string]any, n Node, g *Given) {
	for _, e := range g.Needs {
		if e.Outcome != Succeeded {
			for _, o := range p.file.job(e.Job).Outputs {
				v["needs."+underscored(string(e.Job))+".outputs."+underscored(o.Name)] = ""
			}
		}
		at := "needs." + underscored(string(e.Job))
		v[at+".result"] = e.Outcome.String()
		for _, o := range e.Outputs {
			v[at+".outputs."+underscored(o.Name)] = o.Value
		}
	}
	v[nameHashes] = g.Hashes
}

// status is what success() and the like say.
type status struct{ success, failure, cancelled bool }

func (s status) in(v map[string]any) {
	v[nameSuccess], v[nameFailure], v[nameCancelled], v[nameAlways] = s.success, s.failure, s.cancelled, true
}

func statusOf(n Node, g *Given) status {
	s := status{success: true}
	for i, e := range g.Needs {
		s.failure = s.failure || e.Outcome == Failed || e.Above
		s.cancelled = s.cancelled || e.Outcome == Cancelled
		s.success = s.success && (e.Outcome == Succeeded || e.Outcome == Skipped && n.Job.Needs[i].Optional)
	}
	return s
}

// Early says why a job will not run however its needs end, or nothing if that hangs on them. It is for people who ask before
// anything has run.
func (p *Plan) Early(n Node) string {
	x := n.Job.condition
	if x == nil || slices.ContainsFunc(x.names, func(name string) bool { return !onlyLeg(name) }) {
		return ""
	}
	why, err := n.Job.skip(p.values(n.Leg), status{})
	if err != nil {
		return "" // it is told when the job is planned
	}
	return why
}

// Held says which of its needs, in their order, keeps a job from running, or nothing. A need that has not ended is given as
// one that succeeded.
func (n Node) Held(needs []Ended) string { return n.Job.held(&Given{Needs: needs}) }

// held says which of its needs keeps a job from running, or nothing. A condition with success() or the like decides by itself.
func (j *Job) held(g *Given) string {
	if j.condition != nil && j.condition.status {
		return ""
	}
	for i, e := range g.Needs {
		if e.Outcome != Succeeded && (e.Outcome != Skipped || !j.Needs[i].Optional) {
			return fmt.Sprintf("%s, which it needs, %s", e.Job, map[Outcome]string{
				Failed: "failed", Cancelled: "was cancelled", Skipped: "was skipped",
			}[e.Outcome])
		}
	}
	return ""
}

// skip says why the condition of a job keeps it from running, or nothing.
func (j *Job) skip(v map[string]any, s status) (string, error) {
	s.in(v)
	if j.condition == nil {
		return "", nil
	}
	yes, err := j.condition.bool(v)
	if err != nil {
		return "", fmt.Errorf("if of %s: %w", j.Key, err)
	}
	if !yes {
		return "its condition is not true: " + clip(strings.Join(strings.Fields(j.If.Value), " ")), nil
	}
	return "", nil
}
