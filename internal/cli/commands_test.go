package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/api"
)

func TestListsAreTablesOrJSON(t *testing.T) {
	f := newFake(t)
	f.on("GET /runs", func(r *http.Request) any {
		if got := r.URL.Query().Encode(); got != "limit=50&state=Failed" {
			t.Errorf("asked with %s", got)
		}
		return &api.List[api.Run]{Items: []api.Run{{ID: runID, State: "Failed", Name: "evil \x1b]0;title\x07 name", Counts: map[string]int{"Waiting": 1, "Failed": 2}}}, Next: "abc"}
	})
	r := f.world(t).run("runs", "list", "--state", "Failed")
	r.want(t, 0, "RUN                         STATE   NAME", "There is more: forgeyard runs list --after abc")
	r.want(t, 0, runID+"  Failed  evil  ]0;title  name  2 failed, 1 waiting", "")
	if strings.Contains(r.stdout, "\x1b") {
		t.Errorf("an escape reached the table: %q", r.stdout)
	}
	f.world(t).run("runs", "list", "--state", "Failed", "-o", "json").want(t, 0, `"next": "abc"`, "")
}

func TestProblemsSayWhatAndWhatNext(t *testing.T) {
	for code, want := range map[api.Code]struct {
		exit int
		next string
	}{
		api.CodeUnauthenticated: {4, "--token-file FILE"},
		api.CodeForbidden:       {4, "the detail"}, // which has the next command
		api.CodeNotFound:        {1, "forgeyard runs list"},
		api.CodeAmbiguous:       {64, "Write more of the id."},
		api.CodeConflict:        {1, "the detail"},
		api.CodeInvalid:         {64, "the detail"},
		api.CodeInternal:        {3, "forgeyard transport doctor"},
		api.CodeNoRoom:          {3, "forgeyard cas stat"},
	} {
		f := newFake(t)
		f.on("GET /runs/{id}", func(*http.Request) any { return api.NewProblem(code, "the detail") })
		r := f.world(t).run("runs", "show", "01J")
		r.want(t, want.exit, "", "the detail")
		r.want(t, want.exit, "", want.next)
	}
}

func TestADaemonThatIsNotThereIsInfrastructure(t *testing.T) {
	f := newFake(t)
	w := f.world(t)
	f.server.Close()
	w.run("runs", "list").want(t, 3, "", "Is "+f.server.URL+" the daemon's address")
}

func TestWithoutADaemonTheErrorSaysHowToGetOne(t *testing.T) {
	newWorld(t).run("runs", "list").want(t, 64, "", "run something here: forgeyard run")
}

func TestWrongUsageIs64WithAHint(t *testing.T) {
	w := newWorld(t)
	w.run("rums").want(t, 64, "", "Did you mean: forgeyard run")
	w.run("runs", "lst").want(t, 64, "", "Did you mean: forgeyard runs list")
	w.run("runs", "show").want(t, 64, "", "See: forgeyard runs show --help")
	w.run("runs", "list", "--no-such-flag").want(t, 64, "", "See: forgeyard runs list --help")
	w.run("run", "--help").want(t, 0, "forgeyard run -- go test ./...", "")
	w.run().want(t, 0, "Exit codes:", "")
	w.run("completion", "bash").want(t, 0, "complete -F _forgeyard forgeyard", "")
}

func TestWatchEndsAsTheRunEnds(t *testing.T) {
	f := newFake(t)
	f.story("Failed", 1)
	r := f.world(t).run("runs", "watch", runID)
	r.want(t, 1, "attempt "+" "+attemptID+" Running", "")
	r.want(t, 1, "run Failed", "")
}

func TestCancelAsksForIt(t *testing.T) {
	f := newFake(t)
	f.on("POST /runs/{verb}", func(*http.Request) any { return &api.Run{ID: runID, State: "Running"} })
	f.world(t).run("runs", "cancel", runID).want(t, 0, "cancel requested", "")
	if !f.asked("POST /runs/" + runID + ":cancel") {
		t.Errorf("asked %v", f.requests)
	}
}

