package runnertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
)

// Patience is how long a test waits for anything.
const Patience = time.Minute

// Daemon answers agents. What it says where a test says nothing else: everything is granted, continued, acknowledged and
// accepted.
type Daemon struct {
	Policy forge.LeasePolicy
	// Answer is asked first about every frame, with the connection it came on. It reports whether nothing else is to be
	// said about it.
	Answer func(c *Conn, f forge.Frame) bool
	// Wire is told of messages that the domain has no value for, besides.
	Wire func(c *Conn, m link.Message)
	// Secrets are the values that are given, by name.
	Secrets map[string]string

	t        testing.TB
	listener transport.Listener
	cancel   context.CancelFunc
	tasks    sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}
	conns   []*Conn
	frames  []forge.Frame
	logs    map[forge.AttemptID]*Log
	holdLog bool
	refuse  bool
}

// Conn is a connection of an agent.
type Conn struct {
	*link.Link
	Road   *inmem.Conn
	Synced bool
	peer   forge.Register
	wire   *tapped
}

// Log is what a daemon has of a log.
type Log struct {
	Next      forge.LogSeq
	Frames    []forge.LogFrame
	Streams   int                // that brought it
	Encodings []logv1.EncodingV1 // of each of them
	Again     int                // frames that came although they were there
}

