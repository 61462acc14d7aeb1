package httpapi

import (
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// token makes an access token and returns its text.
func (w *world) token(name string, role forge.Role) string {
	w.t.Helper()
	_, text, err := w.access.Create(w.ctx, access.Request{Name: name, Role: role, Actor: "admin"})
	w.must(err)
	return string(text.Reveal())
}

// as returns a client that shows a token.
func (w *world) as(token string) *api.Client {
	w.t.Helper()
	c, err := api.NewClient(w.url, api.Options{Token: forge.NewSecret([]byte(token))})
	w.must(err)
	w.t.Cleanup(c.Close)
	return c
}

// finished is a run that has ended, with its jobs.
func (w *world) finished() *api.Run {
	w.t.Helper()
	a := w.agent("walked")
	run := w.submit(job("a"))
	a.end(a.take(), forge.Result{Class: forge.Succeeded, Steps: []forge.StepResult{{Class: forge.Succeeded}}})
	for e, err := range w.client.Watch(w.ctx, run.ID) {
		w.must(err)
		if e.Name == api.EventEnd {
			w.must(e.Decode(run))
		}
	}
	one, err := w.client.Job(w.ctx, run.Jobs[0].ID)
	w.must(err)
	run.Jobs[0] = *one
	return run
}

// filled is a route's path with something for each of its parameters.
func filled(rt route, run *api.Run) string {
	id := map[bool]string{true: run.ID, false: run.Jobs[0].ID}[strings.Contains(rt.path, "runs")]
	if strings.Contains(rt.path, "attempts/{") {
		id = run.Jobs[0].CurrentAttempt
	}
	if len(rt.verbs) > 0 {
		id += ":" + rt.verbs[0].name
	}
	return strings.NewReplacer("{id}", id, "{ref}", "b3:"+strings.Repeat("0", 64)+":1", "{project}", "default", "{name...}", "a/b").Replace(rt.pattern())
}

// TestEachRouteIsForItsRoleAndThoseAbove walks all routes with all roles.
func TestEachRouteIsForItsRoleAndThoseAbove(t *testing.T) {
	w := newWorld(t)
	run := w.finished()
	shown := map[string]forge.Role{
		"": 0, "fy_token_nonsense": 0, w.token("v", viewer): viewer, w.token("d", developer): developer, w.token("a", admin): admin, token: admin,
	}
	for _, rt := range w.server.table() {
		for text, role := range shown {
			req, err := http.NewRequestWithContext(w.ctx, rt.method, w.url+filled(rt, run), nil)
			w.must(err)
			req.Header.Set("Authorization", "Bearer "+text)
			answer, err := http.DefaultClient.Do(req)
			w.must(err)
			_ = answer.Body.Close()
			want := "let in"
			switch {
			case rt.role == anybody:
			case role == 0:
				want = "401"
			case role < rt.role:
				want = "403"
			}
			got := "let in"
			if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
				got = answer.Status[:3]
			}
			if got != want {
				t.Errorf("%s %s as %v: %s, not %s", rt.method, rt.path, role, answer.Status, want)
			}
			if rt.method == http.MethodGet && got == "let in" && answer.StatusCode >= 300 && !strings.Contains(rt.path, "{ref}") && !strings.HasPrefix(rt.path, "artifacts") && !strings.HasPrefix(rt.path, "runners/") {
				t.Errorf("%s %s as %v: %s", rt.method, rt.path, role, answer.Status)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// A route that is for anybody makes nobody an administrator, and lets nobody further than itself.
func TestWhoAsksWithoutATokenIsNobody(t *testing.T) {
	w := newWorld(t)
	for over, want := range map[Over]forge.Role{TCP: 0, Socket: admin} {
		in, leave, err := w.server.admit(over, httptest.NewRequestWithContext(w.ctx, "GET", "/healthz", nil))
		w.must(err)
		if who := asking(in.Context()); who.Role != want {
			t.Errorf("by way %d: %+v", over, who)
		}
		leave()
	}
	for path, want := range map[string]int{"POST /healthz": 401, "DELETE /readyz": 401, "HEAD /healthz": 200, "GET /healthz/": 401, "GET //healthz": 307, "GET /%68ealthz": 200} {
		method, path, _ := strings.Cut(path, " ")
		in := httptest.NewRequestWithContext(w.ctx, method, path, nil)
		if strings.HasPrefix(path, "//") {
			in.URL.Host, in.URL.Path = "", path // else its beginning is read as a host
		}
		answer := httptest.NewRecorder()
		w.server.handler(TCP).ServeHTTP(answer, in)
		if answer.Code != want {
			t.Errorf("%s %s: %d, not %d", method, path, answer.Code, want)
		}
	}
}

// The roles of the table as a rule, so that a route that is added without a thought is found: whatever changes something takes a
// developer, the fleet and whoever may ask are for administrators, and only the health of the process is for anybody.
func TestWhatARouteDoesSaysWhichRoleItAsksFor(t *testing.T) {
	forAdmins := []string{"enrollment-tokens", "tokens", "tokens/{id}", "audit", "cas:verify"}
	for _, rt := range (&Server{}).table() {
		want := viewer
		reads := rt.method == http.MethodGet || rt.method == http.MethodHead
		if !reads {
			want = developer
		}
		if strings.HasPrefix(rt.path, "/") && rt.path != "/metrics" {
			want = anybody
		}
		for _, path := range forAdmins {
			if rt.path == path {
				want = admin
			}
		}
		if strings.Contains(rt.path, "/secrets") { // that there is a secret is told to whoever writes pipelines
			want = developer
		}
		if !reads && (strings.Contains(rt.path, "/secrets") || strings.HasPrefix(rt.path, "runners")) {
			want = admin
		}
		if rt.role != want {
			t.Errorf("%s %s asks for %v, not %v", rt.method, rt.path, rt.role, want)
		}
	}
}

func TestARoleThatIsTooSmallIsToldWhichOneItTakesAndHowToGetIt(t *testing.T) {
	w := newWorld(t)
	v := w.as(w.token("dashboard", viewer))
	_, err := v.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{job("a")}}, "")
	p := w.problem(err)
	for _, want := range []string{"role developer", "token:dashboard has the role viewer", "forgeyard token create --role developer --name NAME"} {
		if p.Code != api.CodeForbidden || p.Status != 403 || !strings.Contains(p.Detail, want) {
			t.Errorf("a viewer submits: %s (%d), without %q: %s", p.Code, p.Status, want, p.Detail)
		}
	}
	if runs, err := v.Runs(w.ctx, api.RunFilter{}, api.Page{}); err != nil || len(runs.Items) > 0 {
		t.Errorf("runs of a viewer: %+v, %v", runs, err)
	}
	d := w.as(w.token("dev", developer))
	if _, err = d.CreateAccessToken(w.ctx, &api.AccessTokenRequest{Name: "mine", Role: "admin"}); w.problem(err).Code != api.CodeForbidden {
		t.Errorf("a developer makes an administrator: %v", err)
	}
	if _, err = d.SetSecret(w.ctx, "default", "a", forge.NewSecret([]byte("b"))); w.problem(err).Code != api.CodeForbidden {
		t.Errorf("a developer sets a secret: %v", err)
	}
	if _, err = d.Secrets(w.ctx, "default", api.Page{}); err != nil {
		t.Errorf("a developer lists secrets: %v", err)
	}
	if who, err := v.WhoAmI(w.ctx); err != nil || who.Name != "token:dashboard" || who.Role != "viewer" {
		t.Errorf("who am I: %+v, %v", who, err)
	}
}

// Threats S17 and S23: the class of a run follows from whoever submits it. Neither the request nor the pipeline can say it.
func TestTheTrustOfARunIsThatOfItsToken(t *testing.T) {
	w := newWorld(t)
	_, text, err := w.access.Create(w.ctx, access.Request{Name: "strangers", Role: developer, Trust: forge.TrustUntrusted})
	w.must(err)
	strangers, ours := w.as(string(text.Reveal())), w.as(w.token("ours", developer))
	for _, c := range []struct {
		client    *api.Client
		trust, by string
	}{{strangers, "untrusted", "token:strangers"}, {ours, "trusted", "token:ours"}, {w.client, "trusted", "admin"}, {w.overSocket(), "trusted", "socket"}} {
		run, err := c.client.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{job("a")}}, "")
		w.must(err)
		if run.Trust != c.trust || run.By != c.by {
			t.Errorf("the run of %s: %s by %s, not %s", c.by, run.Trust, run.By, c.trust)
		}
		err = w.store.View(w.ctx, func(v *store.View) error {
			id, err := forge.ParseID[forge.JobID](run.Jobs[0].ID)
			if err != nil {
				return err
			}
			stored, err := v.Job(id)
			if err != nil {
				return err
			}
			spec, err := specOf(v, &stored)
			if err == nil && spec.Constraints.Trust.String() != c.trust {
				t.Errorf("the job of %s is %v", c.by, spec.Constraints.Trust)
			}
			return err
		})
		w.must(err)
	}
	for _, body := range []string{
		`{"trust":"protected","jobs":[]}`,
		`{"jobs":[{"key":"a","spec":{"steps":[{"argv":["true"]}],"trust":"protected"}}]}`,
		`{"jobs":[{"key":"a","spec":{"steps":[{"argv":["true"]}],"constraints":{"trust":"protected"}}}]}`,
	} {
		answer := w.ask("POST", "/api/v1/runs", "application/json", body, "Authorization", "Bearer "+string(text.Reveal()))
		if p := problemIn(t, answer); p.Code != api.CodeInvalid {
			t.Errorf("%s: %s", body, p.Code)
		}
	}
}

