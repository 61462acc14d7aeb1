package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// maxTitle bounds the bytes of a title that a pipeline gives to a run or a job.
const maxTitle = forge.MaxTitle

// Pipeline is a run that is submitted as a pipeline file (D14). Its jobs are planned here, each when its needs have ended.
type Pipeline struct {
	File    string // its path in the source, for people
	Text    []byte
	Wanted  []string // keys of jobs; empty: all
	Facts   pipeline.Facts
	Source  *forge.TreeRef    // nil: there is none
	WithGit *forge.TreeRef    // the source with its repository; nil: there is none
	Sandbox forge.SandboxKind // what confines the jobs; zero: the default

	only map[string]bool // of a run that tries others again: the jobs that it has, by key and leg; nil: all
}

// PipelineError says what is wrong with a pipeline file, whole.
type PipelineError struct {
	File  string
	Text  []byte
	Found pipeline.Problems
}

func (e *PipelineError) Error() string {
	return fmt.Sprintf("%s cannot be run: %v", e.File, e.Found.Wrong())
}

// origin is what is kept of a submission beside the text of its pipeline.
type origin struct {
	File    string            `json:"file"`
	Wanted  []string          `json:"wanted,omitempty"`
	Facts   pipeline.Facts    `json:"facts"`
	Source  *forge.TreeRef    `json:"source,omitempty"`
	WithGit *forge.TreeRef    `json:"with_git,omitempty"`
	Sandbox forge.SandboxKind `json:"sandbox,omitempty"`
	Hashes  map[string]string `json:"hashes,omitempty"` // by patterns, joined by line feeds
}

// planRun makes the jobs of a pipeline. The error may be a *PipelineError or a *pipeline.UnknownJobError.
func (c *Control) planRun(ctx context.Context, s *Submission, n *store.NewRun) error {
	if c.stored == nil {
		return errNoObjects
	}
	p := s.Pipeline
	file, found := pipeline.Parse(p.Text)
	if file == nil {
		return &PipelineError{p.File, p.Text, found}
	}
	plan, err := file.Expand(p.Facts, p.Wanted)
	if err != nil {
		return err
	}
	nodes := p.chosen(plan)
	var wanted []wantedSecret
	for i, n := range nodes {
		if i > 0 && nodes[i-1].Job == n.Job {
			continue // another leg
		}
		for _, s := range n.Job.Secrets {
			ref, err := forge.ParseSecretRef(s.Ref.Value)
			if err != nil {
				return err // Parse has refused it
			}
			wanted = append(wanted, wantedSecret{fmt.Sprintf("%s:%d:%d", p.File, s.Ref.At.Line, s.Ref.At.Column), ref})
		}
	}
	if err := c.haveSecrets(ctx, s.Project, wanted); err != nil {
		return err
	}
	for at, t := range map[string]*forge.TreeRef{"pipeline.source": p.Source, "pipeline.with_git": p.WithGit} {
		if err := c.haveTree(ctx, s.Project, at, t); err != nil {
			return err
		}
	}
	o := origin{File: p.File, Wanted: p.Wanted, Facts: p.Facts, Source: p.Source, WithGit: p.WithGit, Sandbox: p.Sandbox}
	if o.Hashes, err = c.hashes(ctx, s.Project, p.Source, file.Hashes()); err != nil {
		return err
	}
	facts, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("keep what is known of a run: %w", err)
	}
	n.Origin = &store.Origin{Pipeline: p.Text, Facts: facts}
	if n.Name == "" {
		n.Name = title(plan.Title())
	}
	if n.Lane, n.Replace, err = plan.Group(); err != nil {
		return forge.Problems{{Path: "concurrency.group", What: err.Error()}}
	}
	keys := map[forge.JobKey]bool{}
	for _, node := range nodes {
		keys[node.Job.Key] = true
	}
	for _, node := range nodes {
		n.Jobs = append(n.Jobs, store.NewJob{
			ID: ident.New[forge.JobID](), Key: node.Job.Key, Title: title(plan.TitleOf(node)), Leg: node.Leg, Needs: within(node.Needs(), keys),
		})
	}
	return laneFits(n.Lane)
}

