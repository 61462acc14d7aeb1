package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// planOptions say what a plan is made of.
type planOptions struct {
	file               string
	event, branch, tag string
}

func (a *app) planCommand() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use: "plan [JOB…]", Short: "Show which jobs would run, what each waits for, and which are skipped and why",
		Long: `Show the jobs of the pipeline as a run would have them, all legs counted: what can start at
once, what waits for which jobs, and what is skipped and why. With JOB only those jobs and what
they need. No daemon is asked and nothing runs.

What git says of this repository counts as in a run; --event, --branch and --tag try another.

The digest of a job that can start is that of its specification without the source, which is
not captured here: two plans with the same digest would do the same with the same files. A job
whose cache key is made of the contents of files has none.`,
		Example: `  forgeyard plan
  forgeyard plan release --tag v1.0 --event tag
  forgeyard plan -o json | jq '.jobs[] | select(.state == "skipped")'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.plan(cmd.Context(), &o, args, cmd.Flags().Changed)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "pipeline file (default: the "+pipelineName+" of this folder or the nearest above it in the repository)")
	f.StringVar(&o.event, "event", pipeline.EventManual, "event as which it is planned: manual, push, pull_request, tag or schedule")
	f.StringVar(&o.branch, "branch", "", "branch as which it is planned")
	f.StringVar(&o.tag, "tag", "", "tag as which it is planned")
	return cmd
}

// The states of planned jobs.
const (
	planStarts  = "starts"  // it needs nothing
	planWaits   = "waits"   // for what it needs
	planSkipped = "skipped" // it does not run
	planFails   = "fails"   // an expression of it has no value
)

// plannedJob is a job of a plan, as JSON.
type plannedJob struct {
	Job      string            `json:"job"`
	Leg      map[string]string `json:"leg,omitempty"`
	Title    string            `json:"title"`
	State    string            `json:"state"`
	WaitsFor []string          `json:"waits_for,omitempty"`
	Why      string            `json:"why,omitempty"`                 // it is skipped, or fails
	Spec     string            `json:"spec_without_source,omitempty"` // digest

	node pipeline.Node
}

// plannedRun is a plan, as JSON.
type plannedRun struct {
	File   string        `json:"file"`
	Title  string        `json:"title,omitempty"`
	Event  string        `json:"event"`
	SHA    string        `json:"sha,omitempty"`
	Branch string        `json:"branch,omitempty"`
	Tag    string        `json:"tag,omitempty"`
	Dirty  bool          `json:"dirty"`
	Jobs   []*plannedJob `json:"jobs"`
}

func (a *app) plan(ctx context.Context, o *planOptions, wanted []string, given func(flag string) bool) error {
	if !slices.Contains([]string{pipeline.EventManual, "push", "pull_request", "tag", "schedule"}, o.event) {
		return console.Usage("--event %q: use manual, push, pull_request, tag or schedule", o.event)
	}
	text, err := a.readPipeline(o.file)
	if err != nil {
		return err
	}
	file, err := a.parsePipeline(text)
	if err != nil {
		return err
	}
	facts, err := a.gitFacts(ctx)
	if err != nil {
		return err
	}
	o.into(&facts, given)
	p, err := file.Expand(facts, wanted)
	if err != nil {
		return console.Usage("%s: %w", text.Name, err)
	}
	run := plannedRun{
		File: text.Name, Title: p.Title(), Event: facts.Event, SHA: facts.SHA, Branch: facts.Branch, Tag: facts.Tag, Dirty: facts.Dirty,
		Jobs: planJobs(file, p),
	}
	if err := a.print().Show(run, run.table); err != nil {
		return err
	}
	if slices.ContainsFunc(run.Jobs, func(j *plannedJob) bool { return j.State == planFails }) {
		return program.Exit(program.CodeFailed, errors.New("a job cannot be planned; see why above"))
	}
	return nil
}

// into puts what the flags say in the place of what git says.
func (o *planOptions) into(f *pipeline.Facts, given func(flag string) bool) {
	f.Event = o.event
	if given("tag") {
		f.Tag = o.tag
		if o.event == "tag" {
			f.Ref, f.Branch = "refs/tags/"+o.tag, ""
		}
	}
	if given("branch") {
		f.Branch, f.Ref = o.branch, "refs/heads/"+o.branch
		if o.branch == "" {
			f.Ref = ""
		}
	}
}

// gitFacts asks what git says of the repository around the working directory; outside of one it is nothing.
func (a *app) gitFacts(ctx context.Context) (f pipeline.Facts, err error) {
	top, err := git.Find(".")
	if errors.Is(err, git.ErrNone) || errors.Is(err, git.ErrBare) {
		a.note("no git repository here, so git.sha, git.branch and git.tag are empty")
		return f, nil
	}
	if err != nil {
		return f, err
	}
	repo, err := git.Open(ctx, top)
	if err != nil {
		return f, err
	}
	f, err = factsOf(ctx, repo)
	return f, errors.Join(err, repo.Close())
}

func factsOf(ctx context.Context, repo *git.Repo) (f pipeline.Facts, err error) {
	head, err := repo.Head(ctx)
	if err != nil {
		return f, err
	}
	if f = knownOf(head, head.SHA == ""); f.Dirty {
		return f, nil
	}
	if f.Dirty, err = repo.Dirty(ctx); err != nil || f.Dirty {
		return f, err
	}
	listed, err := repo.List(ctx)
	f.Dirty = slices.ContainsFunc(listed, func(l git.Listed) bool { return l.Untracked })
	return f, err
}

// planJobs says of every job what is known before anything runs. What it needs may stand behind it, so that it goes over all
// jobs until nothing more is known.
func planJobs(file *pipeline.File, p *pipeline.Plan) []*plannedJob {
	var all []*plannedJob
	for _, n := range p.Nodes {
		j := &plannedJob{Job: string(n.Job.Key), Title: p.TitleOf(n), node: n}
		for _, v := range n.Leg {
			if j.Leg == nil {
				j.Leg = map[string]string{}
			}
			j.Leg[v.Axis] = v.Value
		}
		all = append(all, j)
	}
	for range all { // each round decides one more at least, or none
		before := decided(all)
		for _, j := range all {
			if j.State == "" || j.State == planWaits {
				j.decide(file, p, all)
			}
		}
		if decided(all) == before {
			break
		}
	}
	return all
}

func decided(all []*plannedJob) (n int) {
	for _, j := range all {
		if j.State != "" && j.State != planWaits {
			n++
		}
	}
	return n
}

// hashStandIn stands where the contents of files would be hashed.
const hashStandIn = "hash-of-files"

func (j *plannedJob) decide(file *pipeline.File, p *pipeline.Plan, all []*plannedJob) {
	ended, waits := needsOf(j, all)
	if why := p.Early(j.node); why != "" {
		j.State, j.Why, j.WaitsFor = planSkipped, why, nil
		return
	}
	if why := j.node.Held(ended); why != "" {
		j.State, j.Why, j.WaitsFor = planSkipped, why, nil
		return
	}
	if len(waits) > 0 {
		j.State, j.WaitsFor = planWaits, waits
		return
	}
	given := &pipeline.Given{Project: forge.DefaultProject, Trust: forge.TrustTrusted, Needs: ended, Hashes: map[string]string{}}
	for _, patterns := range file.Hashes() {
		given.Hashes[strings.Join(patterns, "\n")] = hashStandIn
	}
	decision, err := p.Job(j.node, given)
	switch {
	case err != nil:
		j.State, j.Why = planFails, err.Error()
	case decision.Skip != "":
		j.State, j.Why = planSkipped, decision.Skip
	default:
		j.State = planStarts
		j.digest(decision.Spec)
	}
}

// digest names the specification, unless there is a stand-in in it.
func (j *plannedJob) digest(spec *forge.JobSpec) {
	for _, c := range spec.Caches {
		if strings.Contains(c.Key+strings.Join(c.Fallback, ""), hashStandIn) {
			return
		}
	}
	b, err := jobspec.Encode(*spec)
	if err != nil {
		j.State, j.Why = planFails, err.Error()
		return
	}
	j.Spec = jobspec.ID(b).String()
}

// needsOf says how the needs of a job have ended, as far as all their legs are known to be skipped, and which have not.
func needsOf(j *plannedJob, all []*plannedJob) (ended []pipeline.Ended, waits []string) {
	for _, need := range j.node.Needs() {
		outcome := pipeline.Skipped
		for _, other := range all {
			if other.Job == string(need.Job) && other.State != planSkipped {
				outcome = pipeline.Succeeded
			}
		}
		ended = append(ended, pipeline.Ended{Job: need.Job, Outcome: outcome})
		if outcome != pipeline.Skipped {
			waits = append(waits, string(need.Job))
		}
	}
	return ended, waits
}

func (r plannedRun) table(w io.Writer) {
	console.Row(w, "JOB", "TITLE", "STATE", "WHY OR DIGEST")
	for _, j := range r.Jobs {
		name, title := j.Job, j.Title
		if len(j.node.Leg) > 0 {
			name = fmt.Sprintf("%s (%s)", j.Job, j.node.Leg)
		}
		if title == j.Job {
			title = ""
		}
		what := j.Why
		switch j.State {
		case planWaits:
			what = "for " + strings.Join(j.WaitsFor, ", ")
		case planStarts:
			what = j.Spec
			if what == "" {
				what = "its digest hangs on files, by a cache key"
			}
		}
		console.Row(w, name, title, j.State, what)
	}
}
