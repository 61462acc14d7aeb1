package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/time/rate"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

// Message is what came on the control stream. Exactly one of Domain and Wire is set: Wire where the domain has no value
// for it, as for enrolment, certificates and health.
type Message struct {
	ID     forge.MessageID
	Re     forge.MessageID // the request that it answers, or zero
	Domain forge.Message
	Wire   protocol.Message
}

// Frame returns a message with a domain value as the cores take it.
func (m Message) Frame() forge.Frame { return forge.Frame{ID: m.ID, Re: m.Re, Body: m.Domain} }

// Receive returns the next message. It has passed limits, gate, version, decoding and, after Bind, the check of its
// speaker. The error is ctx's, or a *transport.CloseError once the connection has ended.
func (l *Link) Receive(ctx context.Context) (Message, error) {
	select {
	case m := <-l.messages:
		return m, nil
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	case <-l.ctx.Done():
		return Message{}, l.ending()
	}
}

// Send writes a domain message. A nil error says that it was handed to the connection, not that it arrived. An error that
// is no *transport.CloseError says that nothing was written: ctx ended first, or the frame is not one that a peer would
// take. A peer that takes nothing for a while has its connection closed.
func (l *Link) Send(ctx context.Context, f forge.Frame) error {
	b, err := wire.EncodeFrame(nil, f, l.Version(), nowMs())
	if err != nil {
		return err
	}
	return l.send(ctx, b)
}

// SendWire is Send for messages that the domain has no value for.
func (l *Link) SendWire(ctx context.Context, id, re forge.MessageID, m protocol.Message) error {
	b, err := l.AppendFrame(nil, id, re, m)
	if err != nil {
		return err
	}
	return l.send(ctx, b)
}

// AppendFrame appends a message as a frame of this connection, for streams other than the control stream.
func (l *Link) AppendFrame(dst []byte, id, re forge.MessageID, m protocol.Message) ([]byte, error) {
	return protocol.AppendFrame(dst, protocol.NewEnvelope(l.Version(), forge.Frame{ID: id, Re: re}, nowMs()), m)
}

func (l *Link) send(ctx context.Context, b []byte) error {
	header, err := protocol.ParseHeader([protocol.HeaderBytes]byte(b))
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return l.write(ctx, header.Tag, b)
}