// NewDaemon listens on an endpoint of a network. It ends with the test.
func NewDaemon(t testing.TB, network *inmem.Network, endpoint string, policy forge.LeasePolicy) *Daemon {
	t.Helper()
	l, err := network.Listen(endpoint, inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Daemon{
		Policy: policy, t: t, listener: l, cancel: cancel, changed: make(chan struct{}), logs: map[forge.AttemptID]*Log{},
	}
	d.tasks.Go(func() { d.accept(ctx) })
	t.Cleanup(d.Close)
	return d
}

// Close ends the daemon and waits for all of it. Idempotent.
func (d *Daemon) Close() {
	d.cancel()
	_ = d.listener.Close() // it has no error that matters
	for _, c := range d.Conns() {
		c.Road.Break()
	}
	d.tasks.Wait()
}

func (d *Daemon) accept(ctx context.Context) {
	for {
		road, err := d.listener.Accept(ctx)
		if err != nil {
			return
		}
		d.mu.Lock()
		refuse := d.refuse
		d.mu.Unlock()
		if refuse {
			road.Close(protocol.CloseCodeOf(forge.CloseOverloaded))
			continue
		}
		d.tasks.Go(func() { d.serve(ctx, road) })
	}
}

func (d *Daemon) serve(ctx context.Context, road transport.Conn) {
	wire := &tapped{Conn: road.(*inmem.Conn)}
	l, err := link.Answer(ctx, wire, link.Config{Terms: protocol.OwnTerms(), Software: "test daemon"})
	if err != nil {
		return
	}
	c := &Conn{Link: l, Road: wire.Conn, wire: wire}
	d.note(func() { d.conns = append(d.conns, c) })
	var streams sync.WaitGroup
	streams.Go(func() { d.takeStreams(c, &streams) })
	for {
		m, err := l.Receive(ctx)
		if err != nil {
			break
		}
		if m.Wire != nil {
			if d.Wire != nil {
				d.Wire(c, m)
			}
			continue
		}
		f := m.Frame()
		d.note(func() { d.frames = append(d.frames, f) })
		if d.Answer == nil || !d.Answer(c, f) {
			d.answer(c, f)
		}
	}
	l.Close(forge.CloseShutdown)
	streams.Wait()
	d.note(func() { d.conns = slices.DeleteFunc(d.conns, func(o *Conn) bool { return o == c }) })
}

// Reply says something in answer to a frame. That the connection has ended meanwhile is no error.
func (c *Conn) Reply(f forge.Frame, m forge.Message) error {
	err := c.Send(c.Context(), forge.Frame{ID: ident.New[forge.MessageID](), Re: f.ID, Body: m})
	if _, closed := errors.AsType[*transport.CloseError](err); closed || c.Context().Err() != nil {
		return nil
	}
	return err
}

// answer says yes to everything.
func (d *Daemon) answer(c *Conn, f forge.Frame) {
	reply := func(m forge.Message) {
		if err := c.Reply(f, m); err != nil {
			d.t.Errorf("the daemon cannot say %T: %v", m, err)
		}
	}
	ttl := d.Policy.TTL
	switch m := f.Body.(type) {
	case *forge.Register:
		d.note(func() { c.peer = *m })
		reply(&forge.RegistrationAccepted{
			ServerTime: forge.WallTime(time.Now().UnixMilli()), Policy: d.Policy, Transport: ident.New[forge.TransportSessionID](),
		})
	case *forge.Resync:
		verdicts := make([]forge.LeaseVerdict, len(m.Attempts))
		for i, item := range m.Attempts {
			verdicts[i] = forge.LeaseVerdict{Lease: item.Lease, Verdict: forge.VerdictContinue, HardTTL: ttl}
		}
		reply(&forge.ResyncReply{Nonce: m.Nonce, Verdicts: verdicts})
		d.note(func() { c.Synced = true })
	case *forge.Heartbeat:
		verdicts := make([]forge.LeaseVerdict, len(m.Attempts))
		for i, item := range m.Attempts {
			verdicts[i] = forge.LeaseVerdict{Lease: item.Lease, Verdict: forge.VerdictContinue, HardTTL: ttl}
		}
		reply(&forge.HeartbeatAck{Nonce: m.Nonce, Verdicts: verdicts})
	case *forge.LeaseAccept:
		reply(&forge.LeaseAcceptAck{Lease: m.Context.Lease, Nonce: m.Nonce, Granted: true, HardTTL: ttl})
	case *forge.PhaseChange:
		reply(&forge.PhaseAck{Attempt: m.Context.Attempt, Seq: m.Seq})
	case *forge.LogFinal:
		if d.Log(m.Context.Attempt).Next != m.Seal.Last+1 {
			reply(&forge.Error{Code: forge.ErrorNotYetLog, Retry: forge.RetryBackoff, Text: "frames are missing"})
			return
		}
		reply(&forge.LogFinalAck{Attempt: m.Context.Attempt})
	case *forge.Completion:
		reply(&forge.CompletionAck{Attempt: m.Context.Attempt, Message: m.Message, Answer: forge.CompletionAccepted})
	case *forge.RecoverAttempts:
		out := &forge.RecoveryDecisions{}
		for _, p := range m.Previous {
			out.Decisions = append(out.Decisions, forge.RecoveryDecision{Attempt: p.Context.Attempt, Verdict: forge.RecoveryEnded})
		}
		reply(out)
	}
}

// takeStreams takes what the agent opens.
func (d *Daemon) takeStreams(c *Conn, streams *sync.WaitGroup) {
	for {
		in, err := c.Accept(context.Background()) // ends with the connection
		if err != nil {
			return
		}
		streams.Go(func() {
			switch head := in.Head.(type) {
			case *logv1.StreamHeaderV1:
				d.takeLog(c, in, head)
			case *agentv1.SecretHeaderV1:
				d.giveSecrets(c, in)
			default:
				in.Reset(protocol.ResetNotFound)
			}
		})
	}
}

// takeLog stores frames and acknowledges each.
func (d *Daemon) takeLog(c *Conn, in *link.Inbound, head *logv1.StreamHeaderV1) {
	defer in.Reset(protocol.ResetCancelled)
	id := head.AttemptID()
	d.note(func() {
		d.log(id).Streams++
		d.log(id).Encodings = append(d.log(id).Encodings, head.Encoding)
	})
	frames := in.Frames()
	for {
		_, m, err := frames.Next()
		if err != nil {
			return
		}
		w, ok := m.(*logv1.LogFrameV1)
		if !ok {
			d.t.Errorf("on a log stream came %T", m)
			return
		}
		f := w.Frame()
		if head.Encoding == logv1.EncodingZstd {
			if f.Bytes, err = unpack(f.Bytes); err != nil {
				d.t.Errorf("frame %d is not what its stream says: %v", f.Seq, err)
				return
			}
		}
		next, held := d.store(id, f)
		if held {
			continue
		}
		ack := forge.Frame{ID: ident.New[forge.MessageID](), Body: &forge.LogAck{Attempt: id, Next: next}}
		if c.Send(c.Context(), ack) != nil {
			return
		}
	}
}

// unpack decodes a payload of a compressed stream.
func unpack(packed []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return decoder.DecodeAll(packed, nil)
}

func (d *Daemon) store(id forge.AttemptID, f forge.LogFrame) (next forge.LogSeq, held bool) {
	d.note(func() {
		l := d.log(id)
		switch {
		case f.Seq > l.Next:
			d.t.Errorf("frame %d came where %d was due", f.Seq, l.Next)
		case f.Seq < l.Next:
			l.Again++
		default:
			f.Bytes = slices.Clone(f.Bytes)
			l.Frames = append(l.Frames, f)
			l.Next++
		}
		next, held = l.Next, d.holdLog
	})
	return next, held
}

// giveSecrets answers requests for secrets.
func (d *Daemon) giveSecrets(c *Conn, in *link.Inbound) {
	defer in.Receive.Stop(protocol.ResetCancelled)
	frames := in.Frames()
	for {
		env, m, err := frames.Next()
		if err != nil {
			_ = in.Send.Close() // whoever asked is gone
			return
		}
		w, ok := m.(*agentv1.SecretRequestV1)
		if !ok {
			d.t.Errorf("on a secret stream came %T", m)
			return
		}
		tuple := w.Context.Domain()
		answer := &agentv1.SecretMaterialV1{Attempt: tuple.Attempt.ULID, Lease: tuple.Lease.ULID, Name: w.Name, Version: 1}
		if value, there := d.Secrets[w.Name]; there {
			answer = agentv1.NewSecretMaterial(tuple, forge.SecretRef{Name: w.Name, Version: 1}, forge.NewSecret([]byte(value)), time.Minute)
		}
		b, err := c.AppendFrame(nil, ident.New[forge.MessageID](), env.ID(), answer)
		if err != nil {
			d.t.Error(err)
			return
		}
		if _, err := in.Send.Write(b); err != nil {
			return
		}
	}
}

// log is for callers that hold the lock.
func (d *Daemon) log(id forge.AttemptID) *Log {
	if d.logs[id] == nil {
		d.logs[id] = &Log{Next: 1}
	}
	return d.logs[id]
}

// Log returns what there is of a log.
func (d *Daemon) Log(id forge.AttemptID) (l Log) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l = *d.log(id)
	l.Frames = slices.Clone(l.Frames)
	return l
}

