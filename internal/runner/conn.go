package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// conn is one connection, from its dial to its end.
type conn struct {
	a        *Agent
	seq      uint64
	endpoint string
	since    time.Time
	link     *link.Link // set before the loop hears of Connected
	dialing  context.CancelFunc
	out      *outbox

	mu     sync.Mutex
	ended  bool // also while it is dialled
	closed bool // no more logs
	logs   map[forge.AttemptID]*logStream
}

// dial opens a connection in a goroutine of its own, which then reads it to its end.
func (a *Agent) dial(e core.Dial) {
	ctx, cancel := context.WithTimeout(a.life, a.policy.Request)
	c := &conn{
		a: a, seq: e.Seq, endpoint: a.cfg.Endpoints[e.Endpoint%len(a.cfg.Endpoints)], dialing: cancel,
		out: newOutbox(), logs: map[forge.AttemptID]*logStream{},
	}
	a.conns[e.Seq] = c
	session := forge.AgentSessionID{}
	if a.registered {
		session = a.session
	}
	a.tasks.Go(func() {
		defer cancel()
		c.run(ctx, session)
	})
}

// run carries a connection to its end and tells the loop.
func (c *conn) run(ctx context.Context, session forge.AgentSessionID) {
	l, err := c.open(ctx, session)
	if err == nil {
		c.up(l)
		c.a.cfg.Metrics.connected()
		c.a.cfg.Log.Info("connected", telemetry.KeyEndpoint, c.endpoint, telemetry.KeyConnection, c.seq, telemetry.KeyVersion, l.Version().String())
		c.a.do(func() { c.a.connected(c) })
		var writer sync.WaitGroup
		writer.Go(c.write)
		err = c.read()
		c.end(forge.CloseNormal)
		writer.Wait()
		c.endLogs()
	}
	reason := reasonOf(err)
	level := slog.LevelInfo
	if reason.Retry() == forge.RetryOperator {
		level = slog.LevelWarn // nothing comes of it before somebody acts
	}
	c.a.cfg.Log.Log(ctx, level, "not connected", telemetry.KeyEndpoint, c.endpoint, telemetry.KeyConnection, c.seq, telemetry.KeyReason, reason.String(), telemetry.KeyError, err)
	c.a.do(func() {
		delete(c.a.conns, c.seq)
		c.a.mu.Lock()
		c.a.lastWhy, c.a.lastErr = reason.String(), text(err)
		c.a.mu.Unlock()
		c.a.step(core.Closed{Seq: c.seq, Reason: reason})
	})
}

// open dials and says hello. Where the daemon does not take the certificate any more, the key is proved for a new one, and
// the connection tried once again. That is also how a revoked runner hears what it is: TLS has no word for it (case B47).
func (c *conn) open(ctx context.Context, session forge.AgentSessionID) (*link.Link, error) {
	l, err := c.connect(ctx, session)
	if err == nil || errors.Is(err, trust.ErrStranger) || !c.a.recoverable(reasonOf(err)) {
		return l, err
	}
	c.a.cfg.Log.Warn("the daemon does not take this runner's certificate; its key is proved for a new one", telemetry.KeyError, err)
	if refused := c.recover(ctx); refused != nil {
		c.a.heard(refused)
		return nil, refused
	}
	return c.connect(ctx, session)
}

// recoverable reports whether a refusal is worth the proof of the key. Where that was answered with no before, asking again
// at every try would only make work for the daemon: the tries go on, for an operator may restore what it forgot.
func (a *Agent) recoverable(reason forge.CloseReason) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return enroll.Recoverable(reason) && (reason != forge.CloseAuthFailed || !a.unknown)
}

