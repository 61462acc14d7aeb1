package linktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Attack is something that a peer may not do.
type Attack struct {
	Name   string
	State  forge.ConnectionState // that the connection has to be in: Negotiating, Registering or Active
	Fault  protocol.Fault        // what it is a violation of
	Closes forge.CloseReason     // why the connection is closed; 0: it goes on, and a stream was reset with Resets
	Resets protocol.ResetCode
	Slow   bool // it waits for a limit of time to pass: 5 or 10 s on a real clock

	run func(ctx context.Context, h *Hostile) error
}

// Run carries an attack out on a connection that has said hello where the attack's State is past Negotiating. It returns an
// error unless exactly that came of it that has to.
func (a Attack) Run(ctx context.Context, h *Hostile) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := a.run(ctx, h)
	if a.Closes == 0 {
		var reset *transport.ResetError
		if !errors.As(err, &reset) || reset.Code != a.Resets {
			return fmt.Errorf("%s: the stream ended with %w, not %v", a.Name, err, a.Resets)
		}
		return nil
	}
	if err != nil && !gone(err) {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	reason, err := h.Closed(ctx)
	if err == nil && reason != a.Closes {
		err = fmt.Errorf("the connection was closed for %v, not for %v", reason, a.Closes)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return nil
}

// Flood is how many small frames the flood has: more than any limit admits at once.
const Flood = 100_000

// manyStreams is more streams for secrets than anybody admits.
const manyStreams = 33

// Attacks lists every attack.
func Attacks() []Attack {
	register := protocol.Tag{Type: protocol.TypeRegister, Schema: 1}
	return []Attack{
		{
			Name: "no hello", State: forge.ConnNegotiating, Fault: protocol.FaultLate,
			Closes: forge.CloseRegisterTimeout, Slow: true,
			run: func(ctx context.Context, h *Hostile) error { return h.OpenControl(ctx) },
		},
		{
			Name: "no stream at all", State: forge.ConnNegotiating, Fault: protocol.FaultLate,
			Closes: forge.CloseRegisterTimeout, Slow: true,
			run: func(context.Context, *Hostile) error { return nil },
		},
		{
			Name: "bytes before a header", State: forge.ConnNegotiating, Fault: protocol.FaultHeader,
			Resets: protocol.ResetMalformed,
			run:    func(ctx context.Context, h *Hostile) error { return h.Throw(ctx, []byte("GET / HTTP/1.1\r\n\r\n")) },
		},
		{
			Name: "wrong magic three times", State: forge.ConnNegotiating, Fault: protocol.FaultHeader,
			Closes: forge.CloseProtocol, run: wrongMagic,
		},
		{
			Name: "wrong magic three times at work", State: forge.ConnActive, Fault: protocol.FaultHeader,
			Closes: forge.CloseProtocol, run: wrongMagic,
		},
		{
			Name: "a role that the name of the connection does not admit", State: forge.ConnNegotiating, Fault: protocol.FaultRole,
			Closes: forge.CloseRoleViolation,
			run: func(ctx context.Context, h *Hostile) error {
				return h.HelloAs(ctx, protocol.RoleSigningWorker, protocol.OwnTerms())
			},
		},
		{
			Name: "work before hello", State: forge.ConnNegotiating, Fault: protocol.FaultRole,
			Closes: forge.CloseRoleViolation,
			run: func(ctx context.Context, h *Hostile) error {
				return errors.Join(h.OpenControl(ctx), h.Raw(64, protocol.Tag{Type: protocol.TypeHeartbeat, Schema: 1}, nil))
			},
		},
		{
			Name: "an oversized frame", State: forge.ConnRegistering, Fault: protocol.FaultTooLarge,
			Closes: forge.CloseFrameTooLarge,
			run: func(_ context.Context, h *Hostile) error {
				return h.Raw(protocol.MaxBody+1, register, make([]byte, 1024))
			},
		},
		{
			Name: "four GiB announced", State: forge.ConnRegistering, Fault: protocol.FaultTooLarge,
			Closes: forge.CloseFrameTooLarge,
			run:    func(_ context.Context, h *Hostile) error { return h.Raw(1<<32-1, register, nil) },
		},
		{
			Name: "a malformed frame", State: forge.ConnRegistering, Fault: protocol.FaultMalformed,
			Closes: forge.CloseMalformed,
			run:    func(_ context.Context, h *Hostile) error { return h.Raw(100, register, make([]byte, 100)) },
		},
		{
			Name: "a frame without an end", State: forge.ConnRegistering, Fault: protocol.FaultMalformed,
			Closes: forge.CloseMalformed,
			run:    func(_ context.Context, h *Hostile) error { return h.Raw(0, register, nil) },
		},
		{
			Name: "a request that was not negotiated", State: forge.ConnRegistering, Fault: protocol.FaultUnsupported,
			Closes: forge.CloseUnsupported, run: unknownRequest,
		},
		{
			Name: "another version than the negotiated one", State: forge.ConnRegistering, Fault: protocol.FaultVersion,
			Closes: forge.CloseProtocol,
			run: func(_ context.Context, h *Hostile) error {
				h.Version.Minor++
				return h.Say(protocol.Unsupported())
			},
		},
		{
			Name: "hello twice", State: forge.ConnRegistering, Fault: protocol.FaultState, Closes: forge.CloseBadState,
			run: func(_ context.Context, h *Hostile) error {
				return h.Raw(64, protocol.Tag{Type: protocol.TypeHello, Schema: 1}, nil)
			},
		},
		{
			Name: "the other side's message", State: forge.ConnActive, Fault: protocol.FaultRole,
			Closes: forge.CloseRoleViolation,
			run:    func(_ context.Context, h *Hostile) error { return h.Say(new(agentv1.DrainV1)) },
		},
		{
			Name: "a family of another role", State: forge.ConnActive, Fault: protocol.FaultRole,
			Closes: forge.CloseRoleViolation,
			run: func(_ context.Context, h *Hostile) error {
				return h.Raw(16, protocol.Tag{Type: 0x0901, Schema: 1}, nil)
			},
		},
		{
			Name: "enrolment on a connection for work", State: forge.ConnRegistering, Fault: protocol.FaultRole,
			Closes: forge.CloseRoleViolation,
			run: func(_ context.Context, h *Hostile) error {
				return h.Raw(16, protocol.Tag{Type: protocol.TypeEnroll, Schema: 1}, nil)
			},
		},
		{
			Name: "a flood of small frames", State: forge.ConnActive, Fault: protocol.FaultRate, Closes: forge.CloseRate,
			run: flood,
		},
		{
			Name: "a stream before registration", State: forge.ConnRegistering, Fault: protocol.FaultState,
			Closes: forge.CloseBadState,
			run: func(ctx context.Context, h *Hostile) error {
				b, err := secretHeader()
				return errors.Join(err, h.Throw(ctx, b))
			},
		},
		{
			Name: "a second control stream", State: forge.ConnActive, Fault: protocol.FaultState, Closes: forge.CloseBadState,
			run: func(ctx context.Context, h *Hostile) error { return h.OpenControl(ctx) },
		},
		{
			Name: "too many streams", State: forge.ConnActive, Fault: protocol.FaultRate, Resets: protocol.ResetLimit,
			run: tooManyStreams,
		},
		{
			Name: "a header without an end", State: forge.ConnActive, Fault: protocol.FaultHeader,
			Resets: protocol.ResetMalformed, Slow: true,
			run: func(ctx context.Context, h *Hostile) error { return h.Throw(ctx, []byte("FY1")) },
		},
	}
}

func wrongMagic(ctx context.Context, h *Hostile) error {
	for range protocol.BadStreamsPerMinute {
		if err := h.Throw(ctx, []byte("FY0S\x01\x01\x00\x00")); !gone(err) {
			return fmt.Errorf("a stream with a wrong magic ended with %w", err)
		}
	}
	return nil
}

// unknownRequest asks for something that nobody knows, and waits for the answer to it.
func unknownRequest(_ context.Context, h *Hostile) error {
	b, err := h.frame(protocol.Unsupported())
	if err != nil {
		return err
	}
	b[4], b[5] = 0x08, 0xff // a type that no registry has
	if err := h.Bytes(b); err != nil {
		return err
	}
	env, m, err := h.Hear()
	if err != nil {
		return err
	}
	if e, ok := m.(*protocol.ErrorV1); !ok || *e != *protocol.Unsupported() || env.Re().IsZero() {
		return fmt.Errorf("it was answered with %T to %v", m, env.Re())
	}
	return nil
}

func flood(_ context.Context, h *Hostile) error {
	b, err := h.frame(protocol.Unsupported())
	for range Flood {
		if err != nil {
			return err
		}
		err = h.Bytes(b)
	}
	return errors.New("the whole flood was taken")
}

// secretHeader is the header of a stream with two directions that an agent may open.
func secretHeader() ([]byte, error) {
	one := [16]byte{1}
	return protocol.AppendStreamHeader(nil, protocol.StreamSecret, &agentv1.SecretHeaderV1{Attempt: one, Lease: one})
}

func tooManyStreams(ctx context.Context, h *Hostile) error {
	b, err := secretHeader()
	if err != nil {
		return err
	}
	var streams []transport.Stream
	defer func() {
		for _, s := range streams {
			s.Stop(protocol.ResetCancelled)
			s.Reset(protocol.ResetCancelled)
		}
	}()
	resets := make(chan error, manyStreams)
	for range manyStreams {
		s, err := h.Conn.OpenStream(ctx)
		if err != nil {
			return fmt.Errorf("open a stream: %w", err)
		}
		streams = append(streams, s)
		if _, err := s.Write(b); err != nil && !gone(err) {
			return fmt.Errorf("write on a stream: %w", err)
		}
		go func() { // ends with the stream, which is stopped above
			_, err := s.Read(make([]byte, 1))
			resets <- err
		}()
	}
	select {
	case err := <-resets:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