// chosen are the nodes of a plan that the run has.
func (p *Pipeline) chosen(plan *pipeline.Plan) (nodes []pipeline.Node) {
	for _, n := range plan.Nodes {
		if p.only == nil || p.only[nodeName(n.Job.Key, n.Leg)] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// title is a text on one line of at most maxTitle bytes.
func title(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxTitle {
		text = strings.ToValidUTF8(text[:maxTitle-len("…")], "") + "…"
	}
	return text
}

func laneFits(lane string) error {
	if len(lane) > store.MaxLane {
		return forge.Problems{{Path: "concurrency.group", What: fmt.Sprintf("has %d bytes, at most %d", len(lane), store.MaxLane)}}
	}
	return nil
}

// hashes gives for each list of patterns the hash of the files of a tree that they take, with their paths, by the rules of artifacts.
func (c *Control) hashes(ctx context.Context, project forge.ProjectName, source *forge.TreeRef, lists [][]string) (map[string]string, error) {
	if len(lists) == 0 {
		return nil, nil
	}
	hashers := make([]*digest.Hash, len(lists))
	taken := make([]*capture.Patterns, len(lists))
	for i := range hashers {
		hashers[i] = digest.NewHash()
		var err error
		if taken[i], err = capture.Compile(forge.Output{Name: "hashFiles", Base: forge.SourceDir, Patterns: lists[i]}); err != nil {
			return nil, forge.Problems{{Path: "hashFiles", What: err.Error()}}
		}
	}
	if source != nil {
		err := cas.Walk(ctx, c.stored(project), *source, func(path string, e tree.Entry) error {
			for i := range lists {
				if e.Kind == tree.File && taken[i].Takes(path) {
					fmt.Fprintf(hashers[i], "%s\x00%v\n", path, e.Ref)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for the files of hashFiles: %w", err)
		}
	}
	out := make(map[string]string, len(lists))
	for i, patterns := range lists {
		sum := hashers[i].Ref().Digest.String()
		out[strings.Join(patterns, "\n")] = strings.TrimPrefix(sum, "b3:")[:32]
	}
	return out, nil
}

// plans remembers what the latest runs were planned from.
type plans struct {
	of    map[forge.RunID]*planned
	order []forge.RunID
}

// maxPlans bounds them.
const maxPlans = 256

// planned is the plan of a run, with what it was made from.
type planned struct {
	origin
	project forge.ProjectName
	plan    *pipeline.Plan
	nodes   map[string]pipeline.Node // by key and leg
	cached  map[forge.JobID]bool     // jobs whose caches were kept
}

func nodeName(key forge.JobKey, leg forge.Leg) string { return string(key) + "\x00" + leg.String() }

// planOf returns the plan of a run, or nil for one whose jobs came with their specs. Only Run's goroutine calls it.
func (c *Control) planOf(run *store.Run, o *store.Origin) (*planned, error) {
	if p := c.plans.of[run.ID]; p != nil {
		return p, nil
	}
	file, found := pipeline.Parse(o.Pipeline)
	if file == nil {
		return nil, fmt.Errorf("the pipeline of run %v was good and is not any more: %w", run.ID, found.Wrong())
	}
	p := &planned{project: run.Project, nodes: map[string]pipeline.Node{}, cached: map[forge.JobID]bool{}}
	if err := json.Unmarshal(o.Facts, &p.origin); err != nil {
		return nil, fmt.Errorf("what is kept of run %v: %w", run.ID, err)
	}
	var err error
	if p.plan, err = file.Expand(p.Facts, p.Wanted); err != nil {
		return nil, fmt.Errorf("run %v: %w", run.ID, err)
	}
	for _, n := range p.plan.Nodes {
		p.nodes[nodeName(n.Job.Key, n.Leg)] = n
	}
	if len(c.plans.order) >= maxPlans {
		delete(c.plans.of, c.plans.order[0])
		c.plans.order = c.plans.order[1:]
	}
	c.plans.of[run.ID] = p
	c.plans.order = append(c.plans.order, run.ID)
	return p, nil
}

// errNoObjects says that this daemon has no content store.
var errNoObjects = errors.New("this daemon has no content store")
