package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func reader(body string) io.Reader {
	if body == "" {
		return nil
	}
	return strings.NewReader(body)
}

// problemIn reads the problem of an answer.
func problemIn(t *testing.T, answer *http.Response) api.Problem {
	t.Helper()
	var p api.Problem
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p); err != nil || answer.Header.Get("Content-Type") != api.TypeProblem || p.Status != answer.StatusCode {
		t.Fatalf("%s with %s is no problem: %v", answer.Status, text, err)
	}
	return p
}

func TestEveryRefusalIsAProblemWithItsCode(t *testing.T) {
	w := newWorld(t)
	run := w.submit(job("a"))
	for _, c := range []struct {
		method, path, kind, body string
		header                   []string
		want                     api.Code
	}{
		{"GET", "/", "", "", nil, api.CodeNoRoute},
		{"GET", "/api/v1/nothing", "", "", nil, api.CodeNoRoute},
		{"GET", "/api/v1/runs/" + run.ID + "/nothing", "", "", nil, api.CodeNoRoute},
		{"DELETE", "/api/v1/runs", "", "", nil, api.CodeMethod},
		{"PUT", "/api/v1/runs/" + run.ID, "", "", nil, api.CodeMethod},
		{"POST", "/api/v1/runs/" + run.ID, "", "", nil, api.CodeMethod},
		{"POST", "/api/v1/runs/" + run.ID + ":paint", "", "", nil, api.CodeNoRoute},
		{"POST", "/api/v1/runners/x:paint", "", "", nil, api.CodeNotFound},
		{"POST", "/api/v1/runs", "", "{}", nil, api.CodeMediaType},
		{"POST", "/api/v1/runs", "text/plain", "{}", nil, api.CodeMediaType},
		{"POST", "/api/v1/runs", "application/json", "{", nil, api.CodeMalformed},
		{"POST", "/api/v1/runs", "application/json; charset=utf-8", `{"jobs":[]}`, nil, api.CodeInvalid},
		{"POST", "/api/v1/runs", "application/json", `{"job":[]}`, nil, api.CodeInvalid},
		{"POST", "/api/v1/runs", "application/json", strings.Repeat(" ", api.MaxRunBytes+1), nil, api.CodeTooLarge},
		{"POST", "/api/v1/enrollment-tokens", "application/json", strings.Repeat(" ", api.MaxRequestBytes+1), nil, api.CodeTooLarge},
		{"POST", "/api/v1/runs", "application/json", `{"jobs":[]}`, []string{api.HeaderIdempotencyKey, strings.Repeat("k", 200)}, api.CodeMalformed},
		{"GET", "/api/v1/runs/" + run.ID[:3], "", "", nil, api.CodeNotFound},
		{"GET", "/api/v1/runs/" + run.ID + "0", "", "", nil, api.CodeNotFound},
		{"GET", "/api/v1/runs/UUUU", "", "", nil, api.CodeNotFound},
		{"GET", "/api/v1/jobs/00000000000000000000000000", "", "", nil, api.CodeNotFound},
		{"GET", "/api/v1/attempts/0000/log", "", "", nil, api.CodeNotFound},
		{"GET", "/api/v1/runs?limit=0", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/runs?limit=201", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/runs?cursor=x", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/runs?state=odd", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/runners?cursor=x", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/attempts/0000/log?follow=maybe", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/attempts/0000/log?from_seq=-1", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/attempts/0000/log?format=pdf", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/attempts/0000/log?tail=1000000", "", "", nil, api.CodeMalformed},
		{"GET", "/api/v1/attempts/0000/log", "", "", []string{api.HeaderLastEventID, "x"}, api.CodeMalformed},
		{"POST", "/api/v1/enrollment-tokens", "application/json", `{"slots":0}`, nil, api.CodeInvalid},
		{"POST", "/api/v1/enrollment-tokens", "application/json", `{"trust":"total"}`, nil, api.CodeInvalid},
		{"POST", "/api/v1/enrollment-tokens", "application/json", `{"expires_in":"0s"}`, nil, api.CodeInvalid},
		{"POST", "/api/v1/enrollment-tokens", "application/json", `{"expires_in":"10000h"}`, nil, api.CodeInvalid},
	} {
		answer := w.ask(c.method, c.path, c.kind, c.body, c.header...)
		if p := problemIn(t, answer); p.Code != c.want || p.Status != c.want.Status() || p.Title == "" {
			t.Errorf("%s %s: %s (%d), not %s: %s", c.method, c.path, p.Code, p.Status, c.want, p.Detail)
		}
		if c.want == api.CodeMethod && c.method != "POST" && answer.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
}

func TestOnlyTheTokenOpensTheDoor(t *testing.T) {
	w := newWorld(t)
	for _, header := range []string{"", token, "Bearer", "Bearer ", "Bearer " + token + "x", "Bearer " + token[1:], "Basic " + token, "bearer" + token} {
		for _, path := range []string{"/api/v1/runs", "/metrics", "/", "/api/v1/runners"} {
			req, _ := http.NewRequestWithContext(w.ctx, http.MethodGet, w.url+path, nil)
			req.Header.Set("Authorization", header)
			answer, err := http.DefaultClient.Do(req)
			w.must(err)
			if p := problemIn(t, answer); p.Code != api.CodeUnauthenticated || answer.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%q at %s: %s", header, path, p.Code)
			}
			_ = answer.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if _, err := w.client.Runs(w.ctx, api.RunFilter{}, api.Page{}); err != nil {
		t.Errorf("with the token: %v", err)
	}
	w.access.SetFolderToken(forge.NewSecret([]byte("another")))
	if _, err := w.client.Runs(w.ctx, api.RunFilter{}, api.Page{}); w.problem(err).Code != api.CodeUnauthenticated {
		t.Errorf("with the old token: %v", err)
	}
	if _, err := w.overSocket().Runs(w.ctx, api.RunFilter{}, api.Page{}); err != nil {
		t.Errorf("over the socket: %v", err)
	}
}

func TestHealthIsToldToAnybodyAndReadinessSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	stranger, err := api.NewClient(w.url, api.Options{})
	w.must(err)
	defer stranger.Close()
	w.checks = []api.Check{{Name: "store", OK: true}}
	if h, err := stranger.Ready(w.ctx); err != nil || h.Status != "ok" || len(h.Checks) != 1 {
		t.Errorf("ready: %+v, %v", h, err)
	}
	w.checks = append(w.checks, api.Check{Name: "listener", Detail: "the port is taken"})
	_, err = stranger.Ready(w.ctx)
	if p := w.problem(err); p.Code != api.CodeUnavailable || len(p.Problems) != 1 || p.Problems[0] != (api.Wrong{Path: "listener", What: "the port is taken"}) {
		t.Errorf("not ready: %+v", p)
	}
	if answer := w.ask("GET", "/healthz", "", ""); answer.StatusCode != 200 {
		t.Errorf("healthz: %s", answer.Status)
	}
}

func TestAPanicIsAProblemAndTheServerGoesOn(t *testing.T) {
	s := New(Config{})
	s.mux.HandleFunc("GET /before", func(http.ResponseWriter, *http.Request) { panic("oh") })
	s.mux.HandleFunc("GET /behind", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("oh")
	})
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.HTTP(Socket)
	server.Start()
	defer server.Close()
	for range 2 {
		answer, err := http.Get(server.URL + "/before")
		if err != nil {
			t.Fatal(err)
		}
		if p := problemIn(t, answer); p.Code != api.CodeInternal || strings.Contains(p.Detail, "oh") {
			t.Errorf("got %+v", p)
		}
		_ = answer.Body.Close()
	}
	answer, err := http.Get(server.URL + "/behind")
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looks whole")
	}
	http.DefaultClient.CloseIdleConnections()
}

