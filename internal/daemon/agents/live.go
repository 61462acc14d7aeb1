package agents

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// inStep follows a resync: the runner takes work from now on. It is called by the loop.
func (s *Server) inStep(c *conn) {
	s.mu.Lock()
	s.voices[c.runner] = c
	s.mu.Unlock()
	s.cfg.Control.Connected(c.runner, c.sessionID())
}

// outOfStep follows the end of a connection. It is called by the loop.
func (s *Server) outOfStep(c *conn) {
	s.mu.Lock()
	mine := s.voices[c.runner] == c
	if mine {
		delete(s.voices, c.runner)
	}
	s.mu.Unlock()
	if mine {
		s.cfg.Control.Disconnected(c.runner)
	}
}

// renewed follows a heartbeat that was answered. It is called by the loop. An agent whose snapshot is another one than is
// known here is asked for it (09§236). The load is written down where it is another kind of load, and else rarely: no disk
// should feel how many agents there are.
func (s *Server) renewed(c *conn) {
	m := c.beat
	if m == nil {
		return
	}
	c.heard = clock.Wall()
	if d := m.CapabilityDigest; !d.IsZero() && d != c.snapshot && d != c.asked {
		c.asked = d // once: it is on its way, or this agent cannot
		s.push(c, outgoing{frame: forge.Frame{ID: newMessageID(), Body: &forge.RefreshCapabilities{}}})
	}
	s.cfg.Control.Heartbeat(c.runner, m.State, m.Resources)
	if m.Resources == (forge.ResourceSummary{}) {
		return // it has not measured yet
	}
	now := s.boot()
	if c.loadAt != 0 && m.Resources.Pressure == c.load.Pressure && now.Sub(c.loadAt) < SummaryEvery {
		return
	}
	c.load, c.loadAt = m.Resources, now
	c.pending.load = &m.Resources
	s.report(c)
}

// Session is one connection, for people.
type Session struct {
	Connection uint64 // within this process
	Runner     forge.RunnerID
	Session    forge.AgentSessionID // zero before it has asked to register
	Transport  forge.TransportSessionID
	Peer       string
	Software   string
	State      forge.ConnectionState
	Version    protocol.Version
	Features   protocol.FeatureSet
	Opened     time.Time
	Heartbeat  time.Time // that was answered last; zero before the first
	LogStreams int
}

// Version is what a runner that is in step speaks; ok is false for one that is not.
func (s *Server) Version(runner forge.RunnerID) (v protocol.Version, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.voices[runner]
	if c == nil {
		return v, false
	}
	return c.link.Version(), true
}

// Sessions lists the connections of agents in the order in which they were opened, or none where the server does not run.
func (s *Server) Sessions() []Session {
	if !s.served.Load() {
		return nil
	}
	var list []Session
	s.call(func() {
		for _, id := range slices.Sorted(maps.Keys(s.conns)) {
			c := s.conns[id]
			list = append(list, Session{
				Connection: uint64(c.id), Runner: c.runner, Session: c.sessionID(), Transport: c.transport, Peer: addr(c.link.Peer()),
				Software: c.link.Hello().Software, State: c.link.State(), Version: c.link.Version(), Features: c.link.Features(),
				Opened: c.opened, Heartbeat: c.heard, LogStreams: int(c.logs.Load()),
			})
		}
	})
	return list
}

// voice returns the connection on which a runner is in step, or nil.
func (s *Server) voice(runner forge.RunnerID) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.voices[runner]
}

// Errors of Probe.
var (
	ErrNotConnected = errors.New("agents: the runner is not connected")
	ErrNoProbe      = errors.New("agents: the runner's agent does not know this request")
)

// errGone is the end of a wait for a connection that has ended.
var errGone = errors.New("agents: the connection ended before the answer")
