package agents_test

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to come.
const patience = time.Minute

// world is a cluster whose database and logs outlive its daemons.
type world struct {
	t       *testing.T
	ctx     context.Context
	trust   *trusttest.World
	dir     string
	overUDP bool
	network *inmem.Network
	desk    *desk
	control *control
	secrets agents.SecretSource
	journal *journal
	metrics *telemetry.Metrics
	rows    func(logs.Rows) logs.Rows // what stands between logs and the database; nil: nothing

	store    *store.Store
	logs     *logs.Store
	objects  *objects.Objects
	server   *agents.Server
	endpoint string
	stop     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &world{
		t: t, ctx: ctx, trust: trusttest.NewWorld(t, trusttest.Name, time.Now()), dir: t.TempDir(),
		network: inmem.New(inmem.Limits{}), desk: &desk{}, control: newControl(), journal: &journal{},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// begin starts a daemon on what is there.
func (w *world) begin() {
	w.t.Helper()
	var err error
	w.store, err = store.Open(w.ctx, w.dir, store.Options{})
	w.must(err)
	rows := logs.RowsOf(w.store)
	if w.rows != nil {
		rows = w.rows(rows)
	}
	w.logs, err = logs.Open(logs.Config{Dir: filepath.Join(w.dir, "logs"), Rows: rows})
	w.must(err)
	w.objects, err = objects.Open(filepath.Join(w.dir, "cas"), objects.Options{MinFree: 1}, w.store)
	w.must(err)
	w.desk.cluster = trusttest.Name
	w.metrics = telemetry.NewMetrics()
	w.server, err = agents.New(agents.Config{
		Store: w.store, Logs: w.logs, Objects: w.objects, Policy: forge.DefaultLeasePolicy(), Software: "test daemon", Cluster: trusttest.Name,
		Desk: w.desk, Control: w.control, Secrets: w.secrets, Metrics: agents.NewMetrics(w.metrics),
		Log: slog.New(slog.NewTextHandler(w.journal, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	w.must(err)
	listener := w.listen()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, listener) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			w.must(<-ended)
			w.must(errors.Join(w.objects.Close(), w.logs.Close(), w.store.Close()))
		})
	}
	w.t.Cleanup(w.stop)
}

func (w *world) listen() transport.Listener {
	w.t.Helper()
	if !w.overUDP {
		w.endpoint = "daemon " + ident.New[forge.MessageID]().String()
		l, err := w.network.Listen(w.endpoint, inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent, protocol.ALPNEnroll}})
		w.must(err)
		return l
	}
	settings := trust.ServerTLS(trust.Server{
		Roots: w.trust.CA.Roots(), Certificates: trust.NewSource(w.trust.Daemon()),
		Standing: func(forge.RunnerID, trust.Serial) error { return nil },
	})
	l, err := quic.Listen("127.0.0.1:0", settings, quic.Options{})
	w.must(err)
	w.endpoint = l.Addr().String()
	return l
}

// restart ends the daemon, as processes that are connected hear, and starts another on what it left.
func (w *world) restart(hears ...*process) {
	w.t.Helper()
	var heard sync.WaitGroup
	for _, p := range hears {
		heard.Go(func() {
			if reason, _ := p.closed(); reason != forge.CloseShutdown {
				w.t.Errorf("closed for %v", reason)
			}
		})
	}
	w.stop()
	heard.Wait()
	w.begin()
}

// journal is the daemon's log.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// desk takes every certificate.
type desk struct {
	cluster trust.Cluster
	use     error
	renew   func(*agentv1.RenewCertificateV1) (*agentv1.CertificateIssuedV1, error)
}

func (d *desk) Use(_ context.Context, cert *x509.Certificate) (forge.RunnerID, error) {
	runner, err := trust.RunnerOf(cert, d.cluster)
	return runner, errors.Join(err, d.use)
}

func (d *desk) Renew(_ context.Context, _ *x509.Certificate, req *agentv1.RenewCertificateV1) (*agentv1.CertificateIssuedV1, error) {
	return d.renew(req)
}

// control hears of runners.
type control struct {
	mu        sync.Mutex
	connected map[forge.RunnerID]forge.AgentSessionID
	load      map[forge.RunnerID]forge.ResourceSummary
	health    map[forge.RunnerID]forge.Health
	changed   chan struct{}
}

