package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "correct horse"

// world is a server on a real store with real logs, and a client of it.
type world struct {
	t       *testing.T
	dir     string
	ctx     context.Context
	store   *store.Store
	logs    *logs.Store
	objects *objects.Objects
	control *control.Control
	access  *access.Access
	server  *Server
	url     string
	client  *api.Client
	places  chan control.Placement
	checks  []api.Check
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, dir: dir, ctx: t.Context(), places: make(chan control.Placement, 64)}
	var err error
	w.store, err = store.Open(w.ctx, dir, store.Options{})
	w.must(err)
	t.Cleanup(func() { w.must(w.store.Close()) })
	w.logs, err = logs.Open(logs.Config{Dir: filepath.Join(dir, "logs"), Rows: logs.RowsOf(w.store)})
	w.must(err)
	t.Cleanup(func() { w.must(w.logs.Close()) })
	w.objects, err = objects.Open(filepath.Join(dir, "cas"), objects.Options{MinFree: 1}, w.store)
	w.must(err)
	t.Cleanup(func() { w.must(w.objects.Close()) })
	ca, err := trust.NewCA(trust.NewCluster(), time.Now())
	w.must(err)
	w.control = control.New(control.Config{
		Store: w.store, Trees: w.objects, Place: func(p control.Placement) { w.places <- p }, CA: ca, Policy: forge.DefaultLeasePolicy(),
	})
	ctx, cancel := context.WithCancel(w.ctx)
	var loop sync.WaitGroup
	loop.Go(func() { _ = w.control.Run(ctx) })
	t.Cleanup(func() { cancel(); loop.Wait() })

	w.access = access.New(w.store, forge.NewSecret([]byte(token)), time.Now, nil)
	w.server = New(Config{
		Store: w.store, Control: w.control, Logs: w.logs, Objects: w.objects, Secrets: secrets.New(w.store, filepath.Join(dir, "secret.key"), nil), Events: decodeEvent,
		Access: w.access,
		Ready:  func(context.Context) []api.Check { return w.checks }, Metrics: telemetry.NewMetrics(),
		Fingerprint: ca.Fingerprint().String(), Version: api.Version{Version: "v0"},
		Sessions: func() []api.Session { return []api.Session{{ID: "s"}} },
	})
	s := httptest.NewUnstartedServer(nil)
	s.Config = w.server.HTTP(TCP)
	s.Start()
	w.url = s.URL
	w.client, err = api.NewClient(s.URL, api.Options{Token: forge.NewSecret([]byte(token))})
	w.must(err)
	t.Cleanup(func() { w.server.Stop(); w.client.Close(); s.Close() })
	return w
}

// decodeEvent stands in for the codec of the wire: the first byte says which event it is.
func decodeEvent(b []byte) (forge.StepEvent, error) {
	switch b[0] {
	case 's':
		return forge.StepStarted{Step: uint16(b[1])}, nil
	case 'f':
		return forge.StepFinished{Result: forge.StepResult{Index: uint16(b[1]), Class: forge.ExitCode, ExitCode: 3}}, nil
	case 'a':
		return forge.Annotation{Level: forge.LevelError, File: "a.go", Line: 7, Text: "bad"}, nil
	case 'n':
		return forge.Notice{Level: forge.LevelNotice, Text: "hm"}, nil
	case 'g':
		return forge.Gap{Bytes: 9}, nil
	}
	return nil, errors.New("unknown")
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// problem is the problem that a call ended with.
func (w *world) problem(err error) *api.Problem {
	w.t.Helper()
	var p *api.Problem
	if !errors.As(err, &p) {
		w.t.Fatalf("got %v, not a problem", err)
	}
	return p
}

// ask sends a request as it is.
func (w *world) ask(method, path, kind, body string, header ...string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, w.url+path, reader(body))
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(req)
	w.must(err)
	w.t.Cleanup(func() { _ = answer.Body.Close(); http.DefaultClient.CloseIdleConnections() })
	return answer
}

// job is one job of a request.
func job(key string, needs ...string) api.JobRequest {
	j := api.JobRequest{Key: key, Spec: api.JobSpec{
		Steps: []api.Step{{Name: "say", Argv: []string{"echo", "hi"}}}, Sandbox: &api.Sandbox{Kind: "process"},
	}}
	for _, n := range needs {
		j.Needs = append(j.Needs, api.Need{Job: n})
	}
	return j
}

func (w *world) submit(jobs ...api.JobRequest) *api.Run {
	w.t.Helper()
	run, err := w.client.Submit(w.ctx, &api.RunRequest{Jobs: jobs}, "")
	w.must(err)
	return run
}

// agent is a machine that does what the test says.
type agent struct {
	w     *world
	id    forge.RunnerID
	fence authority.Fence
}