// The repetition of a submission is answered with 200, and the next one that makes a run with 201 again.
func TestTheStatusOfAnAnswerIsItsOwn(t *testing.T) {
	w := newWorld(t)
	const body = `{"jobs":[{"key":"a","spec":{"steps":[{"argv":["true"]}],"sandbox":{"kind":"process"}}}]}`
	var got []int
	for _, key := range []string{"once", "once", "another"} {
		got = append(got, w.ask("POST", "/api/v1/runs", api.TypeJSON, body, api.HeaderIdempotencyKey, key).StatusCode)
	}
	if !slices.Equal(got, []int{http.StatusCreated, http.StatusOK, http.StatusCreated}) {
		t.Errorf("%v", got)
	}
}

func TestARunGoesThroughTheInterface(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r1")
	run, err := w.client.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{job("a"), job("b", "a")}}, "once")
	w.must(err)
	again, err := w.client.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{job("a"), job("b", "a")}}, "once")
	if err != nil || again.ID != run.ID {
		t.Errorf("again: %v, %v", again, err)
	}
	_, err = w.client.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{job("a")}}, "once")
	if p := w.problem(err); p.Code != api.CodeIdempotency {
		t.Errorf("another request: %v", p)
	}
	if run.State != "Planned" || run.Counts["Ready"] != 1 || run.Counts["Waiting"] != 1 || run.Trust != "trusted" {
		t.Errorf("at first: %+v", run)
	}
	why, err := w.client.ExplainJob(w.ctx, run.Jobs[1].ID)
	if err != nil || len(why.Waiting) != 1 || !strings.HasPrefix(why.Waiting[0], "a (") {
		t.Errorf("why: %+v, %v", why, err)
	}
	c := a.take()
	a.end(c, forge.Result{Class: forge.ExitCode, ExitCode: 137, Steps: []forge.StepResult{{Class: forge.ExitCode, ExitCode: 137, Start: 5}}})
	var end api.Run
	for e, err := range w.client.Watch(w.ctx, run.ID[:10]) {
		w.must(err)
		if e.Name == api.EventEnd {
			w.must(e.Decode(&end))
		}
	}
	if end.State != "Failed" || *end.ExitCode != 1 || end.Counts["Skipped"] != 1 || end.Jobs[0].Class != "ExitCode" || end.Jobs[0].Fault != "user" {
		t.Errorf("at the end: %+v", end)
	}
	j, err := w.client.Job(w.ctx, run.Jobs[0].ID)
	w.must(err)
	at := j.AllAttempts[0]
	if at.ExitCode == nil || *at.ExitCode != 137 || at.Signal != nil || at.Steps[0].Name != "say" || at.RunnerName != "r1" || at.Lease.State != "Released" {
		t.Errorf("attempt: %+v", at)
	}
	if j.Definition.Steps[0].Argv[0] != "echo" || j.Reason != "its last attempt failed: it ended with exit code 137, in step 1" {
		t.Errorf("job: %+v", j)
	}
	byItself, err := w.client.Attempt(w.ctx, at.ID)
	if err != nil || byItself.Reason != at.Reason {
		t.Errorf("by itself: %+v, %v", byItself, err)
	}
	if _, err := w.client.CancelRun(w.ctx, run.ID); err != nil {
		t.Errorf("cancelling what has ended: %v", err)
	}
}