// Output is what an attempt wrote on a stream.
func (l Log) Output(stream forge.LogStream) []byte {
	var b []byte
	for _, f := range l.Frames {
		if f.Stream == stream {
			b = append(b, f.Bytes...)
		}
	}
	return b
}

// HoldLogAcks makes the daemon store frames and acknowledge none, or ends that.
func (d *Daemon) HoldLogAcks(hold bool) { d.note(func() { d.holdLog = hold }) }

// Refuse makes the daemon take no connection, or ends that.
func (d *Daemon) Refuse(refuse bool) { d.note(func() { d.refuse = refuse }) }

// Conns lists the connections that stand.
func (d *Daemon) Conns() []*Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.conns)
}

// Cut breaks every connection, as a dead network does.
func (d *Daemon) Cut() {
	for _, c := range d.Conns() {
		c.Road.Break()
	}
}

// Frames lists what came on control streams, of all connections in the order in which it came.
func (d *Daemon) Frames() []forge.Frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.frames)
}

// Count counts the frames that a test accepts.
func (d *Daemon) Count(is func(forge.Message) bool) (n int) {
	for _, f := range d.Frames() {
		if is(f.Body) {
			n++
		}
	}
	return n
}

// Await waits until a frame has come that a test accepts, and returns its body.
func Await[M forge.Message](d *Daemon, what string, is func(M) bool) M {
	d.t.Helper()
	var found M
	d.Until(what, func() bool {
		for _, f := range d.Frames() {
			if m, ok := f.Body.(M); ok && (is == nil || is(m)) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// Until waits until something holds. It looks whenever anything has changed.
func (d *Daemon) Until(what string, holds func() bool) {
	d.t.Helper()
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	for {
		d.mu.Lock()
		changed := d.changed
		d.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			d.t.Fatalf("within %v it did not come to this: %s", Patience, what)
		}
	}
}

// Note makes Until look again, for what changed elsewhere.
func (d *Daemon) Note() { d.note(func() {}) }

func (d *Daemon) note(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Synced waits for a connection whose resync was answered, other than those given.
func (d *Daemon) Synced(but ...*Conn) *Conn {
	d.t.Helper()
	var found *Conn
	d.Until("an agent is in sync", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, c := range d.conns {
			if c.Synced && !slices.Contains(but, c) {
				found = c
				return true
			}
		}
		return false
	})
	return found
}

// Offer offers a spec over a connection and returns the tuple of the attempt.
func (d *Daemon) Offer(c *Conn, spec forge.JobSpec) forge.AttemptContext {
	d.t.Helper()
	b, err := jobspec.Encode(spec)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	peer := c.peer
	d.mu.Unlock()
	tuple := forge.AttemptContext{
		Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
		Spec: jobspec.ID(b), Runner: peer.Runner, Session: peer.Session,
	}
	d.Say(c, &forge.LeaseOffer{Context: tuple, Spec: b})
	return tuple
}

// Say says something by itself.
func (d *Daemon) Say(c *Conn, m forge.Message) {
	d.t.Helper()
	if err := c.Reply(forge.Frame{}, m); err != nil {
		d.t.Fatal(fmt.Errorf("say %T: %w", m, err))
	}
}

// Peer is what an agent said of itself when it registered on a connection.
func (d *Daemon) Peer(c *Conn) forge.Register {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.peer
}
