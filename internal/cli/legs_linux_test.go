package cli_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

// A legs is a run of a pipeline whose test decides when what happens.
type legs struct {
	f      *fake
	mu     sync.Mutex
	run    api.Run
	events chan api.Event
	logs   map[string]chan api.Event
	next   int
}

// legRun makes the fake daemon have a run of jobs with these keys.
func (f *fake) legRun(keys ...string) *legs {
	l := &legs{f: f, events: make(chan api.Event, 10_000), logs: map[string]chan api.Event{}}
	l.run = api.Run{ID: runID, State: "Running"}
	for i, key := range keys {
		key, value, leg := strings.Cut(key, "/")
		j := api.Job{ID: fmt.Sprintf("01JJ%022d", i), Run: runID, Key: key, State: "Waiting", Needs: []api.Need{{Job: "lint"}}}
		if leg {
			j.Leg = []api.AxisValue{{Axis: "go", Value: value}}
		}
		j.Definition = &api.JobSpec{Steps: []api.Step{{Name: "build"}, {Script: "\nmake test\nmore"}}}
		l.run.Jobs = append(l.run.Jobs, j)
		l.logs[attemptOf(j.ID)] = make(chan api.Event, 10_000)
	}
	f.on("POST /runs", func(*http.Request) any { return l.copy() })
	f.on("GET /runs/{id}", func(*http.Request) any { return l.copy() })
	f.on("GET /jobs/{id}", func(r *http.Request) any { return l.job(r.PathValue("id")) })
	f.on("GET /attempts/{id}", func(r *http.Request) any {
		id := r.PathValue("id")
		if l.logs[id] == nil {
			return api.NewProblem(api.CodeNotFound, "there is no attempt %s", id)
		}
		return &api.Attempt{ID: id, Job: strings.Replace(id, "01JA", "01JJ", 1), Number: 1}
	})
	f.serve("GET /runs/{id}/events", func(w http.ResponseWriter, r *http.Request) { pour(w, r, l.events) })
	f.serve("GET /attempts/{id}/log", func(w http.ResponseWriter, r *http.Request) { pour(w, r, l.logs[r.PathValue("id")]) })
	return l
}

func attemptOf(job string) string { return strings.Replace(job, "01JJ", "01JA", 1) }

// pour streams events as they come, to the last one.
func pour(w http.ResponseWriter, r *http.Request, events chan api.Event) {
	stream(w, nil)
	for {
		select {
		case e := <-events:
			stream(w, []api.Event{e})
			if e.Name == api.EventEnd {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// copy is the run as lists have it, without what only its jobs say of themselves.
func (l *legs) copy() *api.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	run := l.run
	run.Jobs = slices.Clone(run.Jobs)
	for i := range run.Jobs {
		run.Jobs[i].AllAttempts, run.Jobs[i].Definition = nil, nil
	}
	return &run
}

func (l *legs) job(id string) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.run.Jobs {
		if j.ID == id {
			return &j
		}
	}
	return api.NewProblem(api.CodeNotFound, "there is no job %s", id)
}

func (l *legs) id(i int) string { return l.run.Jobs[i].ID }

// becomes changes a job's state.
func (l *legs) becomes(i int, state string, change func(*api.Job)) {
	l.mu.Lock()
	j := &l.run.Jobs[i]
	j.State = state
	if change != nil {
		change(j)
	}
	l.mu.Unlock()
	l.changed("job", j.ID, state)
	if state == "Active" {
		l.changed("attempt", attemptOf(j.ID), "Running")
	}
}

func (l *legs) changed(kind, id, to string) {
	l.next++
	l.events <- event(l.next, api.EventChange, api.RunEvent{Kind: kind, ID: id, To: to})
}

// says adds to the log of a job.
func (l *legs) says(i int, name string, data any) {
	l.next++
	l.logs[attemptOf(l.id(i))] <- event(l.next, name, data)
}

func (l *legs) writes(i int, text string) {
	l.says(i, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte(text)))
}

// ends ends a job, with a reason if it failed. Its log comes by another way, so that it may end before or after.
func (l *legs) ends(i int, reason string) {
	l.logEnds(i, reason)
	l.jobEnds(i, reason)
}

func (l *legs) logEnds(i int, reason string) {
	code, class := 0, "Succeeded"
	if reason != "" {
		code, class = 3, "ExitCode"
	}
	took := api.Duration(1500 * time.Millisecond)
	l.says(i, api.EventStepFinished, api.LogStep{Result: &api.StepResult{Class: class, ExitCode: &code, Duration: &took}})
	l.says(i, api.EventEnd, api.LogEnd{Attempt: api.Attempt{ID: attemptOf(l.id(i)), Ended: true, Number: 1}, Complete: true})
}

func (l *legs) jobEnds(i int, reason string) {
	code, class, state := 0, "Succeeded", "Succeeded"
	if reason != "" {
		code, class, state = 3, "ExitCode", "Failed"
	}
	l.becomes(i, state, func(j *api.Job) {
		from, to := time.Unix(1000, 0), time.Unix(1012, 0)
		j.Ended, j.Reason, j.Class = true, reason, class
		j.AllAttempts = []api.Attempt{{Number: 1, StartedAt: &from, EndedAt: &to, ExitCode: &code}}
	})
}

// over ends the run.
func (l *legs) over(state string, code int) {
	l.mu.Lock()
	l.run.State, l.run.Ended, l.run.ExitCode, l.run.Reason = state, true, &code, "a job failed"
	l.mu.Unlock()
	l.next++
	l.events <- event(l.next, api.EventEnd, l.copy())
}

// pipelineWorld is where a pipeline file lies, which no fake daemon reads.