func TestAStreamEndsWhenItsTokenIsRevoked(t *testing.T) {
	w := newWorld(t)
	a := w.agent("r")
	run := w.submit(job("a"))
	c := a.take()
	a.say(c, frame(forge.LogStdout, "hello"))
	for _, c := range []struct {
		what string
		open func(*api.Client) iter.Seq2[api.Event, error]
	}{
		{"the changes of a run", func(v *api.Client) iter.Seq2[api.Event, error] { return v.Watch(w.ctx, run.ID) }},
		{"a log", func(v *api.Client) iter.Seq2[api.Event, error] {
			return v.Log(w.ctx, c.Attempt.String(), api.LogOptions{Follow: true})
		}},
	} {
		events, last := 0, error(nil)
		for _, err := range c.open(w.as(w.token("v", viewer))) {
			if last = err; err != nil {
				break
			}
			if events++; events == 1 {
				_, err := w.client.RevokeAccessToken(w.ctx, "v")
				w.must(err)
			}
		}
		if p := w.problem(last); events == 0 || p.Code != api.CodeTokenRevoked || !strings.Contains(p.Detail, `token "v" was revoked`) ||
			!strings.Contains(p.Detail, "forgeyard token create --role viewer --name v") {
			t.Errorf("%s ended after %d events with %v", c.what, events, last)
		}
	}
}

