package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

func (s *Server) submit(r *http.Request) (any, error) {
	var request api.RunRequest
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	key := r.Header.Get(api.HeaderIdempotencyKey)
	if len(key) > api.MaxIdempotencyKey {
		return nil, api.NewProblem(api.CodeMalformed, "the idempotency key has more than %d bytes", api.MaxIdempotencyKey)
	}
	if request.Retry != nil {
		return s.retry(r, &request, asking(r.Context()).Trust, key)
	}
	submission, err := submissionOf(&request, asking(r.Context()).Trust, s.cfg.Control.Connectivity())
	if err != nil {
		return nil, err
	}
	submission.Key, submission.Actor = key, actor(r.Context())
	run, made, err := s.cfg.Control.Submit(r.Context(), submission)
	if err != nil {
		return nil, err
	}
	out, err := s.run(r, run.ID)
	if !made {
		return choice{http.StatusOK, out}, err
	}
	return out, err
}

// submissionOf turns a request into values. What is wrong with a specification is found here, so that its places are
// those of the JSON; the graph is control's to check. usual is the connectivity of jobs that do not say theirs.
func submissionOf(request *api.RunRequest, trust forge.TrustClass, usual forge.ConnectivityPolicy) (control.Submission, error) {
	out := control.Submission{Project: forge.ProjectName(request.Project), Name: request.Name, Trust: trust}
	if out.Project == "" {
		out.Project = forge.DefaultProject
	}
	if request.Pipeline != nil {
		if err := pipelineOf(request.Pipeline, &out); err != nil {
			return out, err
		}
	}
	if len(request.Jobs) > forge.MaxJobsPerRun {
		return out, forge.Problems{{Path: "jobs", What: "has " + strconv.Itoa(len(request.Jobs)) + " items, at most " + strconv.Itoa(forge.MaxJobsPerRun)}}
	}
	var wrong forge.Problems
	for i := range request.Jobs {
		j := &request.Jobs[i]
		job := control.SubmittedJob{Key: forge.JobKey(j.Key)}
		for _, v := range j.Leg {
			job.Leg = append(job.Leg, forge.AxisValue(v))
		}
		for _, n := range j.Needs {
			job.Needs = append(job.Needs, forge.JobNeed{Job: forge.JobKey(n.Job), Optional: n.Optional})
		}
		// Project, key and leg are checked with the graph, where they stand; here they only have to be good.
		spec, err := j.Spec.Forge(api.SpecContext{Project: forge.DefaultProject, Key: "job", Trust: trust, Connectivity: usual})
		if err != nil {
			found, ok := err.(forge.Problems)
			if !ok {
				return out, err
			}
			at := "jobs[" + strconv.Itoa(i) + "].spec"
			for _, p := range found {
				wrong = append(wrong, forge.Problem{Path: at + "." + p.Path, What: p.What})
			}
			continue
		}
		job.Spec = spec
		out.Jobs = append(out.Jobs, job)
	}
	if len(wrong) > 0 {
		return out, wrong
	}
	return out, nil
}

