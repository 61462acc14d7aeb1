package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
)

const (
	runID     = "01JRUN00000000000000000000"
	jobID     = "01JJ0B00000000000000000000"
	attemptID = "01JATT00000000000000000000"
)

// ended is a run that ended with a code.
func ended(state string, code int) *api.Run {
	return &api.Run{ID: runID, State: state, Ended: true, ExitCode: &code, Jobs: []api.Job{{ID: jobID, Key: "run", State: state, Ended: true}}}
}

// story makes the fake daemon run one attempt with an output, and end with a code.
func (f *fake) story(state string, code int, log ...api.Event) *api.RunRequest {
	var got api.RunRequest
	f.on("POST /runs", func(r *http.Request) any {
		_ = json.NewDecoder(r.Body).Decode(&got)
		return &api.Run{ID: runID, State: "Planned"}
	})
	f.on("GET /runs/{id}/events", func(*http.Request) any {
		return []api.Event{
			event(1, api.EventChange, api.RunEvent{Kind: "attempt", ID: attemptID, To: "Offered"}),
			event(2, api.EventChange, api.RunEvent{Kind: "attempt", ID: attemptID, To: "Running"}),
			event(3, api.EventEnd, ended(state, code)),
		}
	})
	f.on("GET /attempts/{id}/log", func(*http.Request) any {
		end := api.LogEnd{Attempt: api.Attempt{ID: attemptID, Number: 1, Ended: true, Class: state, Reason: "because"}, Complete: true}
		return append(log, event(99, api.EventEnd, end))
	})
	f.on("GET /runs/{id}", func(*http.Request) any { return ended(state, code) })
	f.on("GET /attempts/{id}", func(*http.Request) any { return &api.Attempt{ID: attemptID, Job: jobID, Number: 1} })
	f.on("GET /jobs/{id}", func(*http.Request) any { return &ended(state, code).Jobs[0] })
	return &got
}

func TestRunPrintsTheOutputAndEndsWithTheRun(t *testing.T) {
	for state, code := range map[string]int{"Succeeded": 0, "Failed": 1, "Cancelled": 2, "Error": 3} {
		f := newFake(t)
		f.story(state, code,
			event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("out\n"))),
			event(2, api.EventOutput, api.OutputOf(2, "stderr", nil, []byte("err\n"))),
			event(3, api.EventOutput, api.OutputOf(3, "stdout", nil, []byte("\xff\x00bytes\n"))),
			event(4, api.EventGap, api.LogGap{Why: "spool full"}))
		r := f.world(t).run("run", "--", "make")
		r.want(t, code, "out\n\xff\x00bytes\n", "run "+runID+"\nerr\n[output is missing here: spool full]\n")
		r.want(t, code, "", "run "+state)
		if strings.Contains(r.stdout, "err") {
			t.Errorf("standard output got %q", r.stdout)
		}
	}
}

// An attempt whose runner was lost may be heard of again while the next one runs: what both say comes out whole.
func TestTwoAttemptsMaySpeakAtATime(t *testing.T) {
	const each = 500
	f := newFake(t)
	f.story("Succeeded", 0)
	next := strings.Replace(attemptID, "01", "02", 1)
	f.on("GET /runs/{id}/events", func(*http.Request) any {
		return []api.Event{
			event(1, api.EventChange, api.RunEvent{Kind: "attempt", ID: attemptID, To: "Running"}),
			event(2, api.EventChange, api.RunEvent{Kind: "attempt", ID: next, To: "Running"}),
			event(3, api.EventEnd, ended("Succeeded", 0)),
		}
	})
	f.on("GET /attempts/{id}", func(r *http.Request) any { return &api.Attempt{ID: r.PathValue("id"), Job: jobID, Number: 1} })
	var both sync.WaitGroup
	both.Add(2)
	f.on("GET /attempts/{id}/log", func(r *http.Request) any {
		both.Done()
		both.Wait()
		var log []api.Event
		for i := range each {
			log = append(log, event(i+1, api.EventOutput, api.OutputOf(uint64(i+1), "stdout", nil, []byte(r.PathValue("id")+"\n")))) //nolint:gosec // few
		}
		return append(log, event(each+1, api.EventEnd, api.LogEnd{Attempt: api.Attempt{Ended: true, Class: "Succeeded"}, Complete: true}))
	})
	r := f.world(t).run("run", "--", "make")
	for _, id := range []string{attemptID, next} {
		if n := strings.Count(r.stdout, id+"\n"); n != each || len(r.stdout) != 2*each*(len(id)+1) {
			t.Errorf("%s: %d lines of %d, in %d bytes", id, n, each, len(r.stdout))
		}
	}
}

