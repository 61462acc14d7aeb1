package agents

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// takeObjects carries one stream of objects to its end. What may move on it says the lease of the attempt in its header.
func (s *Server) takeObjects(c *conn, in *link.Inbound, head *casv1.StreamHeaderV1) {
	attempt := forge.MakeID[forge.AttemptID](head.Attempt)
	scope, err := s.admitObjects(c, attempt, forge.MakeID[forge.LeaseID](head.Lease))
	if err != nil {
		in.Reset(s.objectsRefused(c, attempt, err).Outward())
		return
	}
	if err := c.objects.Serve(s.serving, in, scope); err != nil && s.serving.Err() == nil {
		s.cfg.Log.Debug("a stream of objects did not end well", telemetry.KeyRunner, c.runner.String(), telemetry.KeyAttempt, attempt.String(), telemetry.KeyError, err)
	}
}

func (s *Server) admitObjects(c *conn, attempt forge.AttemptID, lease forge.LeaseID) (*objects.Scope, error) {
	if s.cfg.Objects == nil {
		return nil, objects.ErrForeign
	}
	return s.cfg.Objects.Admit(s.work, c.runner, attempt, lease)
}

// objectsRefused says how a stream of objects is refused. Of attempts of others nobody learns anything.
func (s *Server) objectsRefused(c *conn, attempt forge.AttemptID, err error) protocol.ResetCode {
	switch {
	case errors.Is(err, objects.ErrForeign):
		s.foreign(c, attempt)
		return protocol.ResetNotFound
	case errors.Is(err, remote.ErrStale):
		return protocol.ResetStaleLease
	}
	if s.serving.Err() == nil {
		s.cfg.Log.Warn("a stream of objects was refused", telemetry.KeyRunner, c.runner.String(), telemetry.KeyAttempt, attempt.String(), telemetry.KeyError, err)
	}
	return protocol.ResetResumeLater
}

// complete runs the rule about a completion, between what it needs of objects and what follows for them. An output of which it
// could not be found out whether it is there is not one that the attempt does not have: the agent asks again.
func (s *Server) complete(cmd *authority.Complete) (authority.Answer, error) {
	open := s.deliver(s.work, cmd)
	answer, err := s.cfg.Store.Do(s.work, store.ClassState, cmd)
	if open && err == nil && answer.Completion == forge.CompletionInvalid && answer.Audit == 0 {
		answer = authority.Answer{NotYet: forge.ErrorNotYetRef}
	}
	if err == nil && answer.Done && s.cfg.Objects != nil {
		s.cfg.Objects.Forget(cmd.Completion.Context.Attempt)
	}
	return answer, err
}

// deliver makes the outputs of a completion count, if they are there, before the rule about it asks for them. What it cannot
// do the rule finds missing. It reports whether it could not find out.
func (s *Server) deliver(ctx context.Context, cmd *authority.Complete) (open bool) {
	m := cmd.Completion
	if s.cfg.Objects == nil || len(m.Outputs) == 0 || m.Context.Runner != cmd.Fence.Runner {
		return false
	}
	err := s.cfg.Objects.Deliver(ctx, m.Context, m.Outputs)
	if err == nil || s.work.Err() != nil {
		return false
	}
	log, open := s.cfg.Log.Info, !settled(err)
	if open {
		log = s.cfg.Log.Error
	}
	log("a completion names outputs that cannot be taken", telemetry.KeyRunner, m.Context.Runner.String(),
		telemetry.KeyAttempt, m.Context.Attempt.String(), telemetry.KeyError, err)
	return open
}

// settled reports whether an error of Deliver says something of the outputs, and not of this daemon.
func settled(err error) bool {
	var missing *objects.MissingError
	var output *objects.OutputError
	var lies *cas.TreeError
	return errors.Is(err, objects.ErrForeign) || errors.As(err, &missing) || errors.As(err, &output) || errors.As(err, &lies)
}
