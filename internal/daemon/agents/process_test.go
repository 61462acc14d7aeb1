package agents_test

import (
	"context"
	"errors"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// process is one process of an agent, as the test has it speak.
type process struct {
	terms     protocol.Terms // zero: all that this build knows
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
	l, err := link.Connect(p.w.ctx, conn, link.Config{Role: protocol.RoleAgent, Software: "test agent", Terms: p.terms}, p.session)
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
	return p.openLogAs(c, first, logv1.EncodingPlain)
}

func (p *process) openLogAs(c forge.AttemptContext, first forge.LogSeq, encoding logv1.EncodingV1) *logStream {
	p.w.t.Helper()
	head := &logv1.StreamHeaderV1{Attempt: c.Attempt.ULID, Lease: c.Lease.ULID, First: uint64(first), Encoding: encoding}
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
	return p.answer(p.completion(c, log, frames))
}

// completion seals the log and returns what is to be completed with it.
func (p *process) completion(c forge.AttemptContext, log []byte, frames forge.LogSeq) *forge.Completion {
	p.w.t.Helper()
	seal := forge.LogSeal{Last: frames, Bytes: uint64(len(log)), Hash: digest.Of(log)}
	p.say(&forge.LogFinal{Context: c, Seal: seal})
	hear[*forge.LogFinalAck](p)
	return &forge.Completion{
		Context: c, Message: ident.New[forge.MessageID](), Capture: forge.Succeeded, Log: seal,
		Result: forge.Result{Class: forge.Succeeded, Duration: time.Second, Steps: []forge.StepResult{{Class: forge.Succeeded}}},
	}
}

// complete asks for the acceptance of a result.
func (p *process) complete(done *forge.Completion) {
	p.w.t.Helper()
	done.Hash = done.ResultHash()
	p.w.must(p.link.Send(p.w.ctx, forge.Frame{ID: done.Message, Body: done}))
}

// answer asks for it and returns the answer.
func (p *process) answer(done *forge.Completion) forge.CompletionAnswer {
	p.w.t.Helper()
	p.complete(done)
	return hear[*forge.CompletionAck](p).Answer
}