// write writes one whole frame. A frame that moves the connection on does so before its first byte: its answer may be
// there before the write returns.
func (l *Link) write(ctx context.Context, tag protocol.Tag, b []byte) error {
	select {
	case l.writing <- struct{}{}:
		defer func() { <-l.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done():
		return l.ending()
	}
	if l.ctx.Err() != nil {
		return l.ending()
	}
	if state, ok := moves(tag.Type); ok {
		l.SetState(state)
	}
	err := l.control.SetWriteDeadline(time.Now().Add(l.cfg.WriteWithin))
	if err == nil {
		_, err = l.control.Write(b)
	}
	switch {
	case err == nil:
		l.cfg.Observer.Sent(tag, len(b))
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		l.violated(&protocol.Violation{Fault: protocol.FaultRate, Stream: protocol.StreamControl, Tag: tag, Err: errSlow})
		return l.ending()
	default:
		return l.broken(err)
	}
}

var errSlow = errors.New("the peer does not take what it is sent")

// read is the goroutine that reads the control stream. It reads no further than one message ahead of Receive, so that a
// peer that sends more than is handled is slowed down by the windows of the road.
func (l *Link) read() {
	limit := rate.NewLimiter(rate.Limit(l.cfg.FramesPerSecond), l.cfg.FrameBurst)
	for {
		m, err := l.readFrame(limit)
		if err != nil {
			l.readEnded(err)
			return
		}
		select {
		case l.messages <- m:
		case <-l.ctx.Done():
			return
		}
	}
}

// readFrame reads one frame and passes it through everything that may refuse it, cheapest first.
func (l *Link) readFrame(limit *rate.Limiter) (Message, error) {
	header, err := l.frames.Next()
	if err != nil {
		return Message{}, err
	}
	if !limit.Allow() {
		return Message{}, &protocol.Violation{
			Fault: protocol.FaultRate, Stream: protocol.StreamControl, Tag: header.Tag, Err: errFlood,
		}
	}
	if err := l.admit(header.Tag); err != nil {
		return Message{}, err
	}
	body, err := l.frames.Body()
	if err != nil {
		return Message{}, err
	}
	if header.Tag.Type == protocol.TypeEnroll {
		defer l.frames.Wipe() // it holds a token
	}
	l.cfg.Observer.Received(header.Tag, protocol.HeaderBytes+len(body))
	m, err := l.decode(header, body)
	if err != nil {
		return Message{}, err
	}
	if state, ok := moves(header.Tag.Type); ok {
		l.SetState(state)
	}
	return m, nil
}

var errFlood = errors.New("too many frames")

// admit asks the gate about a frame of the control stream.
func (l *Link) admit(tag protocol.Tag) error { return l.admitOn(protocol.StreamControl, tag) }

func (l *Link) admitOn(kind protocol.StreamKind, tag protocol.Tag) error {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	to := protocol.ToPeer
	if l.daemon {
		to = protocol.ToDaemon
	}
	err := gate.Frame(to, kind, tag)
	if gate.State == forge.ConnClosing && outOfTurn(err) {
		return nil // nobody waits for it any more
	}
	return err
}

// outOfTurn reports whether an error says that something may not come in this state. Where this end has begun to close, that
// is nobody's fault: the peer does not know yet, and is to hear the reason of the close and not that of a violation.
func outOfTurn(err error) bool {
	var v *protocol.Violation
	return errors.As(err, &v) && v.Fault == protocol.FaultState
}

// openFrame decodes a body and checks its version and whose name is in it.
func (l *Link) openFrame(header protocol.Header, body []byte) (protocol.EnvelopeV1, protocol.Message, error) {
	env, w, err := wire.Decode(header, body)
	if err != nil {
		return env, nil, err
	}
	l.mu.Lock()
	version, s := l.version, l.speaker
	l.mu.Unlock()
	if err := env.CheckVersion(header.Tag, version); err != nil {
		return env, nil, err
	}
	if s.known {
		err = protocol.CheckSpeaker(w, s.runner, s.session)
	}
	return env, w, err
}

// decode makes a message of a body.
func (l *Link) decode(header protocol.Header, body []byte) (Message, error) {
	env, w, err := l.openFrame(header, body)
	if err != nil {
		return Message{}, err
	}
	m := Message{ID: env.ID(), Re: env.Re()}
	if _, ok := w.(protocol.Domain); !ok {
		m.Wire = w
		return m, nil
	}
	f, err := wire.ToFrame(env, w)
	m.Domain = f.Body
	return m, err
}

// readEnded decides what the end of reading means.
func (l *Link) readEnded(err error) {
	var v *protocol.Violation
	switch {
	case errors.As(err, &v):
		l.violated(v)
	case errors.Is(err, io.EOF):
		l.peerEnded()
	default:
		_ = l.broken(err) // it is the cause of the link's end
	}
}

// peerEnded follows the peer's end of the control stream: it has read ours and is about to say why, or it just left.
func (l *Link) peerEnded() {
	close(l.ended)
	select {
	case l.writing <- struct{}{}: // and it stays taken: nobody reads any more
		_ = l.control.Close() // the connection is at its end anyway
	case <-l.ctx.Done():
		return
	}
	timer := time.NewTimer(2 * l.cfg.Linger)
	defer timer.Stop()
	select {
	case <-l.ctx.Done():
	case <-timer.C:
		l.end(forge.CloseProtocol, errControlEnded)
	}
}

var errControlEnded = errors.New("the peer ended the control stream and said no more")

// violated tells the observer of a violation that costs the connection, and closes it.
func (l *Link) violated(v *protocol.Violation) {
	if l.ctx.Err() != nil {
		return // what a dead connection looks like is nobody's fault
	}
	l.cfg.Observer.Violation(l, v)
	l.log("connection closed for a violation", v)
	if v.Fault == protocol.FaultUnsupported && v.Stream <= protocol.StreamControl && !v.Re.IsZero() {
		b, err := l.AppendFrame(nil, ident.New[forge.MessageID](), v.Re, protocol.Unsupported())
		if err == nil && l.send(l.ctx, b) == nil {
			l.lingerFor(v.Reason(), v)
			return
		}
	}
	l.end(v.Reason(), v)
}

// lingerFor lets the peer read what was sent, then closes. Its caller is the only reader of the control stream.
func (l *Link) lingerFor(reason forge.CloseReason, cause error) {
	l.SetState(forge.ConnClosing)
	select {
	case l.writing <- struct{}{}: // and it stays taken
		if l.control.Close() == nil && l.control.SetReadDeadline(time.Now().Add(l.cfg.Linger)) == nil {
			_, _ = io.Copy(io.Discard, l.control) // to its end, or for as long as we are willing to wait
		}
	case <-l.ctx.Done():
	}
	l.end(reason, cause)
}

// log notes a violation. It holds nothing of what the peer sent but numbers.
func (l *Link) log(text string, v *protocol.Violation) {
	l.cfg.Log.Warn(text, slog.Any("peer", l.Peer().Addr), slog.String("severity", v.Severity().String()), slog.Any("error", v))
}