// pipelineOf turns the pipeline of a request into values.
func pipelineOf(p *api.PipelineRequest, out *control.Submission) error {
	out.Pipeline = &control.Pipeline{
		File: cmp.Or(p.File, "the pipeline"), Text: []byte(p.Text), Wanted: p.Jobs,
		Facts: pipeline.Facts{Event: cmp.Or(p.Git.Event, pipeline.EventManual), SHA: p.Git.SHA, Ref: p.Git.Ref, Branch: p.Git.Branch, Tag: p.Git.Tag, Dirty: p.Git.Dirty},
	}
	var wrong forge.Problems
	if p.Sandbox != "" {
		kind, err := forge.ParseSandboxKind(p.Sandbox)
		if err != nil || kind == forge.SandboxOCI {
			wrong = append(wrong, forge.Problem{Path: "pipeline.sandbox", What: "is neither native nor process"})
		}
		out.Pipeline.Sandbox = kind
	}
	for _, text := range []struct{ at, text string }{
		{"file", p.File}, {"git.event", p.Git.Event}, {"git.sha", p.Git.SHA}, {"git.ref", p.Git.Ref}, {"git.branch", p.Git.Branch}, {"git.tag", p.Git.Tag},
	} {
		if len(text.text) > forge.MaxPath || strings.ContainsFunc(text.text, unicode.IsControl) || !utf8.ValidString(text.text) {
			wrong = append(wrong, forge.Problem{Path: "pipeline." + text.at, What: "is not one line of at most " + strconv.Itoa(forge.MaxPath) + " bytes"})
		}
	}
	for _, t := range []struct {
		at   string
		tree *api.Tree
		into **forge.TreeRef
	}{{"source", p.Source, &out.Pipeline.Source}, {"source_with_git", p.SourceWithGit, &out.Pipeline.WithGit}} {
		if t.tree == nil {
			continue
		}
		root, err := digest.ParseRef(t.tree.Root)
		if err != nil {
			wrong = append(wrong, forge.Problem{Path: "pipeline." + t.at + ".root", What: err.Error()})
			continue
		}
		*t.into = &forge.TreeRef{Root: root, Files: t.tree.Files, Bytes: forge.Bytes(t.tree.Bytes), Depth: t.tree.Depth}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

func (s *Server) listRuns(r *http.Request) (any, error) {
	n, before, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	f := store.RunFilter{Project: forge.ProjectName(r.URL.Query().Get("project")), Limit: n, Before: before}
	if text := r.URL.Query().Get("state"); text != "" {
		state, ok := runState(text)
		if !ok {
			return nil, api.NewProblem(api.CodeMalformed, "%q is no state of a run", clip(text))
		}
		f.States = []forge.RunState{state}
	}
	out := api.List[api.Run]{Items: []api.Run{}}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		runs, next, err := v.Runs(f)
		for i := range runs {
			one := runOf(&runs[i])
			counts, err := v.JobCounts(runs[i].ID)
			if err != nil {
				return err
			}
			one.Counts = make(map[string]int, len(counts))
			for state, n := range counts {
				one.Counts[state.String()] = n
			}
			out.Items = append(out.Items, one)
		}
		if next > 0 {
			out.Next = strconv.FormatUint(next, 10)
		}
		return err
	})
	return out, err
}

func runState(text string) (forge.RunState, bool) {
	for s := forge.RunPlanned; s <= forge.RunError; s++ {
		if s.String() == text {
			return s, true
		}
	}
	return 0, false
}

func (s *Server) getRun(r *http.Request) (any, error) {
	id, err := s.find(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.run(r, id)
}

// find looks a run up.
func (s *Server) find(r *http.Request, text string) (id forge.RunID, err error) {
	err = s.cfg.Store.View(r.Context(), func(v *store.View) (err error) {
		id, err = lookUp[forge.RunID](v, store.RunIDs, "run", text)
		return err
	})
	return id, err
}

// run returns a run with its jobs.
func (s *Server) run(r *http.Request, id forge.RunID) (out api.Run, err error) {
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		run, err := v.Run(id)
		if err != nil {
			return err
		}
		taken, err := v.Taken(id)
		if err != nil {
			return err
		}
		jobs, err := v.Jobs(id)
		out = runOf(&run)
		for i := range taken {
			out.Taken = append(out.Taken, jobOf(&taken[i]))
		}
		out.Counts = map[string]int{}
		for i := range jobs {
			j := jobOf(&jobs[i])
			out.Counts[j.State]++
			out.Jobs = append(out.Jobs, j)
		}
		return err
	})
	return out, err
}

func (s *Server) runVerb(r *http.Request) (any, error) {
	text, verb, err := verb(r)
	if err != nil {
		return nil, err
	}
	if verb != "cancel" {
		return nil, api.NewProblem(api.CodeNoRoute, "a run can only be told to cancel")
	}
	id, err := s.find(r, text)
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.Control.CancelRun(r.Context(), id, actor(r.Context())); err != nil {
		return nil, err
	}
	return s.run(r, id)
}