func TestLogsAreFoundByRunJobOrAttempt(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0, event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("hello\n"))))
	f.on("GET /attempts/{id}", func(r *http.Request) any {
		if r.PathValue("id") != attemptID {
			return api.NewProblem(api.CodeNotFound, "no attempt")
		}
		return &api.Attempt{ID: attemptID}
	})
	f.on("GET /runs/{id}", func(r *http.Request) any {
		if r.PathValue("id") != runID {
			return api.NewProblem(api.CodeNotFound, "no run")
		}
		return ended("Succeeded", 0)
	})
	f.on("GET /jobs/{id}", func(r *http.Request) any {
		if r.PathValue("id") != jobID {
			return api.NewProblem(api.CodeNotFound, "there is no run, job or attempt")
		}
		return &api.Job{ID: jobID, Run: runID, Key: "run", CurrentAttempt: attemptID, AllAttempts: []api.Attempt{{ID: attemptID, Number: 1}}}
	})
	for _, id := range []string{attemptID, jobID, runID} {
		f.world(t).run("logs", id).want(t, 0, "hello\n", "")
	}
	f.world(t).run("logs", "--attempt", "1", jobID).want(t, 0, "hello\n", "")
	f.world(t).run("logs", "--attempt", "2", jobID).want(t, 1, "", "job run has no attempt 2; it has 1")
	f.world(t).run("logs", "01JXXX").want(t, 1, "", "there is no run, job or attempt")
}

func TestLogsOfOneStep(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0,
		event(1, api.EventStepStarted, api.LogStep{Seq: 1, Step: 0}), event(2, api.EventOutput, api.OutputOf(2, "stdout", nil, []byte("zero\n"))),
		event(3, api.EventStepStarted, api.LogStep{Seq: 3, Step: 1}), event(4, api.EventOutput, api.OutputOf(4, "stdout", nil, []byte("one\n"))))
	f.on("GET /attempts/{id}", func(*http.Request) any { return &api.Attempt{ID: attemptID} })
	if r := f.world(t).run("logs", "--step", "2", attemptID); r.stdout != "one\n" {
		t.Errorf("%+v", r)
	}
	if r := f.world(t).run("logs", "--step", "1", attemptID); r.stdout != "zero\n" {
		t.Errorf("%+v", r)
	}
}

func TestWhyNamesEveryRunner(t *testing.T) {
	f := newFake(t)
	f.on("GET /jobs/{id}/explain", func(*http.Request) any {
		return &api.Explanation{
			State: "Ready", Summary: "no runner fits", Ahead: 2,
			Runners: []api.PassedRunner{{Name: "build-1", Misses: []api.Miss{{Text: "label gpu is missing"}, {Text: "memory 4GiB < 8GiB"}}}},
		}
	})
	r := f.world(t).run("job", "why", jobID)
	r.want(t, 0, "no runner fits", "")
	r.want(t, 0, "build-1  label gpu is missing; memory 4GiB < 8GiB", "")
}

func TestARunOfOneJobStandsForItsJob(t *testing.T) {
	f := newFake(t)
	none := api.NewProblem(api.CodeNotFound, "there is no job")
	jobs := []api.Job{{ID: jobID, Key: "a"}}
	f.on("GET /runs/{id}", func(r *http.Request) any {
		if r.PathValue("id") != runID {
			return api.NewProblem(api.CodeNotFound, "there is no run")
		}
		return &api.Run{ID: runID, Jobs: jobs}
	})
	f.on("GET /jobs/{id}", func(r *http.Request) any {
		if r.PathValue("id") != jobID {
			return none
		}
		return &jobs[0]
	})
	f.on("GET /jobs/{id}/explain", func(r *http.Request) any {
		if r.PathValue("id") != jobID {
			return none
		}
		return &api.Explanation{State: "Ready", Summary: "no runner fits"}
	})
	f.world(t).run("job", "why", runID).want(t, 0, "no runner fits", "")
	f.world(t).run("job", "show", runID).want(t, 0, jobID, "")
	f.world(t).run("job", "why", attemptID).want(t, 1, "", "there is no job")
	jobs = append(jobs, api.Job{ID: attemptID, Key: "b"})
	f.world(t).run("job", "why", runID).want(t, 64, "", runID+" is a run of several jobs, and this is about one of them\nSee their ids: forgeyard runs show "+runID)
}

