package daemon_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// world is a folder with the daemon that runs on it.
type world struct {
	t      *testing.T
	ctx    context.Context
	cfg    daemon.Config
	daemon *daemon.Daemon
	at     daemon.Addresses
	client *api.Client
	stop   func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "fy") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &world{t: t, ctx: ctx, cfg: daemon.Config{
		Dir: filepath.Join(dir, "d"), Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", Version: "v0", Spread: time.Millisecond,
	}}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// begin starts the daemon and waits until it is ready.
func (w *world) begin() {
	w.t.Helper()
	d, err := daemon.New(w.cfg)
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-d.Ready():
	case err := <-ended:
		cancel()
		w.t.Fatalf("the daemon ended: %v", err)
	}
	w.daemon, w.at = d, d.Addresses()
	w.client = w.over(w.at.Socket, "")
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			w.must(<-ended)
		})
	}
	w.t.Cleanup(w.stop)
}

// over returns a client of one way in.
func (w *world) over(endpoint, tokenFile string) *api.Client {
	w.t.Helper()
	var o api.Options
	if tokenFile != "" {
		token, err := api.ReadToken(tokenFile)
		w.must(err)
		o.Token = token
	}
	c, err := api.NewClient(endpoint, o)
	w.must(err)
	w.t.Cleanup(c.Close)
	return c
}

// figures reads the metrics until a line is among them: some follow what they count.
func (w *world) figures(line string) string {
	w.t.Helper()
	for w.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.at.HTTP+"/metrics", nil)
		w.must(err)
		token, err := api.ReadToken(w.at.TokenFile)
		w.must(err)
		req.Header.Set("Authorization", "Bearer "+string(token.Reveal()))
		answer, err := http.DefaultClient.Do(req)
		w.must(err)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		w.must(err)
		if strings.Contains(string(text), "\n"+line+"\n") {
			return string(text)
		}
	}
	w.t.Fatalf("%s is never said", line)
	return ""
}

// submit starts a run of jobs that say hello.
func (w *world) submit(keys ...string) *api.Run {
	w.t.Helper()
	var request api.RunRequest
	for i, key := range keys {
		j := api.JobRequest{Key: key, Spec: api.JobSpec{Steps: []api.Step{{Argv: []string{"echo", "hello"}}}, Sandbox: &api.Sandbox{Kind: "process"}}}
		if i > 0 {
			j.Needs = []api.Need{{Job: keys[i-1]}}
		}
		request.Jobs = append(request.Jobs, j)
	}
	run, err := w.client.Submit(w.ctx, &request, "")
	w.must(err)
	return run
}

// agent is an agent as the test has it speak: enrolled with a token, then connected.
type agent struct {
	w        *world
	identity *trust.Identity
	session  forge.AgentSessionID
	folder   forge.StateFolderID
	boot     forge.BootID
	seq      uint64
	nonce    forge.Nonce
	terms    protocol.Terms // our own where there are none
	link     *link.Link
	acked    map[forge.AttemptID]forge.LogSeq
	kept     []forge.Message // that came before anybody waited for them
}

func (w *world) enroll(token string) *agent {
	w.t.Helper()
	parsed, err := trust.ParseToken([]byte(token))
	w.must(err)
	key, err := trust.NewKey()
	w.must(err)
	dialer := quic.NewDialer(trust.EnrollTLS(parsed.CA(), "", nil), quic.Options{})
	defer func() { _ = dialer.Close() }()
	conn, err := dialer.Dial(w.ctx, w.at.Agents)
	w.must(err)
	id, err := enroll.Enroll(w.ctx, conn, link.Config{Role: protocol.RoleAgent, Terms: w.cfg.Terms, Software: "test agent"}, parsed, key, "host")
	w.must(err)
	return &agent{
		w: w, identity: id, session: ident.New[forge.AgentSessionID](), folder: ident.New[forge.StateFolderID](),
		boot: ident.New[forge.BootID](), acked: map[forge.AttemptID]forge.LogSeq{},
	}
}

// dial opens a connection, or says why it cannot be had.
func (a *agent) dial() error {
	settings := trust.AgentTLS(trust.Client{Roots: a.identity.Roots(), Certificates: trust.NewSource(a.identity.TLS())})
	dialer := quic.NewDialer(settings, quic.Options{})
	a.w.t.Cleanup(func() { _ = dialer.Close() })
	conn, err := dialer.Dial(a.w.ctx, a.w.at.Agents)
	if err != nil {
		return err
	}
	l, err := link.Connect(a.w.ctx, conn, link.Config{Role: protocol.RoleAgent, Terms: a.terms, Software: "test agent"}, a.session)
	if err != nil {
		return err
	}
	l.Bind(a.identity.Runner(), a.session)
	a.w.t.Cleanup(func() { l.Close(forge.CloseNormal) })
	a.link = l
	return nil
}

