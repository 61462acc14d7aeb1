package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Connect says hello on a connection that this end has dialled. A zero session is one that was never registered.
//
// The connection belongs to the link: on an error it is closed. The error is a *transport.CloseError; it wraps a
// *protocol.Mismatch, whose text is meant for an operator, where the peers have no version in common. A nil error says
// that they agree on how to talk, not that this runner is welcome.
func Connect(ctx context.Context, conn transport.Conn, cfg Config, session forge.AgentSessionID) (*Link, error) {
	l := newLink(conn, cfg, false)
	l.gate.Role = l.cfg.Role
	l.hello = &protocol.HelloV1{
		Role: l.cfg.Role, Versions: l.cfg.Terms.Versions, Features: l.cfg.Terms.Features, Software: l.cfg.Software,
	}
	if !session.IsZero() {
		id := [16]byte(session.ULID)
		l.hello.Session = &id
	}
	return l.negotiate(ctx, l.sayHello)
}

// Answer waits for the hello on a connection that the peer has dialled, and answers it. On an error the connection is
// closed; the error is a *transport.CloseError.
func Answer(ctx context.Context, conn transport.Conn, cfg Config) (*Link, error) {
	l := newLink(conn, cfg, true)
	return l.negotiate(ctx, l.awaitHello)
}

// negotiate runs one side of the hello within its time.
func (l *Link) negotiate(ctx context.Context, side func(context.Context) (protocol.Selection, error)) (*Link, error) {
	timer := time.AfterFunc(l.cfg.HelloWithin, l.helloLate)
	cancelled := context.AfterFunc(ctx, func() { l.end(forge.CloseNormal, context.Cause(ctx)) })
	selection, err := side(l.ctx)
	// What has begun to end the connection is let to finish, so that nothing of it outlives this call.
	if inTime, wanted := timer.Stop(), cancelled(); err == nil && (!inTime || !wanted) {
		<-l.ctx.Done()
		err = l.ending()
	}
	if err != nil {
		return nil, l.refuse(err)
	}
	l.start(selection)
	return l, nil
}

// helloLate ends a connection on which nothing was agreed in time.
func (l *Link) helloLate() {
	l.violated(&protocol.Violation{Fault: protocol.FaultLate, Stream: protocol.StreamControl, Err: errNoHello})
}

var errNoHello = errors.New("no hello in time")

// refuse ends a connection on which nothing was agreed, and returns why.
func (l *Link) refuse(err error) error {
	var v *protocol.Violation
	var m *protocol.Mismatch
	var full *tooManyBad
	switch {
	case errors.As(err, &full):
		l.end(forge.CloseProtocol, full)
	case errors.As(err, &v):
		l.violated(v)
	case errors.As(err, &m):
		if l.daemon {
			l.lingerFor(m.Reason(), m)
		}
		l.end(m.Reason(), m)
		return &transport.CloseError{Reason: m.Reason(), Err: m} // whichever end was the first to close
	default:
		return l.broken(err)
	}
	return l.ending()
}

// sayHello is the agent's side.
func (l *Link) sayHello(ctx context.Context) (protocol.Selection, error) {
	control, err := l.conn.OpenStream(ctx)
	if err != nil {
		return protocol.Selection{}, fmt.Errorf("open control stream: %w", err)
	}
	l.take(control)
	header, err := protocol.AppendStreamHeader(nil, protocol.StreamControl, new(protocol.ControlHeaderV1))
	if err != nil {
		return protocol.Selection{}, err
	}
	if err := l.greet(header, l.hello, forge.MessageID{}); err != nil {
		return protocol.Selection{}, err
	}
	_, m, err := l.next(protocol.TypeHelloAck)
	if err != nil {
		return protocol.Selection{}, err
	}
	return m.(*protocol.HelloAckV1).Accept(l.cfg.Terms)
}