func TestTheFlagsOfRunMakeTheJob(t *testing.T) {
	f := newFake(t)
	got := f.story("Succeeded", 0)
	w := f.world(t)
	w.env["PASSED"] = "on"
	w.run("run", "--name", "title", "-e", "A=b=c", "--env", "PASSED", "--timeout", "90s", "--cpu", "1.5", "--memory", "4GiB", "--label", "x",
		"--label", "y", "--pool", "p", "--os", "linux", "--network", "host", "--retry-infra", "1", "-c", "make | tee log").want(t, 0, "", "")
	cpu, memory, limit, infra := api.Cores(1500), api.Size(4<<30), api.Duration(90*time.Second), uint8(1)
	want := api.RunRequest{Name: "title", Jobs: []api.JobRequest{{Key: "run", Spec: api.JobSpec{
		Steps: []api.Step{{Script: "make | tee log"}}, Env: map[string]string{"A": "b=c", "PASSED": "on"}, Network: "host",
		Resources: &api.Resources{CPU: &cpu, Memory: &memory}, Timeouts: &api.Timeouts{Run: &limit},
		Constraints: &api.Constraints{Labels: []string{"x", "y"}, Pool: "p", OS: "linux"}, Retry: &api.Retry{Infra: &infra},
	}}}}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Error(diff)
	}
}

func TestFlagsBehindTheCommandAreTheCommands(t *testing.T) {
	f := newFake(t)
	got := f.story("Succeeded", 0)
	f.world(t).run("run", "--", "ls", "--color", "-o", "x").want(t, 0, "", "")
	if diff := cmp.Diff([]string{"ls", "--color", "-o", "x"}, got.Jobs[0].Spec.Steps[0].Argv); diff != "" {
		t.Error(diff)
	}
}

func TestBadJobsAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	f := newFake(t)
	for _, args := range [][]string{
		{"run"},
		{"run", "-c", "a", "b"},
		{"run", "--cpu", "many", "x"},
		{"run", "--memory", "4GB", "x"},
		{"run", "--timeout", "30", "x"},
		{"run", "--env", "=x", "x"},
		{"run", "--env", "FORGEYARD_X=1", "x"},
		{"run", "--network", "moon", "x"},
		{"run", "--nonsense", "x"},
		{"run", "-o", "xml", "x"},
		{"run", "--timeout", "-1s", "x"},
	} {
		if r := f.world(t).run(args...); r.code != 64 || r.stderr == "" {
			t.Errorf("%q: code %d, %s", args, r.code, r.stderr)
		}
	}
	if len(f.requests) > 0 {
		t.Errorf("the daemon was asked: %v", f.requests)
	}
}

func TestDetachPrintsTheIDAlone(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0)
	r := f.world(t).run("run", "-d", "--", "make")
	if r.stdout != runID+"\n" || r.code != 0 || f.asked("GET /runs/"+runID+"/events") {
		t.Errorf("%+v", r)
	}
}

func TestJSONOfARunIsOneEventALine(t *testing.T) {
	f := newFake(t)
	f.story("Failed", 1, event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("<hi>\n"))))
	r := f.world(t).run("run", "-o", "json", "--", "make")
	var names []string
	for line := range strings.Lines(r.stdout) {
		var e struct {
			Name string
			Data map[string]any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"job", "output", "end", "run"}, names); diff != "" || r.code != 1 {
		t.Errorf("code %d %s", r.code, diff)
	}
}

