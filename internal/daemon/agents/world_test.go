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
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
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
	w.desk.cluster = trusttest.Name
	w.metrics = telemetry.NewMetrics()
	w.server, err = agents.New(agents.Config{
		Store: w.store, Logs: w.logs, Policy: forge.DefaultLeasePolicy(), Software: "test daemon", Cluster: trusttest.Name,
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
			w.must(errors.Join(w.logs.Close(), w.store.Close()))
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
func (c *control) Disconnected(r forge.RunnerID)                     { c.change(func() { delete(c.connected, r) }) }
func (c *control) Capabilities(forge.RunnerID)                       { c.change(func() {}) }
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
func (w *world) job() forge.JobID {
	w.t.Helper()
	spec := forge.DefaultJobSpec()
	spec.Job = "say"
	spec.Steps = []forge.Step{{Argv: []string{"echo", "hello"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
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

// process is one process of an agent, as the test has it speak.
type process struct {
	w         *world
	runner    forge.RunnerID
	session   forge.AgentSessionID
	folder    forge.StateFolderID
	boot      forge.BootID
	starts    uint64
	seq       uint64
	nonce     forge.Nonce
	link      *link.Link
	conn      transport.Conn
	acks      map[forge.AttemptID]forge.LogSeq
	goAway    *forge.GoAway
	transport forge.TransportSessionID
}

func (w *world) process(runner forge.RunnerID) *process {
	return &process{
		w: w, runner: runner, session: ident.New[forge.AgentSessionID](), folder: ident.New[forge.StateFolderID](),
		boot: ident.New[forge.BootID](), starts: 1, acks: map[forge.AttemptID]forge.LogSeq{},
	}
}

// next is the process that follows on the same folder.
func (p *process) next() *process {
	q := p.w.process(p.runner)
	q.folder, q.boot, q.starts = p.folder, p.boot, p.starts+1
	return q
}

// dial opens a connection and says hello.
func (p *process) dial() {
	p.w.t.Helper()
	identity := p.w.trust.Runner(p.runner)
	var dialer transport.Dialer = p.w.network.Dialer(inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent}, Certificate: identity.Leaf()})
	if p.w.overUDP {
		d := quic.NewDialer(trust.AgentTLS(trust.Client{Roots: p.w.trust.CA.Roots(), Certificates: trust.NewSource(identity.TLS())}), quic.Options{})
		p.w.t.Cleanup(func() { _ = d.Close() })
		dialer = d
	}
	conn, err := dialer.Dial(p.w.ctx, p.w.endpoint)
	p.w.must(err)
	l, err := link.Connect(p.w.ctx, conn, link.Config{Role: protocol.RoleAgent, Software: "test agent"}, p.session)
	p.w.must(err)
	l.Bind(p.runner, p.session)
	p.link, p.conn = l, conn
	p.w.t.Cleanup(func() { l.Close(forge.CloseNormal) })
}

func (p *process) say(m forge.Message) forge.MessageID {
	p.w.t.Helper()
	id := ident.New[forge.MessageID]()
	p.w.must(p.link.Send(p.w.ctx, forge.Frame{ID: id, Body: m}))
	return id
}

// machine is what an agent's machine can do.
func machine() forge.Capabilities {
	return forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: forge.Resources{CPU: 8000, Memory: 8 * forge.GiB, Disk: forge.TiB, Slots: 4},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxProcess}},
	}
}

func (p *process) register() {
	p.w.t.Helper()
	p.seq++
	caps := machine()
	p.say(&forge.Register{
		Runner: p.runner, Session: p.session, StateFolder: p.folder, Boot: p.boot, StartCounter: p.starts, TransportSeq: p.seq,
		Version: "0.1", Capabilities: caps, CapabilityDigest: caps.Digest(),
	})
}

func (p *process) resync(items ...forge.ResyncItem) *forge.ResyncReply {
	p.w.t.Helper()
	p.nonce++
	p.say(&forge.Resync{Runner: p.runner, Session: p.session, Nonce: p.nonce, Attempts: items})
	return hear[*forge.ResyncReply](p)
}

// connect brings a process into step.
func (p *process) connect(items ...forge.ResyncItem) *forge.ResyncReply {
	p.w.t.Helper()
	p.dial()
	p.register()
	p.transport = hear[*forge.RegistrationAccepted](p).Transport
	return p.resync(items...)
}

// heard returns the next message.
func (p *process) heard() link.Message {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, patience)
	defer cancel()
	m, err := p.link.Receive(ctx)
	p.w.must(err)
	if ack, ok := m.Domain.(*forge.LogAck); ok {
		p.acks[ack.Attempt] = max(p.acks[ack.Attempt], ack.Next)
	}
	return m
}

