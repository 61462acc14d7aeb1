// Package linktest is a peer that keeps to nothing, for the tests of whoever answers connections.
//
// Attacks lists what it does and what has to come of it. A Hostile is the same by hand.
package linktest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Hostile speaks the protocol by hand, as well or as badly as it is told to. It belongs to one goroutine.
type Hostile struct {
	Conn    transport.Conn
	Control transport.Stream // after OpenControl
	Version protocol.Version // in its envelopes
}

// New returns a hostile peer on a connection that it has dialled.
func New(conn transport.Conn) *Hostile { return &Hostile{Conn: conn, Version: protocol.Current} }

// OpenControl opens the control stream with a good header.
func (h *Hostile) OpenControl(ctx context.Context) error {
	s, err := h.Conn.OpenStream(ctx)
	if err != nil {
		return fmt.Errorf("open control stream: %w", err)
	}
	h.Control = s
	header, err := protocol.AppendStreamHeader(nil, protocol.StreamControl, new(protocol.ControlHeaderV1))
	if err != nil {
		return fmt.Errorf("open control stream: %w", err)
	}
	return h.Bytes(header)
}

// Bytes writes bytes on the control stream.
func (h *Hostile) Bytes(b []byte) error {
	if _, err := h.Control.Write(b); err != nil {
		return fmt.Errorf("write on the control stream: %w", err)
	}
	return nil
}

// Say writes a good frame.
func (h *Hostile) Say(m protocol.Message) error {
	b, err := h.frame(m)
	if err != nil {
		return err
	}
	return h.Bytes(b)
}

func (h *Hostile) frame(m protocol.Message) ([]byte, error) {
	env := protocol.NewEnvelope(h.Version, forge.Frame{ID: ident.New[forge.MessageID]()}, 0)
	b, err := protocol.AppendFrame(nil, env, m)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	return b, nil
}

// Raw writes the header of a frame and a body that need not fit to it.
func (h *Hostile) Raw(length uint32, tag protocol.Tag, body []byte) error {
	b := binary.BigEndian.AppendUint32(nil, length)
	b = binary.BigEndian.AppendUint16(b, uint16(tag.Type))
	b = append(b, tag.Schema, 0)
	return h.Bytes(append(b, body...))
}

// Hear reads the next frame of the control stream.
func (h *Hostile) Hear() (protocol.EnvelopeV1, protocol.Message, error) {
	frames := protocol.NewFrameReader(h.Control)
	header, err := frames.Next()
	if err != nil {
		return protocol.EnvelopeV1{}, nil, fmt.Errorf("read on the control stream: %w", err)
	}
	body, err := frames.Body()
	if err != nil {
		return protocol.EnvelopeV1{}, nil, fmt.Errorf("read on the control stream: %w", err)
	}
	return wire.Decode(header, body)
}

// Hello opens the control stream, says hello as an agent, and reads the answer.
func (h *Hostile) Hello(ctx context.Context) error {
	return h.HelloAs(ctx, protocol.RoleAgent, protocol.OwnTerms())
}

// HelloAs does so in a role and under terms.
func (h *Hostile) HelloAs(ctx context.Context, role protocol.Role, terms protocol.Terms) error {
	if err := h.OpenControl(ctx); err != nil {
		return err
	}
	hello := &protocol.HelloV1{Role: role, Versions: terms.Versions, Features: terms.Features, Software: "hostile"}
	if err := h.Say(hello); err != nil {
		return err
	}
	_, _, err := h.Hear()
	return err
}

// Throw opens a stream with two directions, writes bytes on it and returns with how its reading ended: with the reset that
// the other side answered with, if it did.
func (h *Hostile) Throw(ctx context.Context, b []byte) error {
	s, err := h.Conn.OpenStream(ctx)
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	defer s.Reset(protocol.ResetCancelled)
	if _, err := s.Write(b); err != nil {
		return fmt.Errorf("write on a stream: %w", err)
	}
	_, err = io.Copy(io.Discard, s)
	return err
}

// Closed waits for the end of the connection and returns why it ended.
func (h *Hostile) Closed(ctx context.Context) (forge.CloseReason, error) {
	select {
	case <-h.Conn.Context().Done():
	case <-ctx.Done():
		return 0, fmt.Errorf("the connection still stands: %w", context.Cause(ctx))
	}
	var closed *transport.CloseError
	if err := context.Cause(h.Conn.Context()); !errors.As(err, &closed) {
		return 0, fmt.Errorf("the connection ended with %w", err)
	}
	return closed.Reason, nil
}

// gone reports whether an attack was cut off by the close that it is about.
func gone(err error) bool {
	var closed *transport.CloseError
	var reset *transport.ResetError
	return errors.As(err, &closed) || errors.As(err, &reset)
}

// patience bounds what an attack waits for.
const patience = 30 * time.Second