func (s *Server) findJob(r *http.Request, text string) (id forge.JobID, err error) {
	err = s.cfg.Store.View(r.Context(), func(v *store.View) (err error) {
		id, err = lookUp[forge.JobID](v, store.JobIDs, "job", text)
		return err
	})
	return id, err
}

func (s *Server) getJob(r *http.Request) (any, error) {
	id, err := s.findJob(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.job(r, id)
}

// job returns a job with its attempts and its definition.
func (s *Server) job(r *http.Request, id forge.JobID) (out api.Job, err error) {
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		job, err := v.Job(id)
		if err != nil {
			return err
		}
		out = jobOf(&job)
		if job.Spec.IsZero() && job.Draft.IsZero() {
			return nil // it was not planned yet, or never will be
		}
		spec, err := specOf(v, &job)
		if err != nil {
			return err
		}
		out.Definition = api.SpecOf(spec)
		out.AllAttempts, err = attemptsOf(v, &job, spec)
		if n := len(out.AllAttempts); n > 0 {
			out.CurrentAttempt = out.AllAttempts[n-1].ID
			if job.State == forge.JobFailed {
				out.Reason = "its last attempt failed: " + out.AllAttempts[n-1].Reason
			}
		}
		return err
	})
	return out, err
}

// specOf reads the specification of a job, or what it was submitted with.
func specOf(v *store.View, j *store.Job) (*forge.JobSpec, error) {
	id := j.Spec
	if id.IsZero() {
		id = j.Draft
	}
	bytes, err := v.Spec(id)
	if err != nil {
		return nil, err
	}
	spec, err := jobspec.Open(id, bytes)
	return &spec, err
}

// attemptsOf reads the attempts of a job with the names of their runners.
func attemptsOf(v *store.View, j *store.Job, spec *forge.JobSpec) ([]api.Attempt, error) {
	attempts, err := v.Attempts(j.ID)
	if err != nil {
		return nil, err
	}
	out := make([]api.Attempt, 0, len(attempts))
	for i := range attempts {
		out = append(out, attemptOf(v, &attempts[i], j, spec))
	}
	return out, nil
}

func (s *Server) listAttempts(r *http.Request) (any, error) {
	id, err := s.findJob(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	job, err := s.job(r, id)
	return api.List[api.Attempt]{Items: slices.Concat([]api.Attempt{}, job.AllAttempts)}, err
}

func (s *Server) jobVerb(r *http.Request) (any, error) {
	text, verb, err := verb(r)
	if err != nil {
		return nil, err
	}
	if verb != "cancel" {
		return nil, api.NewProblem(api.CodeNoRoute, "a job can only be told to cancel")
	}
	id, err := s.findJob(r, text)
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.Control.CancelJob(r.Context(), id, actor(r.Context())); err != nil {
		return nil, err
	}
	return s.job(r, id)
}

func (s *Server) explainJob(r *http.Request) (any, error) {
	id, err := s.findJob(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	why, err := s.cfg.Control.Explain(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return explanationOf(why), nil
}

func (s *Server) getAttempt(r *http.Request) (any, error) {
	var out api.Attempt
	err := s.cfg.Store.View(r.Context(), func(v *store.View) error {
		id, err := lookUp[forge.AttemptID](v, store.AttemptIDs, "attempt", r.PathValue("id"))
		if err != nil {
			return err
		}
		out, err = readAttempt(v, id)
		return err
	})
	return out, err
}

// readAttempt returns an attempt as it is shown.
func readAttempt(v *store.View, id forge.AttemptID) (api.Attempt, error) {
	a, err := v.Attempt(id)
	if err != nil {
		return api.Attempt{}, err
	}
	job, err := v.Job(a.Authority.Job)
	if err != nil {
		return api.Attempt{}, err
	}
	spec, err := specOf(v, &job)
	if err != nil {
		return api.Attempt{}, err
	}
	return attemptOf(v, &a, &job, spec), nil
}