// heard notes that the daemon knows no more of this runner than that it does not take it.
func (a *Agent) heard(err error) {
	refused, ok := errors.AsType[*enroll.Refused](err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unknown = ok && refused.Reason == forge.CloseAuthFailed
}

func (c *conn) connect(ctx context.Context, session forge.AgentSessionID) (*link.Link, error) {
	road, err := c.a.roads.agents.Dial(ctx, c.endpoint)
	if err != nil {
		return nil, c.a.explain(err)
	}
	l, err := link.Connect(ctx, road, c.a.linkCfg, session)
	if err != nil {
		return nil, c.a.explain(err)
	}
	return l, nil
}

// explain says what clocks have to do with an error, if they have. Case B32.
func (a *Agent) explain(err error) error {
	now := clock.Wall()
	if reasonOf(err) == forge.CloseCertExpired {
		if skew := trust.ExplainExpired(a.who().Leaf(), now); skew != nil {
			return errors.Join(err, skew)
		}
	}
	return trust.Explain(err, now)
}

// recover gets the next certificate by proof of the key.
func (c *conn) recover(ctx context.Context) error {
	road, err := c.a.roads.recovery.Dial(ctx, c.endpoint)
	if err != nil {
		return c.a.explain(err)
	}
	id, err := enroll.Recover(ctx, road, c.a.linkCfg, c.a.who())
	if err != nil {
		return err
	}
	return c.a.become(id)
}

// reasonOf is why a connection ended, or could not be opened.
func reasonOf(err error) forge.CloseReason {
	if refused, ok := errors.AsType[*enroll.Refused](err); ok {
		return refused.Reason
	}
	if closed, ok := errors.AsType[*transport.CloseError](err); ok && closed.Reason.Valid() {
		return closed.Reason
	}
	return forge.CloseLost
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// connected tells the core, and makes the connection the one over which everything else goes.
func (a *Agent) connected(c *conn) {
	a.mu.Lock()
	a.current, a.unknown = c, false
	close(a.moved)
	a.moved = make(chan struct{})
	a.mu.Unlock()
	a.step(core.Connected{Seq: c.seq})
}

// up notes the link, which ends at once if the connection is not wanted any more.
func (c *conn) up(l *link.Link) {
	c.mu.Lock()
	c.link, c.since = l, clock.Wall()
	ended := c.ended
	c.mu.Unlock()
	if ended {
		l.Close(forge.CloseNormal)
	}
}

// end ends the connection for a reason; only the first one counts.
func (c *conn) end(reason forge.CloseReason) {
	c.dialing()
	c.mu.Lock()
	c.ended = true
	l := c.link
	c.mu.Unlock()
	if l != nil {
		l.Close(reason)
	}
}

// read hands what comes on the control stream on, and returns why nothing comes any more.
func (c *conn) read() error {
	for {
		m, err := c.link.Receive(context.WithoutCancel(c.a.life)) // the end of the agent closes the link
		if err != nil {
			return err
		}
		if m.Wire != nil {
			c.aside(m)
			continue
		}
		f := m.Frame()
		if ack, ok := f.Body.(*forge.LogAck); ok {
			c.a.logAcked(ack)
			c.logAcked(ack)
		}
		c.a.do(func() { c.a.received(c, f) })
	}
}

// received feeds a frame to the core, and looks at what the core has no use for.
func (a *Agent) received(c *conn, f forge.Frame) {
	switch m := f.Body.(type) {
	case *forge.RegistrationAccepted:
		a.registered = true
		a.policy = m.Policy
		skew := clock.Wall().Sub(time.UnixMilli(int64(m.ServerTime)))
		a.mu.Lock()
		a.facts.Skew, a.facts.SkewKnown = skew, true
		a.mu.Unlock()
	case *forge.RefreshCapabilities:
		a.tasks.Go(a.probe)
	}
	a.step(core.Received{Seq: c.seq, Frame: f})
	if _, ok := f.Body.(*forge.ResyncReply); ok {
		a.tasks.Go(func() { c.report(forge.MessageID{}, nil) })
	}
}

// aside handles what the core has no value for.
func (c *conn) aside(m link.Message) {
	switch w := m.Wire.(type) {
	case *agentv1.ProbeRequestV1:
		c.report(m.ID, w)
	case *agentv1.CertificateIssuedV1:
		c.a.renewed(w)
	case *logv1.LogResumeV1:
		c.a.do(func() { c.a.resumeLog(c, forge.MakeID[forge.AttemptID](w.Attempt), forge.LogSeq(w.From)) })
	}
}

// write sends what is in the outbox until the connection ends.
func (c *conn) write() {
	ctx := c.link.Context()
	for {
		o, ok := c.out.pop()
		if !ok {
			select {
			case <-c.out.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		var err error
		switch {
		case o.want:
			c.a.post(core.Writable{Seq: c.seq})
		case o.wire != nil:
			err = c.link.SendWire(ctx, o.frame.ID, o.frame.Re, o.wire)
		default:
			err = c.link.Send(ctx, o.frame)
		}
		if err == nil {
			continue
		}
		if _, closed := errors.AsType[*transport.CloseError](err); closed {
			return
		}
		// What cannot be said at all would be said again: the connection ends, so that this is seen.
		c.a.cfg.Log.Error("a message cannot be sent", telemetry.KeyConnection, c.seq, telemetry.KeyError, err)
		if o.wire == nil {
			c.a.tasks.Go(func() { c.end(forge.CloseInternal) })
			return
		}
	}
}

// say sends a message that is not the core's, if the connection lives.
func (c *conn) say(re forge.MessageID, m protocol.Message) {
	c.out.push(outgoing{frame: forge.Frame{ID: ident.New[forge.MessageID](), Re: re}, wire: m})
}

// outgoing is something for the writer.
type outgoing struct {
	want  bool // tell the core that a frame may come
	frame forge.Frame
	wire  protocol.Message // with the ids of frame
}

// maxAside bounds what waits to be said besides the core's frames, of which there is one at a time.
const maxAside = 16

// outbox is what waits for the writer.
type outbox struct {
	wake chan struct{} // has room for one

	mu    sync.Mutex
	queue []outgoing
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) push(out outgoing) {
	o.mu.Lock()
	if out.wire == nil || len(o.queue) < maxAside {
		o.queue = append(o.queue, out)
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) pop() (outgoing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return outgoing{}, false
	}
	out := o.queue[0]
	o.queue = o.queue[1:]
	return out, true
}
