package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/spelling"
)

// A target is one attempt whose log is shown.
type target struct {
	of      string // the job, where several are shown
	job     *api.Job
	attempt *api.Attempt
	steps   []uint16 // only these; nil: all
}

// foundLogs is what the arguments of logs mean: one attempt, or jobs of a run.
type foundLogs struct {
	attempt *api.Attempt
	run     *api.Run
	jobs    []api.Job
}

// findLogs finds out what is meant: [RUN|ATTEMPT] [JOB…], where what no id fits is the key of a job.
func (a *app) findLogs(ctx context.Context, client *api.Client, args []string) (*foundLogs, error) {
	f := &foundLogs{}
	if len(args) > 0 {
		if len(args[0]) < api.MinIDPrefix && isDigits(args[0]) {
			return nil, console.Usage("%q is no id of a run, a job or an attempt: write at least its first %d digits", args[0], api.MinIDPrefix)
		}
		known, err := f.byID(ctx, client, args[0])
		if err != nil {
			return nil, err
		}
		if f.attempt != nil {
			if len(args) > 1 {
				return nil, console.Usage("%s is one attempt, which has no jobs to choose from", args[0])
			}
			return f, nil
		}
		if known {
			args = args[1:]
		}
	}
	if f.run == nil {
		if len(args) > 0 && mayBeID(args[0]) {
			return nil, api.NewProblem(api.CodeNotFound, "there is no run, job or attempt %s", args[0])
		}
		run, err := a.latestRun(ctx, client)
		if err != nil {
			return nil, err
		}
		f.run = run
	}
	return f, f.choose(args)
}

// byID looks a first argument up as the id of an attempt, a run or a job. It reports whether nothing more is to be made of it.
func (f *foundLogs) byID(ctx context.Context, client *api.Client, id string) (bool, error) {
	if !mayBeID(id) {
		return false, nil
	}
	t, err := client.Attempt(ctx, id)
	if err == nil {
		f.attempt = t
		return true, nil
	}
	if !isCode(err, api.CodeNotFound) {
		return false, err
	}
	run, err := client.Run(ctx, id)
	if err == nil {
		f.run = run
		return true, nil
	}
	if !isCode(err, api.CodeNotFound) {
		return false, err
	}
	j, err := client.Job(ctx, id)
	if err != nil {
		if isCode(err, api.CodeNotFound) {
			err = nil // it may be the key of a job
		}
		return false, err
	}
	f.run, err = client.Run(ctx, j.Run)
	return false, err // it chooses a job of the run
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// mayBeID reports whether a text can be an id or the first digits of one, which begin with a digit.
func mayBeID(text string) bool {
	return len(text) >= api.MinIDPrefix && text[0] >= '0' && text[0] <= '9' && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// choose takes the jobs of the run that are named by their keys or ids: all, where none is.
func (f *foundLogs) choose(names []string) error {
	if len(names) == 0 {
		f.jobs = f.run.Jobs
		return nil
	}
	f.jobs = nil
	for _, name := range names {
		before := len(f.jobs)
		for i := range f.run.Jobs {
			if j := &f.run.Jobs[i]; j.Key == name || mayBeID(name) && strings.HasPrefix(j.ID, strings.ToUpper(name)) {
				f.jobs = append(f.jobs, *j)
			}
		}
		if len(f.jobs) == before {
			return noSuchJob(f.run, name)
		}
	}
	return nil
}

// noSuchJob says that a run has no job of a name, and which it has.
func noSuchJob(run *api.Run, name string) error {
	what := fmt.Sprintf("run %s has no job %q", run.ID, console.Plain(name))
	keys := jobKeys(run)
	if best := spelling.Nearest(name, keys); best != "" {
		return console.Usage("%s; did you mean %q?", what, best)
	}
	if len(keys) == 0 {
		return console.Usage("%s; it has none", what)
	}
	return console.Usage("%s; it has %s", what, strings.Join(keys, ", "))
}

// jobKeys are the keys of a run's jobs, each once.
func jobKeys(run *api.Run) (keys []string) {
	for i := range run.Jobs {
		if key := run.Jobs[i].Key; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func keysOf(run *api.Run) string { return strings.Join(jobKeys(run), ", ") }

// targets are the attempts whose logs are shown, in the order of their jobs. A job that never began has none.
func (f *foundLogs) targets(ctx context.Context, client *api.Client, o *logOptions) (all []target, err error) {
	if f.attempt != nil {
		job, err := client.Job(ctx, f.attempt.Job)
		if isCode(err, api.CodeNotFound) {
			job, err = &api.Job{}, nil
		}
		t := target{job: job, attempt: f.attempt}
		if o.failed {
			t.steps = failedSteps(f.attempt)
		}
		return []target{t}, err
	}
	for i := range f.jobs {
		if o.failed && f.jobs[i].State != "Failed" {
			continue
		}
		job, err := client.Job(ctx, f.jobs[i].ID)
		if err != nil {
			return nil, err
		}
		t := target{job: job, attempt: attemptOf(job, o.attempt)}
		switch {
		case t.attempt == nil && o.attempt > 0:
			return nil, fmt.Errorf("job %s has no attempt %d; it has %d", job.Key, o.attempt, len(job.AllAttempts))
		case t.attempt == nil && len(f.jobs) == 1:
			return nil, fmt.Errorf("job %s has no attempt yet\nSee why: forgeyard job why %s", job.Key, job.ID)
		case t.attempt == nil:
			continue
		}
		if o.failed {
			t.steps = failedSteps(t.attempt)
		}
		all = append(all, t)
	}
	if len(all) > 1 {
		for i := range all {
			all[i].of = jobTitle(all[i].job)
		}
	}
	return all, nil
}

// attemptOf is the attempt of a number, or the newest for 0; nil where there is none.
func attemptOf(j *api.Job, number int) *api.Attempt {
	for i := len(j.AllAttempts) - 1; i >= 0; i-- {
		if t := &j.AllAttempts[i]; number == 0 || int(t.Number) == number {
			return t
		}
	}
	return nil
}

// failedSteps are the steps that decided that an attempt failed: the first that ended as it did, else all that did not
// succeed. Where there is none, as of one whose machine was lost, all of its log tells.
func failedSteps(t *api.Attempt) []uint16 {
	var others []uint16
	for _, s := range t.Steps {
		if s.Class == "Succeeded" {
			continue
		}
		if s.Class == t.Class && (s.ExitCode == nil) == (t.ExitCode == nil) && (s.ExitCode == nil || *s.ExitCode == *t.ExitCode) {
			return []uint16{s.Index}
		}
		others = append(others, s.Index)
	}
	return others
}