func TestRunnersAreManaged(t *testing.T) {
	f := newFake(t)
	slots := uint32(4)
	cpu, memory := api.Cores(8000), api.Size(63<<30+512<<20)
	runner := api.Runner{
		ID: "01JRNR", Name: "build-1", State: "draining", Pool: "default", Slots: 4,
		Capabilities: &api.Capabilities{OS: "linux", Arch: "amd64", Resources: &api.Resources{CPU: &cpu, Memory: &memory, Slots: &slots}},
		LastReject:   &api.Reject{Reason: "policy"},
	}
	f.on("GET /runners", func(*http.Request) any { return &api.List[api.Runner]{Items: []api.Runner{runner}} })
	f.on("GET /runners/{id}", func(*http.Request) any { return &runner })
	f.on("GET /runners/{id}/explain", func(*http.Request) any { return &api.RunnerExplanation{Summary: "it drains"} })
	f.on("DELETE /runners/{id}", func(*http.Request) any { return nil })
	f.on("POST /runners/{verb}", func(*http.Request) any { return &runner })
	f.world(t).run("runner", "list").want(t, 0, "build-1  draining  default  0/4", "")
	f.world(t).run("runner", "show", "build-1").want(t, 0, "8 cores, 63.5GiB memory, 4 slots", "")
	f.world(t).run("runner", "why", "build-1").want(t, 0, "it drains", "")
	slots = 1 // of eight that the daemon would let it have, say
	runner.Slots = 8
	f.world(t).run("runner", "list").want(t, 0, "default  0/1", "")
	f.world(t).run("runner", "show", "build-1").want(t, 0, "1, where it could have 8: its agent takes no more (max_parallel_jobs)\n", "")
	for _, verb := range []string{"drain", "resume", "disable", "enable", "revoke"} {
		f.world(t).run("runner", verb, "build-1").want(t, 0, "runner build-1: ", "")
		if !f.asked("POST /runners/build-1:" + verb) {
			t.Errorf("%s was not asked for: %v", verb, f.requests)
		}
	}
	f.world(t).run("runner", "resume", "build-1").want(t, 0, "runner build-1: takes jobs again, once its agent does; see: forgeyard runner why build-1\n", "")
	runner.State = "online"
	f.world(t).run("runner", "resume", "build-1").want(t, 0, "runner build-1: takes jobs again (online)\n", "")
	f.world(t).run("runner", "delete", "build-1").want(t, 0, "", "is deleted")
}