// A token that is revoked in the middle of an upload: what waits for the rest of the body ends, and nothing is stored.
func TestAnUploadEndsWhenItsTokenIsRevoked(t *testing.T) {
	w := newWorld(t)
	content := []byte("the beginning and the end")
	ref := digest.RefOf(content)
	body, rest := io.Pipe()
	defer func() { _ = rest.Close() }()
	reading := make(chan struct{})
	ctx := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, w.url+"/api/v1/cas/"+ref.String()+"?project=default", body)
	w.must(err)
	req.ContentLength = int64(len(content))
	req.Header.Set("Authorization", "Bearer "+w.token("d", developer))
	req.Header.Set("Expect", "100-continue")
	var told sync.WaitGroup
	told.Go(func() {
		<-reading
		_, _ = rest.Write(content[:5])
		if _, err := w.client.RevokeAccessToken(w.ctx, "d"); err != nil {
			t.Error(err)
		}
	})
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(req)
	told.Wait()
	w.must(err)
	if p := problemIn(t, answer); p.Code != api.CodeTokenRevoked || !strings.Contains(p.Detail, "forgeyard token create --role developer --name d") {
		t.Errorf("it ended with %+v", p)
	}
	_ = answer.Body.Close()
	if answer := w.ask("HEAD", "/api/v1/cas/"+ref.String()+"?project=default", "", ""); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the object: %s", answer.Status)
	}
}

