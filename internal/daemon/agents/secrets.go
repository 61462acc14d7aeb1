package agents

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// SecretSource resolves secrets (D13).
type SecretSource interface {
	// Secret returns the value that an attempt gets for a reference, with the version that it is, and for how long it may
	// be kept in memory. It returns ErrNoSecret where there is none, or where the attempt's spec does not name it: whoever
	// asks holds the lease, but that is all that was checked. The caller wipes the value.
	Secret(ctx context.Context, of forge.AttemptContext, ref forge.SecretRef) (forge.Secret, forge.SecretRef, time.Duration, error)
}

// ErrNoSecret says that there is no such secret for an attempt.
var ErrNoSecret = errors.New("agents: no such secret for this attempt")

// Bounds of a secret stream.
const (
	maxSecrets   = 256
	secretWithin = 10 * time.Second // for each request to come, and for its answer to be taken
)

// takeSecrets answers the requests of one secret stream.
func (s *Server) takeSecrets(c *conn, in *link.Inbound, head *agentv1.SecretHeaderV1) {
	stop := context.AfterFunc(s.serving, func() { in.Reset(protocol.ResetResumeLater) })
	defer stop()
	frames := in.Frames()
	for range maxSecrets {
		if err := in.Receive.SetReadDeadline(time.Now().Add(secretWithin)); err != nil {
			break
		}
		env, m, err := frames.Next()
		if errors.Is(err, io.EOF) {
			_ = in.Send.Close() // the peer has ended its side; what it does not hear it asks again
			in.Receive.Stop(protocol.ResetCancelled)
			return
		}
		req, ok := m.(*agentv1.SecretRequestV1)
		if err != nil || !ok || req.Context.Domain().Attempt.ULID != head.Attempt || req.Context.Domain().Lease.ULID != head.Lease {
			in.Reset(protocol.ResetMalformed)
			return
		}
		if code := s.giveSecret(c, in, env.ID(), req); code != 0 {
			in.Reset(code.Outward())
			return
		}
	}
	in.Reset(protocol.ResetLimit)
}

// giveSecret answers one request. Neither the value nor its length goes anywhere else.
func (s *Server) giveSecret(c *conn, in *link.Inbound, re forge.MessageID, req *agentv1.SecretRequestV1) protocol.ResetCode {
	of, ref := req.Context.Domain(), req.Ref()
	holds, err := s.holds(c, of)
	if err != nil {
		return protocol.ResetResumeLater
	}
	if !holds {
		s.foreign(c, of.Attempt)
		return protocol.ResetNotAuthorized
	}
	material, err := s.material(of, ref)
	if err != nil {
		s.cfg.Log.Error("a secret was not resolved", "name", ref.String(), telemetry.KeyAttempt, of.Attempt.String(), telemetry.KeyError, err)
		return protocol.ResetResumeLater
	}
	defer material.Value.Wipe()
	frame, err := c.link.AppendFrame(nil, newMessageID(), re, material)
	defer clear(frame)
	if err == nil {
		err = in.Send.SetWriteDeadline(time.Now().Add(secretWithin))
	}
	if err == nil {
		_, err = in.Send.Write(frame)
	}
	if err != nil {
		return protocol.ResetTimeout
	}
	return 0
}

// material is the answer to a request: with a value, or without one where there is none.
func (s *Server) material(of forge.AttemptContext, ref forge.SecretRef) (*agentv1.SecretMaterialV1, error) {
	none := &agentv1.SecretMaterialV1{Attempt: of.Attempt.ULID, Lease: of.Lease.ULID, Name: ref.Name, Version: ref.Version}
	if s.cfg.Secrets == nil {
		return none, nil
	}
	value, meant, expires, err := s.cfg.Secrets.Secret(s.work, of, ref)
	if errors.Is(err, ErrNoSecret) {
		return none, nil
	}
	if err != nil {
		return nil, err
	}
	defer value.Zero()
	return agentv1.NewSecretMaterial(of, meant, value, expires), nil
}

// holds reports whether a connection's session has an accepted lease of exactly this tuple.
func (s *Server) holds(c *conn, of forge.AttemptContext) (bool, error) {
	if of.Runner != c.runner || of.Session != c.sessionID() {
		return false, nil
	}
	snapshot, err := s.cfg.Store.Snapshot(s.work, c.runner)
	if err != nil {
		return false, err
	}
	for i := range snapshot.Leases {
		if l := &snapshot.Leases[i]; l.Context == of && l.State == forge.LeaseAccepted {
			return true, nil
		}
	}
	return false, nil
}
