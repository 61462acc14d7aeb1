package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// errNoSecret is the same for a secret that is not there and for one that the attempt may not have.
var errNoSecret = errors.New("it is not there, or not for this job")

// secrets fetches the values of an attempt's secrets over the newest connection, and over the next one where that ends. It
// gives up when ctx ends.
func (a *Agent) secrets(ctx context.Context, tuple forge.AttemptContext, uses []forge.SecretUse) ([]executor.Secret, error) {
	for {
		c, moved := a.connection()
		if c != nil {
			got, err := c.secrets(ctx, tuple, uses)
			if err == nil || errors.Is(err, errNoSecret) || ctx.Err() != nil {
				return got, err
			}
			if reset, ok := errors.AsType[*transport.ResetError](err); ok && reset.Code == protocol.ResetResumeLater {
				err = fmt.Errorf("the daemon cannot give them now, and its log says why: %w", err)
			}
			if _, ended := errors.AsType[*transport.CloseError](err); !ended && !errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connection is the newest connection, or nil, and what closes when there is a newer one.
func (a *Agent) connection() (*conn, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || a.current.link.Context().Err() != nil {
		return nil, a.moved
	}
	return a.current, a.moved
}

// secrets fetches them over one connection, on one stream.
func (c *conn) secrets(ctx context.Context, tuple forge.AttemptContext, uses []forge.SecretUse) (got []executor.Secret, err error) {
	ctx, cancel := context.WithTimeout(ctx, secretWithin)
	defer cancel()
	defer func() {
		if err != nil {
			for _, s := range got {
				s.Value.Zero()
			}
			got = nil
		}
	}()
	head := &agentv1.SecretHeaderV1{Attempt: tuple.Attempt.ULID, Lease: tuple.Lease.ULID}
	stream, err := c.link.Open(ctx, protocol.StreamSecret, head)
	if err != nil {
		return nil, err
	}
	give := func() {
		stream.Stop(protocol.ResetCancelled)
		stream.Reset(protocol.ResetCancelled)
	}
	defer give()
	defer context.AfterFunc(ctx, give)()
	frames := c.link.Frames(protocol.StreamSecret, stream, stream)
	for _, use := range uses {
		b, err := c.link.AppendFrame(nil, ident.New[forge.MessageID](), forge.MessageID{}, agentv1.NewSecretRequest(tuple, use.Ref))
		if err != nil {
			return got, err
		}
		if _, err := stream.Write(b); err != nil {
			return got, err
		}
		_, m, err := frames.Next()
		if err != nil {
			return got, fmt.Errorf("secret %v: %w", use.Ref, err)
		}
		value, err := valueOf(m, use.Ref)
		if err != nil {
			return got, fmt.Errorf("secret %v: %w", use.Ref, err)
		}
		got = append(got, executor.Secret{Use: use, Value: value})
	}
	return got, stream.Close()
}

// valueOf takes the value out of an answer.
func valueOf(m protocol.Message, ref forge.SecretRef) (forge.Secret, error) {
	w, ok := m.(*agentv1.SecretMaterialV1)
	if !ok || w.Name != ref.Name || ref.Version != 0 && w.Version != ref.Version {
		return forge.Secret{}, errors.New("the daemon answers something else")
	}
	value, there := w.Take()
	if !there {
		return forge.Secret{}, errNoSecret
	}
	return value, nil
}