func TestEnrolmentTokensAreHandedOverWithCare(t *testing.T) {
	f := newFake(t)
	f.on("POST /enrollment-tokens", func(*http.Request) any { return &api.EnrollmentToken{ID: "01JTOK", Token: "fy_enroll_secret"} })
	f.on("POST /runners", func(*http.Request) any {
		return &api.RunnerCreated{Runner: api.Runner{Name: "b", ID: "01JRNR"}, Token: api.EnrollmentToken{Token: "fy_enroll_other"}}
	})
	listen := "192.0.2.7:7443"
	f.on("GET /transport/status", func(*http.Request) any { return &api.TransportStatus{Listen: listen} })
	if r := f.world(t).run("runner", "enroll-token"); r.stdout != "fy_enroll_secret\n" || strings.Contains(r.stderr, "secret") {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "token")
	if r := f.world(t).run("runner", "create", "b", "--out", file); r.code != 0 || strings.Contains(r.stdout+r.stderr, "fy_enroll") {
		t.Errorf("%+v", r)
	}
	f.world(t).run("runner", "enroll-token").want(t, 0, "", "standard input: forgeyard-agent enroll --endpoint quic://192.0.2.7:7443\n")
	listen = "[::]:7443"
	f.world(t).run("runner", "enroll-token", "--out", file+"2").want(t, 0, "", "enroll --endpoint quic://HOST:7443 --token-file token2\n")
	if r := f.world(t).run("runner", "enroll-token", "-o", "json"); strings.Contains(r.stderr, "forgeyard-agent") {
		t.Errorf("a script is told what to type: %s", r.stderr)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	f.world(t).run("runner", "create", "b", "--out", file).want(t, 1, "", "file exists")
}

func TestContextsAreSavedForThisUserAlone(t *testing.T) {
	f := newFake(t)
	f.on("GET /runs", func(r *http.Request) any {
		if r.Header.Get("Authorization") != "Bearer hush" {
			return api.NewProblem(api.CodeUnauthenticated, "who are you?")
		}
		return &api.List[api.Run]{Items: []api.Run{}}
	})
	w := newWorld(t)
	w.stdin = "hush\n"
	w.run("context", "add", "work", "--server", f.server.URL, "--token-file", "-").want(t, 0, "", "using work")
	w.run("runs", "list").want(t, 0, "RUN", "")
	w.run("context", "add", "other", "--server", "unix:///nowhere.sock").want(t, 0, "", "using other")
	w.run("runs", "list").want(t, 3, "", "unix:///nowhere.sock")
	w.run("--context", "work", "runs", "list").want(t, 0, "RUN", "")
	w.run("context", "use", "work").want(t, 0, "", "")
	w.run("context", "list").want(t, 0, "*     work   "+f.server.URL, "")
	for _, name := range []string{"contexts.json", "work.token"} {
		info, err := os.Stat(filepath.Join(w.env["HOME"], ".config", "forgeyard", name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	w.run("context", "rm", "work").want(t, 0, "", "")
	if _, err := os.Stat(filepath.Join(w.env["HOME"], ".config", "forgeyard", "work.token")); !os.IsNotExist(err) {
		t.Errorf("the token stays: %v", err)
	}
	w.run("context", "use", "work").want(t, 64, "", `there is no context "work"`)
	w.run("context", "add", "a/b", "--server", "http://x").want(t, 64, "", "no name for a context")
	w.run("context", "add", "x", "--server", "ftp://x").want(t, 64, "", "no address of a daemon")
	w.run("context", "add", "x").want(t, 64, "", "say which server")
}

// A context that cannot be saved leaves the token of the one that it would have replaced.
func TestABadContextLeavesTheTokenThatIsGood(t *testing.T) {
	w := newWorld(t)
	w.stdin = "hush\n"
	w.run("context", "add", "work", "--server", "http://x", "--token-file", "-").want(t, 0, "", "using work")
	w.stdin = "other\n"
	w.run("context", "add", "work", "--server", "ftp://x", "--token-file", "-").want(t, 64, "", "no address of a daemon")
	w.stdin = "two words\n"
	w.run("context", "add", "work", "--server", "http://y", "--token-file", "-").want(t, 4, "", "standard input holds more than a token")
	w.stdin = ""
	w.run("context", "add", "work", "--server", "http://y", "--token-file", "-").want(t, 4, "", "standard input is empty")
	if got, err := os.ReadFile(filepath.Join(w.env["HOME"], ".config", "forgeyard", "work.token")); err != nil || string(got) != "hush\n" {
		t.Errorf("the token is %q, %v", got, err)
	}
	w.run("context", "list").want(t, 0, "http://x", "")
}

func TestAPlaceWhereNothingCanBeKeptIsToldWithAnother(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.env["HOME"], "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.env["HOME"] = file
	w.stdin = "hush"
	for _, args := range [][]string{
		{"context", "add", "work", "--server", "http://x"}, {"context", "add", "work", "--server", "http://x", "--token-file", "-"}, {"toolchain", "allow", t.TempDir()},
	} {
		w.run(args...).want(t, 3, "", "not a directory\nSettings can be in another folder: XDG_CONFIG_HOME=DIR")
	}
	w.env["XDG_CONFIG_HOME"] = t.TempDir()
	w.run("context", "add", "work", "--server", "http://x", "--token-file", "-").want(t, 0, "", "using work")
}

func TestTheDoctorNamesWhatIsWrong(t *testing.T) {
	f := newFake(t)
	f.on("GET /version", func(*http.Request) any { return &api.Version{Version: "9.9"} })
	f.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok","checks":[{"name":"store","ok":true}]}`))
	})
	f.on("GET /transport/status", func(*http.Request) any { return &api.TransportStatus{Listen: "[::]:7443"} })
	r := f.world(t).run("transport", "doctor")
	r.want(t, 3, "ok    listens for agents    [::]:7443", "")
	r.want(t, 3, "FAIL  agents are connected  none; on a machine that should be one: forgeyard-agent doctor", "")
	f.world(t).run("transport", "status").want(t, 0, "Listens:", "")
}

func TestADaemonOfAnotherReleaseIsNamed(t *testing.T) {
	f := newFake(t)
	for _, request := range []string{"GET /version", "GET /runners"} {
		f.on(request, func(*http.Request) any { return api.NewProblem(api.CodeNoRoute, "everything is below /api/v9") })
	}
	f.world(t).run("runner", "list").want(t, 3, "", "it is of another release, and this is 1.2.3. Install the same on both.")
	f.world(t).run("transport", "doctor").want(t, 3, "is of another release, and this is 1.2.3: install the same on both", "")
}

func TestTheDoctorSaysWhereItHasLooked(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer page.Close()
	newWorld(t).run("--server", page.URL, "transport", "doctor").want(t, 3, "→ does a daemon run at "+page.URL, "")
}

func TestVersionShowsBoth(t *testing.T) {
	f := newFake(t)
	f.on("GET /version", func(*http.Request) any { return &api.Version{Version: "9.9"} })
	r := f.world(t).run("version", "-o", "json")
	r.want(t, 0, `"version": "1.2.3"`, "")
	r.want(t, 0, `"server": "9.9"`, "")
	if diff := cmp.Diff(0, newWorld(t).run("version").code); diff != "" {
		t.Error(diff)
	}
}