// connect brings the agent into step, with what it still holds.
func (a *agent) connect(items ...forge.ResyncItem) *forge.ResyncReply {
	a.w.t.Helper()
	a.w.must(a.dial())
	a.register()
	hear[*forge.RegistrationAccepted](a)
	a.nonce++
	a.say(&forge.Resync{Runner: a.identity.Runner(), Session: a.session, Nonce: a.nonce, Attempts: items})
	return hear[*forge.ResyncReply](a)
}

func (a *agent) register() {
	a.w.t.Helper()
	a.seq++
	caps := forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: forge.Resources{CPU: 8000, Memory: 8 * forge.GiB, Disk: forge.TiB, Slots: 4},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxProcess}},
	}
	a.say(&forge.Register{
		Runner: a.identity.Runner(), Session: a.session, StateFolder: a.folder, Boot: a.boot, StartCounter: 1, TransportSeq: a.seq,
		Version: "0.1", Capabilities: caps, CapabilityDigest: caps.Digest(),
	})
}

func (a *agent) say(m forge.Message) {
	a.w.t.Helper()
	a.w.must(a.link.Send(a.w.ctx, forge.Frame{ID: ident.New[forge.MessageID](), Body: m}))
}

func (a *agent) receive() (forge.Message, error) {
	ctx, cancel := context.WithTimeout(a.w.ctx, patience)
	defer cancel()
	m, err := a.link.Receive(ctx)
	if ack, ok := m.Domain.(*forge.LogAck); ok {
		a.acked[ack.Attempt] = max(a.acked[ack.Attempt], ack.Next)
	}
	return m.Domain, err
}

// hear waits for a message of a kind. Others keep for whoever waits for them: an offer may come before an answer.
func hear[M forge.Message](a *agent) M {
	a.w.t.Helper()
	for i, m := range a.kept {
		if m, ok := m.(M); ok {
			a.kept = slices.Delete(a.kept, i, i+1)
			return m
		}
	}
	for {
		m, err := a.receive()
		a.w.must(err)
		if m, ok := m.(M); ok {
			return m
		}
		a.kept = append(a.kept, m)
	}
}

// closed waits for the end of the connection and returns why, and whether a GoAway came before.
func (a *agent) closed() (reason forge.CloseReason, warned bool) {
	a.w.t.Helper()
	for {
		m, err := a.receive()
		if _, ok := m.(*forge.GoAway); ok {
			warned = true
		}
		var end *transport.CloseError
		if errors.As(err, &end) {
			return end.Reason, warned
		}
		a.w.must(err)
	}
}

// take accepts the next offer and begins it.
func (a *agent) take() forge.AttemptContext {
	a.w.t.Helper()
	offer := hear[*forge.LeaseOffer](a)
	a.nonce++
	a.say(&forge.LeaseAccept{Context: offer.Context, Nonce: a.nonce})
	if ack := hear[*forge.LeaseAcceptAck](a); !ack.Granted {
		a.w.t.Fatalf("not granted: %+v", ack)
	}
	a.say(&forge.PhaseChange{Context: offer.Context, Seq: 1, Phase: forge.AttemptRunning})
	hear[*forge.PhaseAck](a)
	return offer.Context
}

// print writes output into the log and waits until it is stored.
func (a *agent) print(c forge.AttemptContext, texts ...string) {
	a.w.t.Helper()
	s, err := a.link.OpenSend(a.w.ctx, protocol.StreamLog, &logv1.StreamHeaderV1{
		Attempt: c.Attempt.ULID, Lease: c.Lease.ULID, First: 1, Encoding: logv1.EncodingPlain,
	})
	a.w.must(err)
	for i, text := range texts {
		f := logv1.NewLogFrame(forge.LogFrame{Seq: forge.LogSeq(i + 1), Stream: forge.LogStdout, Bytes: []byte(text), Time: 1})
		b, err := a.link.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, f)
		a.w.must(err)
		_, err = s.Write(b)
		a.w.must(err)
	}
	a.w.must(s.Close())
	for a.acked[c.Attempt] < forge.LogSeq(len(texts)+1) {
		_, err := a.receive()
		a.w.must(err)
	}
}

// finish seals the log and completes.
func (a *agent) finish(c forge.AttemptContext, log string, frames forge.LogSeq, r forge.Result) {
	a.w.t.Helper()
	seal := forge.LogSeal{Last: frames, Bytes: uint64(len(log))}
	if frames > 0 { // a log of no frames has no hash
		seal.Hash = digest.Of([]byte(log))
	}
	a.say(&forge.LogFinal{Context: c, Seal: seal})
	hear[*forge.LogFinalAck](a)
	done := &forge.Completion{Context: c, Message: ident.New[forge.MessageID](), Capture: forge.Succeeded, Log: seal, Result: r}
	done.CancelSeen = r.Class == forge.Cancelled
	done.Hash = done.ResultHash()
	a.w.must(a.link.Send(a.w.ctx, forge.Frame{ID: done.Message, Body: done}))
	if ack := hear[*forge.CompletionAck](a); ack.Answer != forge.CompletionAccepted {
		a.w.t.Fatalf("the answer is %v", ack.Answer)
	}
}
