package agents

import (
	"errors"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func newMessageID() forge.MessageID { return ident.New[forge.MessageID]() }

// carryOut does what the core says. It waits for nothing.
func (s *Server) carryOut(effect core.Effect) {
	switch e := effect.(type) {
	case core.Begin:
		s.launch(func() core.Event { return s.transact(e) })
	case core.Load:
		s.launch(func() core.Event { return s.load(e) })
	case core.Send:
		if c := s.conns[e.Conn]; c != nil {
			s.send(c, e.Frame)
		}
	case core.SendOffer:
		if c := s.conns[e.Conn]; c != nil {
			s.launch(func() core.Event { s.sendOffer(c, e); return nil })
		}
	case core.Close:
		if c := s.conns[e.Conn]; c != nil {
			s.shut(c, e.Reason)
		}
	case core.Audit:
		s.audit(auditOf(e))
	case core.Capabilities:
		if c := s.origin; c != nil {
			s.snapshot(c, e.Update)
		}
	}
}

// transact runs a rule.
func (s *Server) transact(e core.Begin) core.Event {
	var answer authority.Answer
	var err error
	switch cmd := e.Command.(type) {
	case *authority.SealLog:
		answer, err = s.cfg.Logs.Seal(s.work, cmd)
	case *authority.Complete:
		answer, err = s.complete(cmd)
	default:
		answer, err = s.cfg.Store.Do(s.work, classOf(cmd), cmd)
	}
	if err != nil && s.work.Err() == nil {
		s.cfg.Log.Error("a transaction has no answer", "rule", ruleName(e.Command), telemetry.KeyError, err)
	}
	return core.Done{Tx: e.Tx, Committed: err == nil, Unknown: errors.Is(err, store.ErrUnknown), Answer: answer}
}

// classOf says in which queue a rule waits: first comes what keeps leases alive.
func classOf(cmd authority.Command) store.Class {
	switch cmd.(type) {
	case *authority.Phase, *authority.Offer, *authority.SealLog:
		return store.ClassState
	default:
		return store.ClassLease
	}
}

func (s *Server) load(e core.Load) core.Event {
	snapshot, err := s.cfg.Store.Snapshot(s.work, e.Runner)
	if err != nil {
		if s.work.Err() == nil {
			s.cfg.Log.Error("the open leases could not be read", telemetry.KeyError, err)
		}
		return core.Loaded{Tx: e.Tx}
	}
	return core.Loaded{Tx: e.Tx, Snapshot: snapshot}
}

// send puts a frame of the core on its way. What the core does not know of the world is added here.
func (s *Server) send(c *conn, f forge.Frame) {
	switch m := f.Body.(type) {
	case *forge.RegistrationAccepted:
		m.ServerTime, m.Transport = forge.WallTime(clock.Wall().UnixMilli()), c.transport
		s.accepted(c)
	case *forge.ResyncReply:
		s.inStep(c)
	case *forge.HeartbeatAck:
		s.renewed(c)
	}
	s.push(c, outgoing{frame: f})
}

// push puts something into a connection's outbox. A peer that lets it overflow is closed.
func (s *Server) push(c *conn, o outgoing) {
	if !c.out.push(o) {
		s.shut(c, forge.CloseOverloaded)
	}
}

// accepted follows a registration.
func (s *Server) accepted(c *conn) {
	c.registered.Store(true)
	r := c.register
	if r == nil {
		return
	}
	c.register = nil
	s.snapshot(c, &forge.CapabilityUpdate{
		Runner: r.Runner, Session: r.Session, Capabilities: r.Capabilities, CapabilityDigest: r.CapabilityDigest,
	})
}

// snapshot takes in what an agent says that its machine can do.
func (s *Server) snapshot(c *conn, u *forge.CapabilityUpdate) {
	c.snapshot, c.pending.capabilities = u.CapabilityDigest, u
	s.report(c)
}

// sendOffer reads the bytes of an offered spec and sends them. Where that fails, the offer expires.
func (s *Server) sendOffer(c *conn, e core.SendOffer) {
	var spec []byte
	err := s.cfg.Store.View(s.work, func(v *store.View) (err error) {
		spec, err = v.Spec(e.Context.Spec)
		return err
	})
	if err == nil && len(spec) > agentv1.MaxInlineSpec {
		err = errLongSpec
	}
	if err != nil {
		if s.work.Err() == nil {
			s.cfg.Log.Error("an offer was not sent", telemetry.KeyJob, e.Context.Job.String(), telemetry.KeyAttempt, e.Context.Attempt.String(),
				telemetry.KeyError, err)
		}
		return
	}
	o := outgoing{frame: forge.Frame{ID: e.ID, Body: &forge.LeaseOffer{Context: e.Context, Spec: spec}}}
	s.post(func() { s.push(c, o) })
}

var errLongSpec = errors.New("its spec is too long for an offer")
