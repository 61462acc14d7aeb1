package agents

import (
	"context"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// What the domain has no value for does not go through the core: health and certificates are not about authority.

// HealthEvery is how often reports of one runner are written down that say the same.
const HealthEvery = 10 * time.Second

// aside handles a message that is not the core's.
func (s *Server) aside(c *conn, m link.Message) {
	switch w := m.Wire.(type) {
	case *agentv1.HealthReportV1:
		h := w.Health()
		c.probeAnswered(m.Re, probed{health: h})
		s.post(func() { s.keepHealth(c, h) })
	case *agentv1.RenewCertificateV1:
		s.renew(c, m.ID, w)
	}
}

// keepHealth passes a report on and writes it down. It is called by the loop.
func (s *Server) keepHealth(c *conn, h forge.Health) {
	if s.voice(c.runner) == c {
		s.cfg.Control.Health(c.runner, h)
	}
	now := s.boot()
	if c.healthAt != 0 && c.health == h.Status && now.Sub(c.healthAt) < HealthEvery {
		return
	}
	c.health, c.healthAt = h.Status, now
	c.pending.health = &h
	s.report(c)
}

// renew makes the next certificate, one at a time for a connection: the rest is refused rather than queued.
func (s *Server) renew(c *conn, re forge.MessageID, w *agentv1.RenewCertificateV1) {
	answer := func(m forge.Message, wire protocol.Message) {
		s.push(c, outgoing{frame: forge.Frame{ID: newMessageID(), Re: re, Body: m}, wire: wire})
	}
	if !c.renewing.CompareAndSwap(false, true) {
		s.post(func() {
			answer(&forge.Error{Code: forge.ErrorRate, Retry: forge.RetryDelayed, Text: "a certificate is being made already"}, nil)
		})
		return
	}
	s.post(func() {
		s.launch(func() core.Event {
			issued, err := s.cfg.Desk.Renew(s.work, c.link.Peer().Certificate, w)
			c.renewing.Store(false)
			s.post(func() {
				if err == nil {
					answer(nil, issued)
					return
				}
				s.cfg.Log.Warn("a certificate was not renewed", telemetry.KeyRunner, c.runner.String(), telemetry.KeyError, err)
				_, refusal := enroll.Refuse(err)
				answer(refusal, nil)
			})
			return nil
		})
	})
}

// probed is the answer to a probe.
type probed struct {
	health forge.Health
	err    error
}

// Probe asks a runner for a report of its health now, and waits for it as long as ctx says.
func (s *Server) Probe(ctx context.Context, runner forge.RunnerID) (forge.Health, error) {
	c := s.voice(runner)
	if c == nil {
		return forge.Health{}, ErrNotConnected
	}
	if !c.link.Features().Has(protocol.FeatureProbe) {
		return forge.Health{}, ErrNoProbe
	}
	id, answer := newMessageID(), make(chan probed, 1)
	c.mu.Lock()
	c.probes[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.probes, id)
		c.mu.Unlock()
	}()
	if !c.out.push(outgoing{frame: forge.Frame{ID: id}, wire: &agentv1.ProbeRequestV1{}}) {
		s.post(func() { s.shut(c, forge.CloseOverloaded) })
	}
	select {
	case p := <-answer:
		return p.health, p.err
	case <-ctx.Done():
		return forge.Health{}, context.Cause(ctx)
	case <-c.link.Context().Done():
		return forge.Health{}, errGone
	}
}

// probeAnswered hands an answer to whoever waits for it.
func (c *conn) probeAnswered(re forge.MessageID, p probed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits := c.probes[re]; waits != nil {
		waits <- p // it has room for one
		delete(c.probes, re)
	}
}

func (c *conn) probeRefused(re forge.MessageID) { c.probeAnswered(re, probed{err: ErrNoProbe}) }

func (c *conn) failProbes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, waits := range c.probes {
		waits <- probed{err: errGone}
		delete(c.probes, id)
	}
}