// The interface asks and shows; who holds a job, and how it ended, is said by its agent and the store's rules alone.
func TestNobodyTellsAnAgentOrAnAttemptWhatToDoThroughTheInterface(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	w.submit(job("a"))
	c := a.take()
	before, err := w.client.Attempt(w.ctx, c.Attempt.String())
	w.must(err)
	for _, path := range []string{
		"attempts/" + c.Attempt.String(), "attempts/" + c.Attempt.String() + ":complete", "attempts/" + c.Attempt.String() + "/log",
		"leases/" + c.Lease.String(), "leases/" + c.Lease.String() + ":renew", "runners/r/attempts", "transport/sessions", "jobs/" + c.Job.String() + ":offer",
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			answer := w.ask(method, "/api/v1/"+path, "application/json", `{"state":"Succeeded"}`)
			if p := problemIn(t, answer); p.Code != api.CodeNoRoute && p.Code != api.CodeMethod {
				t.Errorf("%s %s: %s", method, path, p.Code)
			}
		}
	}
	after, err := w.client.Attempt(w.ctx, c.Attempt.String())
	if err != nil || after.State != before.State || after.Lease.State != before.Lease.State || after.Lease.Renewals != before.Lease.Renewals {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
}

// Case B10.
func TestProblemsOfASubmissionHaveThePlacesOfItsJSON(t *testing.T) {
	w := newWorld(t)
	answer := w.ask("POST", "/api/v1/runs", "application/json", `{"jobs":[
		{"key":"a","spec":{"steps":[{"argv":["true"]}],"timeouts":{"run":"0s"}}},
		{"key":"b","needs":[{"job":"c"}],"spec":{"steps":[{"argv":["true"],"env":{"1":"x"}}],"network":"wifi"}}]}`)
	p := problemIn(t, answer)
	var paths []string
	for _, one := range p.Problems {
		paths = append(paths, one.Path)
	}
	if want := []string{"jobs[0].spec.timeouts.run", "jobs[1].spec.network", "jobs[1].spec.steps[0].env.1"}; !slices.Equal(paths, want) {
		t.Errorf("got %v", paths)
	}
	answer = w.ask("POST", "/api/v1/runs", "application/json", `{"jobs":[{"key":"b","needs":[{"job":"c"}],"spec":{"steps":[{"argv":["true"]}]}}]}`)
	if p := problemIn(t, answer); p.Code != api.CodeInvalid || p.Problems[0].Path != "jobs[0].needs[0]" {
		t.Errorf("got %+v", p)
	}
	answer = w.ask("POST", "/api/v1/runs", "application/json",
		`{"jobs":[{"key":"b","spec":{"steps":[{"argv":["true"]}],"connectivity":{"mode":"offline","extra":"1h"}}}]}`)
	if p := problemIn(t, answer); p.Code != api.CodeNotYet || p.Problems[0].Path != "jobs[0].spec.connectivity.mode" {
		t.Errorf("got %+v", p)
	}
}

func TestListsComeInPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for range 5 {
		want = append([]string{w.submit(job("a")).ID}, want...)
	}
	var got []string
	page := api.Page{Limit: 2}
	for {
		list, err := w.client.Runs(w.ctx, api.RunFilter{Project: "default", State: "Planned"}, page)
		w.must(err)
		for _, r := range list.Items {
			got = append(got, r.ID)
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, not %v", got, want)
	}
	if list, err := w.client.Runs(w.ctx, api.RunFilter{State: "Failed"}, api.Page{}); err != nil || list.Items == nil || len(list.Items) > 0 {
		t.Errorf("failed ones: %+v, %v", list, err)
	}
}

func TestAnIDThatFitsSeveralIsAmbiguous(t *testing.T) {
	w := newWorld(t)
	first, second := w.submit(job("a")), w.submit(job("a"))
	same := 0
	for first.ID[same] == second.ID[same] {
		same++
	}
	_, err := w.client.Run(w.ctx, first.ID[:same])
	if p := w.problem(err); p.Code != api.CodeAmbiguous || !strings.Contains(p.Detail, first.ID) || !strings.Contains(p.Detail, second.ID) {
		t.Errorf("got %v", p)
	}
	for _, text := range []string{first.ID, strings.ToLower(first.ID), first.ID[:same+1]} {
		if r, err := w.client.Run(w.ctx, text); err != nil || r.ID != first.ID {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
}

func TestRunnersAreAdministeredByNameOrID(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r1")
	slots := uint32(3)
	made, err := w.client.CreateRunner(w.ctx, &api.RunnerRequest{Name: "r2", Slots: &slots, Labels: []string{"big"}})
	w.must(err)
	if made.Runner.State != "never" || made.Runner.Slots != 3 || made.Token.Runner != made.Runner.ID ||
		!strings.HasPrefix(made.Token.Token, "fy_enroll_") || made.Token.Fingerprint == "" {
		t.Errorf("made %+v", made.Runner)
	}
	if _, err := w.client.CreateRunner(w.ctx, &api.RunnerRequest{Name: "r2"}); w.problem(err).Code != api.CodeConflict {
		t.Errorf("the same name: %v", err)
	}
	for _, step := range []struct {
		verb api.RunnerVerb
		want string
	}{
		{api.RunnerDrain, "draining"},
		{api.RunnerResume, "online"},
		{api.RunnerDisable, "disabled"},
		{api.RunnerEnable, "online"},
		{api.RunnerRevoke, "revoked"},
	} {
		if r, err := w.client.SetRunner(w.ctx, "r1", step.verb); err != nil || r.State != step.want {
			t.Errorf("%s: %+v, %v", step.verb, r, err)
		}
	}
	if _, err := w.client.SetRunner(w.ctx, a.id.String(), api.RunnerEnable); w.problem(err).Code != api.CodeConflict {
		t.Errorf("enabling what was revoked: %v", err)
	}
	if why, err := w.client.ExplainRunner(w.ctx, "r1"); err != nil || !strings.HasPrefix(why.Summary, "it was revoked") {
		t.Errorf("why: %+v, %v", why, err)
	}
	if err := w.client.DeleteRunner(w.ctx, "r1"); w.problem(err).Code != api.CodeConflict {
		t.Errorf("deleting what is connected: %v", err)
	}
	w.control.Disconnected(a.id)
	w.must(w.client.DeleteRunner(w.ctx, "r1"))
	list, err := w.client.Runners(w.ctx, api.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "r2" {
		t.Errorf("left: %+v, %v", list, err)
	}
	var acts []string
	audit, err := w.client.Audit(w.ctx, api.Page{})
	w.must(err)
	for _, e := range audit.Items {
		acts = append(acts, e.Action)
		if e.Actor != "admin" {
			t.Errorf("%s by %q", e.Action, e.Actor)
		}
	}
	want := []string{
		"runner.delete", "runner.revoke", "runner.enable", "runner.disable", "runner.resume", "runner.drain", "token.create", "runner.create",
	}
	if !slices.Equal(acts, want) {
		t.Errorf("audit: %v", acts)
	}
}

func TestATokensTextIsThereOnce(t *testing.T) {
	w := newWorld(t)
	made, err := w.client.CreateToken(w.ctx, &api.TokenRequest{})
	if err != nil || made.Token == "" || made.State != "open" {
		t.Fatalf("made %+v, %v", made, err)
	}
	list, err := w.client.Tokens(w.ctx, api.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Token != "" || list.Items[0].ID != made.ID {
		t.Errorf("listed %+v, %v", list, err)
	}
}

func TestMetricsCountRequestsByRouteAndNeverByID(t *testing.T) {
	w := newWorld(t)
	run := w.submit(job("a"))
	_, err := w.client.Run(w.ctx, run.ID)
	w.must(err)
	text, err := io.ReadAll(w.ask("GET", "/metrics", "", "").Body)
	w.must(err)
	if !strings.Contains(string(text), `forgeyard_http_requests_total{route="GET /api/v1/runs/{id}",status="2xx"} 1`) {
		t.Errorf("nothing is said of the route:\n%s", text)
	}
	if strings.Contains(string(text), run.ID) {
		t.Error("an id is in the metrics")
	}
}

func TestEveryErrorOfTheStoreHasACode(t *testing.T) {
	for err, want := range map[error]api.Code{
		store.ErrUnknown: api.CodeUnknownOutcome, store.ErrFailed: api.CodeUnavailable, store.ErrBusy: api.CodeUnavailable,
		store.ErrClosed: api.CodeUnavailable, store.ErrFull: api.CodeUnavailable, store.ErrNotFound: api.CodeNotFound,
		store.ErrExists: api.CodeConflict, store.ErrInUse: api.CodeConflict, control.ErrKeyReused: api.CodeIdempotency,
		control.ErrRevoked: api.CodeConflict, io.ErrUnexpectedEOF: "",
	} {
		got := api.Code("")
		if p := problemOf(err); p != nil {
			got = p.Code
		}
		if got != want {
			t.Errorf("%v: %q, not %q", err, got, want)
		}
	}
}

func TestTheSmallAnswers(t *testing.T) {
	w := newWorld(t)
	if v, err := w.client.Version(w.ctx); err != nil || v.Version != "v0" {
		t.Errorf("version: %+v, %v", v, err)
	}
	if l, err := w.client.Sessions(w.ctx); err != nil || len(l.Items) != 1 {
		t.Errorf("sessions: %+v, %v", l, err)
	}
	if _, err := w.client.Protocols(w.ctx); err != nil {
		t.Errorf("protocols: %v", err)
	}
	if _, err := w.client.TransportStatus(w.ctx); err != nil {
		t.Errorf("status: %v", err)
	}
}