// awaitHello is the daemon's side.
func (l *Link) awaitHello(ctx context.Context) (protocol.Selection, error) {
	if err := l.awaitControl(ctx); err != nil {
		return protocol.Selection{}, err
	}
	env, m, err := l.next(protocol.TypeHello)
	if err != nil {
		return protocol.Selection{}, err
	}
	hello := m.(*protocol.HelloV1)
	if !l.gate.ALPN.Admits(hello.Role) {
		return protocol.Selection{}, &protocol.Violation{
			Fault: protocol.FaultRole, Stream: protocol.StreamControl, Tag: hello.Tag(), Err: errNotAdmitted,
		}
	}
	l.mu.Lock()
	l.hello, l.gate.Role = hello, hello.Role
	l.mu.Unlock()
	ack, mismatch := protocol.NewHelloAck(l.cfg.Terms, hello, l.cfg.Software, nowMs())
	if err := l.greet(nil, ack, env.ID()); err != nil {
		return protocol.Selection{}, err
	}
	if mismatch != nil {
		return protocol.Selection{}, mismatch
	}
	return protocol.Selection{Version: ack.Selected.Version, Features: ack.Selected.Features}, nil
}

var errNotAdmitted = errors.New("this role has connections of another name")

// awaitControl accepts streams until one of them is the control stream. Others cost what a wrong header costs.
func (l *Link) awaitControl(ctx context.Context) error {
	for {
		s, err := l.conn.AcceptStream(ctx)
		if err != nil {
			return fmt.Errorf("accept control stream: %w", err)
		}
		kind, _, err := l.readHeader(s)
		if err == nil && kind == protocol.StreamControl {
			l.take(s)
			return nil
		}
		s.Stop(protocol.ResetMalformed)
		s.Reset(protocol.ResetMalformed)
		if err := l.badStream(err); err != nil {
			return err
		}
	}
}

// take makes a stream the control stream.
func (l *Link) take(s transport.Stream) {
	l.control, l.frames = s, protocol.NewFrameReader(s)
	s.SetPriority(transport.PriorityControl)
}

// greet writes one of the two messages that come before there is a version.
func (l *Link) greet(header []byte, m protocol.Message, re forge.MessageID) error {
	frame := forge.Frame{ID: ident.New[forge.MessageID](), Re: re}
	env := protocol.NewEnvelope(l.cfg.Terms.Versions.Highest(), frame, nowMs())
	b, err := protocol.AppendFrame(header, env, m)
	if err != nil {
		return err
	}
	return l.write(l.ctx, m.Tag(), b)
}

// next reads the one frame that may come while nothing is agreed.
func (l *Link) next(want protocol.TypeID) (protocol.EnvelopeV1, protocol.Message, error) {
	header, err := l.frames.Next()
	if err != nil {
		return protocol.EnvelopeV1{}, nil, err
	}
	if err := l.admit(header.Tag); err != nil {
		return protocol.EnvelopeV1{}, nil, err
	}
	body, err := l.frames.Body()
	if err != nil {
		return protocol.EnvelopeV1{}, nil, err
	}
	l.cfg.Observer.Received(header.Tag, protocol.HeaderBytes+len(body))
	env, m, err := wire.Decode(header, body)
	if err == nil && header.Tag.Type != want {
		err = &protocol.Violation{Fault: protocol.FaultState, Stream: protocol.StreamControl, Tag: header.Tag}
	}
	return env, m, err
}

// badStream counts a stream whose header was wrong. An error that it returns closes the connection.
func (l *Link) badStream(err error) error {
	var v *protocol.Violation
	if !errors.As(err, &v) {
		if err != nil && l.conn.Context().Err() != nil {
			return err
		}
		return nil // the peer gave the stream up
	}
	if v.Severity() != protocol.SeverityStream {
		return v
	}
	l.cfg.Observer.Violation(l, v)
	l.log("stream refused", v)
	if v.Fault != protocol.FaultHeader {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bad.Note(clock.Boot()) {
		return &tooManyBad{last: v}
	}
	return nil
}

// tooManyBad closes a connection with PROTOCOL.
type tooManyBad struct{ last *protocol.Violation }

func (e *tooManyBad) Error() string { return "too many streams with a wrong header: " + e.last.Error() }
func (e *tooManyBad) Unwrap() error { return e.last }