func (w *world) agent(name string) *agent {
	w.t.Helper()
	a := &agent{w: w, id: ident.New[forge.RunnerID]()}
	caps := forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: forge.Resources{CPU: 8000, Memory: 64 * forge.GiB, Disk: forge.TiB, Slots: 4},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxProcess}},
	}
	w.must(w.store.Update(w.ctx, store.ClassState, func(tx *store.Tx) error {
		return errors.Join(
			tx.CreateRunner(store.NewRunner{ID: a.id, Name: name, Pool: forge.DefaultPool, Trust: forge.TrustTrusted, Slots: 4}),
			tx.SetCapabilities(a.id, caps, caps.Digest()),
		)
	}))
	a.fence = authority.Fence{Runner: a.id, Session: ident.New[forge.AgentSessionID](), TransportSeq: 1}
	w.do(&authority.Register{
		Runner: a.id, Session: a.fence.Session, StateFolder: ident.New[forge.StateFolderID](), Boot: ident.New[forge.BootID](),
		StartCounter: 1, TransportSeq: 1,
	})
	w.control.Connected(a.id, a.fence.Session)
	return a
}

func (w *world) do(cmd authority.Command) authority.Answer {
	w.t.Helper()
	answer, err := w.store.Do(w.ctx, store.ClassLease, cmd)
	w.must(err)
	return answer
}

// take accepts the next job that is placed, and begins it.
func (a *agent) take() forge.AttemptContext {
	a.w.t.Helper()
	var p control.Placement
	select {
	case p = <-a.w.places:
	case <-time.After(20 * time.Second):
		a.w.t.Fatal("nothing was placed")
	}
	answer := a.w.do(&authority.Offer{Fence: a.fence, Job: p.Job, Attempt: p.Attempt, Lease: p.Lease})
	if !answer.Done {
		a.w.t.Fatalf("the offer was refused: %+v", answer)
	}
	c := answer.Context
	a.w.do(&authority.Claim{Fence: a.fence, Context: c, Phase: forge.AttemptOffered, Watched: authority.Watched{Lease: c.Lease}})
	a.w.do(&authority.Phase{Fence: a.fence, Context: c, Seq: 1, Phase: forge.AttemptRunning})
	return c
}

// say appends to the log, each text a frame; what is before its colon names the stream.
func (a *agent) say(c forge.AttemptContext, frames ...forge.LogFrame) {
	a.w.t.Helper()
	info, err := a.w.logs.Info(a.w.ctx, c.Attempt)
	a.w.must(err)
	for i := range frames {
		frames[i].Seq = info.Next + forge.LogSeq(i)
		frames[i].Time = 1
	}
	_, err = a.w.logs.Append(a.w.ctx, a.id, c.Attempt, frames)
	a.w.must(err)
}

func frame(stream forge.LogStream, text string) forge.LogFrame {
	return forge.LogFrame{Stream: stream, Bytes: []byte(text)}
}

// end seals the log and completes.
func (a *agent) end(c forge.AttemptContext, r forge.Result) {
	a.w.t.Helper()
	a.seal(c)
	a.complete(c, r)
}

func (a *agent) seal(c forge.AttemptContext) {
	a.w.t.Helper()
	answer, err := a.w.logs.Seal(a.w.ctx, &authority.SealLog{Fence: a.fence, Context: c, Seal: a.sealOf(c)})
	if err != nil || !answer.Done {
		a.w.t.Fatalf("sealing: %+v, %v", answer, err)
	}
}

func (a *agent) sealOf(c forge.AttemptContext) forge.LogSeal {
	a.w.t.Helper()
	var log authority.Log
	a.w.must(a.w.store.View(a.w.ctx, func(v *store.View) error {
		attempt, err := v.Attempt(c.Attempt)
		log = attempt.Log
		return err
	}))
	return forge.LogSeal{Last: log.Next - 1, Bytes: log.Bytes, Hash: log.Hash}
}

func (a *agent) complete(c forge.AttemptContext, r forge.Result) {
	a.w.t.Helper()
	m := &forge.Completion{Context: c, Message: ident.New[forge.MessageID](), Result: r, Capture: forge.Succeeded, Log: a.sealOf(c)}
	m.CancelSeen = r.Class == forge.Cancelled
	m.Hash = m.ResultHash()
	if answer := a.w.do(&authority.Complete{Fence: a.fence, Completion: m}); answer.Completion != forge.CompletionAccepted {
		a.w.t.Fatalf("completing: %+v", answer)
	}
}

// overSocket returns a client that comes in by the socket.
func (w *world) overSocket() *api.Client {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "http.sock")
	l, err := net.Listen("unix", path)
	w.must(err)
	s := w.server.HTTP(Socket)
	var done sync.WaitGroup
	done.Go(func() { _ = s.Serve(l) })
	c, err := api.NewClient("unix://"+path, api.Options{})
	w.must(err)
	w.t.Cleanup(func() { c.Close(); _ = s.Close(); done.Wait() })
	return c
}