func TestAnInterruptCancelsAndWaitsForTheEnd(t *testing.T) {
	f := newFake(t)
	f.story("Cancelled", 2)
	ctx, interrupt := context.WithCancel(t.Context())
	cancelled := make(chan struct{})
	f.on("POST /runs/{verb}", func(r *http.Request) any {
		if r.PathValue("verb") == runID+":cancel" {
			close(cancelled)
		}
		return ended("Running", 0)
	})
	f.serve("GET /runs/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		stream(w, []api.Event{event(1, api.EventChange, api.RunEvent{Kind: "job", ID: jobID, To: "Active"})})
		interrupt()
		select {
		case <-cancelled:
			stream(w, []api.Event{event(2, api.EventEnd, ended("Cancelled", 2))})
		case <-r.Context().Done():
		}
	})
	w := f.world(t)
	w.ctx = ctx
	w.run("run", "--", "sleep", "1000").want(t, 2, "", "cancelling; press Ctrl-C again")
}

func TestAWaitingJobSaysWhy(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0)
	told := make(chan struct{})
	var asked atomic.Int32
	f.on("GET /runs/{id}", func(*http.Request) any {
		if asked.Load() > 0 {
			return ended("Succeeded", 0)
		}
		return &api.Run{ID: runID, State: "Running", Jobs: []api.Job{{ID: jobID, State: "Ready"}}}
	})
	f.on("GET /jobs/{id}", func(*http.Request) any { return &api.Job{ID: jobID, State: "Ready"} })
	f.on("GET /jobs/{id}/explain", func(*http.Request) any {
		if asked.Add(1) == 1 {
			defer close(told)
		}
		return &api.Explanation{Summary: "label gpu is missing on 3 runners"}
	})
	f.serve("GET /runs/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		stream(w, []api.Event{event(1, api.EventChange, api.RunEvent{Kind: "job", ID: jobID, To: "Ready"})})
		select {
		case <-told:
			stream(w, []api.Event{event(2, api.EventEnd, ended("Succeeded", 0))})
		case <-r.Context().Done():
		}
	})
	f.world(t).run("run", "--", "make").want(t, 0, "", "waiting: label gpu is missing on 3 runners")
}

// Whoever follows a job hears that its runner is gone, and nothing of that while it is there.
func TestARunSaysThatTheRunnerOfAJobIsGone(t *testing.T) {
	f := newFake(t)
	told := make(chan struct{})
	var asked atomic.Int32
	f.on("POST /runs", func(*http.Request) any {
		return &api.Run{ID: runID, State: "Running", Jobs: []api.Job{{ID: jobID, State: "Active"}}}
	})
	f.on("GET /runs/{id}", func(*http.Request) any {
		select {
		case <-told:
			return ended("Succeeded", 0)
		default:
		}
		return &api.Run{ID: runID, State: "Running", Jobs: []api.Job{{ID: jobID, State: "Active"}}}
	})
	f.on("GET /jobs/{id}", func(*http.Request) any { return &api.Job{ID: jobID, State: "Active"} })
	f.on("GET /jobs/{id}/explain", func(*http.Request) any {
		switch asked.Add(1) {
		case 1:
			return &api.Explanation{State: "Active", Summary: "runner one has it"}
		case 2:
			defer close(told)
		}
		return &api.Explanation{State: "Active", Waiting: []string{"runner one"}, Summary: "runner one has it; it is not connected"}
	})
	f.serve("GET /runs/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		stream(w, []api.Event{event(1, api.EventChange, api.RunEvent{Kind: "job", ID: jobID, To: "Active"})})
		select {
		case <-told:
			stream(w, []api.Event{event(2, api.EventEnd, ended("Succeeded", 0))})
		case <-r.Context().Done():
		}
	})
	f.world(t).run("run", "--", "make").want(t, 0, "", "waiting: runner one has it; it is not connected")
}

