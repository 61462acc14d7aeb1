package agents

import (
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// reports is what a runner has said of itself and what is to be written down: of each kind the latest only, so that no
// agent can make the daemon write faster than its disk does.
type reports struct {
	capabilities *forge.CapabilityUpdate
	load         *forge.ResourceSummary
	health       *forge.Health
}

// report writes down what a connection has pending, one transaction after the other. It is called by the loop.
func (s *Server) report(c *conn) {
	if c.reporting || c.pending == (reports{}) {
		return
	}
	r := c.pending
	c.pending, c.reporting = reports{}, true
	s.launch(func() core.Event {
		err := s.cfg.Store.Update(s.work, store.ClassRest, func(tx *store.Tx) error { return r.write(tx, c.runner) })
		if err != nil && s.work.Err() == nil { // it is said again later
			s.cfg.Log.Warn("what a runner says of itself was not written down", telemetry.KeyRunner, c.runner.String(), telemetry.KeyError, err)
		}
		s.post(func() {
			c.reporting = false
			if err == nil && r.capabilities != nil {
				s.cfg.Control.Capabilities(c.runner)
			}
			s.report(c)
		})
		return nil
	})
}

func (r reports) write(tx *store.Tx, runner forge.RunnerID) error {
	known, err := tx.Runner(runner)
	if err != nil {
		return err
	}
	if u := r.capabilities; u != nil && (known.CapabilitiesAt == 0 || known.CapabilityID != u.CapabilityDigest) {
		if err := tx.SetCapabilities(runner, u.Capabilities, u.CapabilityDigest); err != nil {
			return err
		}
	}
	if r.load != nil {
		if err := tx.SetSummary(runner, *r.load); err != nil {
			return err
		}
	}
	if r.health != nil {
		return tx.SetHealth(runner, *r.health)
	}
	return nil
}