func newControl() *control {
	return &control{
		connected: map[forge.RunnerID]forge.AgentSessionID{}, load: map[forge.RunnerID]forge.ResourceSummary{},
		health: map[forge.RunnerID]forge.Health{}, changed: make(chan struct{}, 1),
	}
}

func (c *control) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *control) Connected(r forge.RunnerID, s forge.AgentSessionID) {
	c.change(func() { c.connected[r] = s })
}

func (c *control) Refused(forge.RunnerID, forge.CloseReason, string) { c.change(func() {}) }

func (c *control) Disconnected(r forge.RunnerID) { c.change(func() { delete(c.connected, r) }) }

func (c *control) Capabilities(forge.RunnerID) { c.change(func() {}) }

func (c *control) Heartbeat(r forge.RunnerID, _ forge.AgentState, load forge.ResourceSummary) {
	c.change(func() { c.load[r] = load })
}

func (c *control) Health(r forge.RunnerID, h forge.Health) { c.change(func() { c.health[r] = h }) }

// wait waits until something holds.
func (c *control) wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		ok := holds()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.changed:
		case <-late:
			t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// runner makes a runner.
func (w *world) runner(slots int) forge.RunnerID {
	w.t.Helper()
	id := ident.New[forge.RunnerID]()
	w.must(w.store.Update(w.ctx, store.ClassState, func(tx *store.Tx) error {
		return tx.CreateRunner(store.NewRunner{
			ID: id, Name: id.String(), Pool: forge.DefaultPool, Trust: forge.TrustTrusted, Slots: slots,
		})
	}))
	return id
}

// job makes a job that is ready.
func (w *world) job(edits ...func(*forge.JobSpec)) forge.JobID {
	w.t.Helper()
	spec := forge.DefaultJobSpec()
	spec.Job = "say"
	spec.Steps = []forge.Step{{Argv: []string{"echo", "hello"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	for _, edit := range edits {
		edit(&spec)
	}
	bytes, err := jobspec.Encode(spec)
	w.must(err)
	run, job, id := ident.New[forge.RunID](), ident.New[forge.JobID](), forge.SpecID(bytes)
	policy := forge.DefaultLeasePolicy()
	w.must(w.store.Update(w.ctx, store.ClassState, func(tx *store.Tx) error {
		_, _, err := tx.CreateRun(store.NewRun{ID: run, Project: "default", Trust: forge.TrustTrusted, Jobs: []store.NewJob{{
			ID: job, Key: "say", Draft: id, Bytes: bytes,
			Terms: store.Terms{HardTTL: policy.TTL + policy.Grace, MaxLifetime: time.Hour, Retry: spec.Retry},
		}}})
		if err != nil {
			return err
		}
		return tx.Settle(run, func(store.Run, []store.Job) store.Settlement {
			return store.Settlement{Plan: []store.Planned{{Plan: authority.Plan{Job: job, Spec: id}}}}
		})
	}))
	return job
}

// place has a job offered to a runner.
func (w *world) place(job forge.JobID, runner forge.RunnerID) forge.AttemptID {
	attempt := ident.New[forge.AttemptID]()
	w.server.Place(core.Place{Job: job, Runner: runner, Attempt: attempt, Lease: ident.New[forge.LeaseID]()})
	return attempt
}

func (w *world) attempt(id forge.AttemptID) store.Attempt {
	w.t.Helper()
	var a store.Attempt
	w.must(w.store.View(w.ctx, func(v *store.View) (err error) {
		a, err = v.Attempt(id)
		return err
	}))
	return a
}

// audited waits for an audit event of a kind about a runner.
func (w *world) audited(kind string, runner forge.RunnerID) {
	w.t.Helper()
	changes := w.store.Subscribe()
	defer changes.Close()
	late := time.After(patience)
	for {
		var events []store.AuditEvent
		w.must(w.store.View(w.ctx, func(v *store.View) (err error) {
			events, _, err = v.Audits(0, 100)
			return err
		}))
		for _, e := range events {
			if e.Kind == kind && e.Runner == runner {
				return
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // an audit event is no change that a subscription tells of
		case <-late:
			w.t.Fatalf("no audit event %s, but %+v", kind, events)
		}
	}
}