func TestASubmissionOfUnknownFateIsRepeatedWithItsKey(t *testing.T) {
	f := newFake(t)
	var keys []string
	f.on("POST /runs", func(r *http.Request) any {
		if keys = append(keys, r.Header.Get(api.HeaderIdempotencyKey)); len(keys) < 3 {
			return api.NewProblem(api.CodeUnknownOutcome, "the disk did not say")
		}
		return &api.Run{ID: runID}
	})
	f.world(t).run("run", "-d", "--", "make").want(t, 0, runID, "")
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("keys %q", keys)
	}
}

// local is a daemon in this process: that of a fake.
type local struct {
	endpoint string
	options  *cli.LocalOptions
	live     *bool
	bare     bool // this machine cannot confine jobs
}

func (local) Look(context.Context, cli.LocalOptions) (string, func() error, error) {
	return "", nil, nil
}

func (l local) Find(string) string { return "" }

func (l local) Run(ctx, _ context.Context, o cli.LocalOptions, use func(context.Context, string) error) error {
	*l.options = o
	if l.bare && !o.AllowUnsandboxed {
		return &cli.NoSandbox{Err: errors.New("no namespaces here")}
	}
	if l.bare && o.Unconfined != nil {
		o.Unconfined(errors.New("no namespaces here"))
	}
	*l.live = true
	defer func() { *l.live = false }()
	return use(ctx, l.endpoint)
}

func TestWithoutAServerTheDaemonRunsInThisProcess(t *testing.T) {
	f := newFake(t)
	f.story("Failed", 1, event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("hello\n"))))
	w := newWorld(t)
	var o cli.LocalOptions
	var live bool
	w.local = local{f.server.URL, &o, &live, false}
	w.run("run", "--", "make").want(t, 1, "hello\n", "run Failed")
	if live || o.Data != w.env["HOME"]+"/.local/share/forgeyard" || o.Listen != "" {
		t.Errorf("still live: %t, options %+v", live, o)
	}
	w.run("run", "-d", "--", "make").want(t, 64, "", "--detach needs a daemon that goes on")
}

func TestASecondCommandAsksTheOwnerOfTheFolder(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0)
	w := newWorld(t)
	w.local = nobody{endpoint: f.server.URL}
	w.run("run", "--", "make").want(t, 0, "", "run Succeeded")
	w.run("up").want(t, 1, "", "another process serves")
}

// leaving is a local whose folder has an owner at the first look, who is about to stop.
type leaving struct {
	local
	owner *string
}

func (l leaving) Find(string) string {
	owner := *l.owner
	*l.owner = ""
	return owner
}

func TestWhoseOwnerStopsMeanwhileBecomesTheOwner(t *testing.T) {
	for name, stops := range map[string]func(owner *fake, keys *[]string){
		"before it is asked": func(owner *fake, _ *[]string) { owner.server.Close() },
		"instead of an answer": func(owner *fake, keys *[]string) {
			owner.serve("POST /runs", func(_ http.ResponseWriter, r *http.Request) {
				*keys = append(*keys, r.Header.Get(api.HeaderIdempotencyKey))
				panic(http.ErrAbortHandler) // which closes the connection
			})
		},
		"and takes nothing any more": func(owner *fake, keys *[]string) {
			owner.serve("POST /runs", func(w http.ResponseWriter, r *http.Request) {
				*keys = append(*keys, r.Header.Get(api.HeaderIdempotencyKey))
				refuse(w, api.NewProblem(api.CodeUnavailable, "it stops"))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var keys []string
			owner := newFake(t)
			owner.story("Succeeded", 0)
			stops(owner, &keys)
			f := newFake(t)
			f.story("Succeeded", 0)
			taken := f.answers["POST /runs"]
			f.serve("POST /runs", func(w http.ResponseWriter, r *http.Request) {
				keys = append(keys, r.Header.Get(api.HeaderIdempotencyKey))
				taken(w, r)
			})
			w := newWorld(t)
			var o cli.LocalOptions
			var live bool
			w.local = leaving{local{f.server.URL, &o, &live, false}, &owner.server.URL}
			w.run("run", "--", "make").want(t, 0, "", "run Succeeded")
			if len(slices.Compact(keys)) != 1 {
				t.Errorf("submitted with the keys %q", keys)
			}
		})
	}
}