func TestATokenThatHasExpiredSaysSo(t *testing.T) {
	w := newWorld(t)
	_, text, err := w.access.Create(w.ctx, access.Request{Name: "short", Role: developer, Lifetime: time.Millisecond})
	w.must(err)
	c := w.as(string(text.Reveal()))
	for err == nil { // its millisecond may not be over yet
		_, err = c.WhoAmI(w.ctx)
	}
	if p := w.problem(err); p.Code != api.CodeTokenExpired || p.Status != 401 || !strings.Contains(p.Detail, `token "short" expired on`) {
		t.Errorf("expired: %v", p)
	}
	list, err := w.client.AccessTokens(w.ctx, api.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].State != "expired" || list.Items[0].Token != "" {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if gone, err := w.client.RevokeAccessToken(w.ctx, "short"); err != nil || gone.State != "revoked" {
		t.Errorf("revoked, by the name that the list has: %+v, %v", gone, err)
	}
}

func TestATokenIsMadeListedAndRevokedThroughTheInterface(t *testing.T) {
	w := newWorld(t)
	year := api.Duration(365 * 24 * time.Hour)
	made, err := w.client.CreateAccessToken(w.ctx, &api.AccessTokenRequest{Name: "ci", Role: "developer", ExpiresIn: &year})
	w.must(err)
	if !strings.HasPrefix(made.Token, "fy_token_") || made.Role != "developer" || made.Trust != "trusted" || made.State != "good" || made.By != "admin" || made.ExpiresAt == nil {
		t.Errorf("made: %+v", made)
	}
	_, err = w.client.CreateAccessToken(w.ctx, &api.AccessTokenRequest{Name: "ci", Role: "viewer"})
	if p := w.problem(err); p.Code != api.CodeConflict || !strings.Contains(p.Detail, "forgeyard token rm ci") {
		t.Errorf("the name again: %v", p)
	}
	if _, err := w.as(made.Token).WhoAmI(w.ctx); err != nil {
		t.Errorf("shown: %v", err)
	}
	list, err := w.client.AccessTokens(w.ctx, api.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].UsedAt == nil || list.Items[0].Token != "" {
		t.Errorf("listed: %+v, %v", list, err)
	}
	gone, err := w.client.RevokeAccessToken(w.ctx, made.ID[:20])
	if err != nil || gone.State != "revoked" || gone.RevokedAt == nil {
		t.Errorf("revoked: %+v, %v", gone, err)
	}
	if again, err := w.client.RevokeAccessToken(w.ctx, "ci"); err != nil || again.ID != made.ID || again.State != "revoked" || *again.RevokedAt != *gone.RevokedAt {
		t.Errorf("revoked again, by its name: %+v, %v", again, err)
	}
	for id, want := range map[string]api.Code{"nobody": api.CodeNotFound, "00000000000000000000000000": api.CodeNotFound} {
		if _, err := w.client.RevokeAccessToken(w.ctx, id); w.problem(err).Code != want {
			t.Errorf("revoking %s: %v", id, err)
		}
	}
	for body, path := range map[string]string{
		`{"name":"x"}`: "role", `{"name":"x","role":"root"}`: "role", `{"role":"viewer"}`: "name", `{"name":"x","role":"viewer","expires_in":"0s"}`: "expires_in",
		`{"name":"x","role":"viewer","trust":"total"}`: "trust",
	} {
		p := problemIn(t, w.ask("POST", "/api/v1/tokens", "application/json", body))
		if p.Code != api.CodeInvalid || len(p.Problems) != 1 || p.Problems[0].Path != path {
			t.Errorf("%s: %+v", body, p)
		}
	}
	audit, err := w.client.Audit(w.ctx, api.Page{})
	w.must(err)
	for _, e := range audit.Items {
		if strings.Contains(e.Detail+e.Target, made.Token[9:]) {
			t.Errorf("the token stands in %+v", e)
		}
	}
}