// hear waits for a message of a kind and forgets others.
func hear[M forge.Message](p *process) M {
	p.w.t.Helper()
	for {
		if m, ok := p.heard().Domain.(M); ok {
			return m
		}
	}
}

// closed waits for the end of the connection and returns why, and the reason of a rejection that came before.
func (p *process) closed() (reason, rejected forge.CloseReason) {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(p.w.ctx, patience)
	defer cancel()
	for {
		m, err := p.link.Receive(ctx)
		switch m := m.Domain.(type) {
		case *forge.RegistrationRejected:
			rejected = m.Reason
		case *forge.GoAway:
			p.goAway = m
		case *forge.LogAck:
			p.acks[m.Attempt] = max(p.acks[m.Attempt], m.Next)
		}
		var end *transport.CloseError
		if errors.As(err, &end) {
			return end.Reason, rejected
		}
		p.w.must(err)
	}
}

// take accepts the next offer.
func (p *process) take() forge.AttemptContext {
	p.w.t.Helper()
	offer := hear[*forge.LeaseOffer](p)
	if forge.SpecID(offer.Spec) != offer.Context.Spec {
		p.w.t.Fatal("the bytes of the offer are not those of its spec")
	}
	p.nonce++
	p.say(&forge.LeaseAccept{Context: offer.Context, Nonce: p.nonce})
	if ack := hear[*forge.LeaseAcceptAck](p); !ack.Granted || ack.Nonce != p.nonce {
		p.w.t.Fatalf("not granted: %+v", ack)
	}
	return offer.Context
}

func item(c forge.AttemptContext, next forge.LogSeq) forge.ResyncItem {
	return forge.ResyncItem{
		Job: c.Job, Attempt: c.Attempt, Lease: c.Lease, Spec: c.Spec, Phase: forge.AttemptRunning, EventSeq: 1, LogNext: next,
	}
}

// logStream is a stream of log frames.
type logStream struct {
	p    *process
	s    transport.SendStream
	next forge.LogSeq
}

func (p *process) openLog(c forge.AttemptContext, first forge.LogSeq) *logStream {
	p.w.t.Helper()
	head := &logv1.StreamHeaderV1{Attempt: c.Attempt.ULID, Lease: c.Lease.ULID, First: uint64(first), Encoding: logv1.EncodingPlain}
	s, err := p.link.OpenSend(p.w.ctx, protocol.StreamLog, head)
	p.w.must(err)
	return &logStream{p: p, s: s, next: first}
}

// write sends frames, and returns an error where the stream was reset.
func (l *logStream) write(texts ...string) error {
	l.p.w.t.Helper()
	for _, text := range texts {
		f := logv1.NewLogFrame(forge.LogFrame{Seq: l.next, Stream: forge.LogStdout, Bytes: []byte(text), Time: 1})
		b, err := l.p.link.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, f)
		l.p.w.must(err)
		if _, err := l.s.Write(b); err != nil {
			return err
		}
		l.next++
	}
	return nil
}

// reset writes until the stream is reset, and returns the code.
func (l *logStream) reset() protocol.ResetCode {
	l.p.w.t.Helper()
	for {
		var reset *transport.ResetError
		err := l.write("more")
		if errors.As(err, &reset) {
			return reset.Code
		}
		l.p.w.must(err)
		select {
		case <-l.p.w.ctx.Done():
			l.p.w.t.Fatal("the stream was not reset")
		case <-time.After(time.Millisecond): // until the reset has arrived
		}
	}
}

// acked waits until a log is acknowledged up to a frame.
func (p *process) acked(attempt forge.AttemptID, next forge.LogSeq) {
	p.w.t.Helper()
	for p.acks[attempt] < next {
		p.heard()
	}
}

// finish seals a log and completes the attempt.
func (p *process) finish(c forge.AttemptContext, log []byte, frames forge.LogSeq) forge.CompletionAnswer {
	p.w.t.Helper()
	seal := forge.LogSeal{Last: frames, Bytes: uint64(len(log)), Hash: digest.Of(log)}
	p.say(&forge.LogFinal{Context: c, Seal: seal})
	hear[*forge.LogFinalAck](p)
	done := &forge.Completion{
		Context: c, Message: ident.New[forge.MessageID](), Capture: forge.Succeeded, Log: seal,
		Result: forge.Result{Class: forge.Succeeded, Duration: time.Second, Steps: []forge.StepResult{{Class: forge.Succeeded}}},
	}
	done.Hash = done.ResultHash()
	p.w.must(p.link.Send(p.w.ctx, forge.Frame{ID: done.Message, Body: done}))
	return hear[*forge.CompletionAck](p).Answer
}
