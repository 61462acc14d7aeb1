package runner

import (
	"context"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// serveAdmin opens the local socket and returns what ends it. An agent without one runs all the same.
func (a *Agent) serveAdmin() (stop func()) {
	s, err := admin.Listen(a.folder.Path(), a, a.cfg.Log)
	if err != nil {
		a.cfg.Log.Warn("the commands for this machine's owner do not work", telemetry.KeyError, err)
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Serve()
	}()
	return func() {
		s.Close()
		<-ended
	}
}

// Status implements admin.Agent.
func (a *Agent) Status(ctx context.Context) (s admin.Status, err error) {
	err = a.call(ctx, func() { s = a.status() })
	return s, err
}

// status is built by the loop.
func (a *Agent) status() admin.Status {
	summary := a.summary()
	s := admin.Status{
		Runner: a.Runner().String(), Session: a.session.String(), StateFolder: a.folder.ID().String(), Starts: a.folder.Starts(),
		Version: a.cfg.Version, State: a.core.State().String(), Stopping: a.stopping, Attempts: []admin.Attempt{},
		Total: admin.AmountsOf(summary.Total), Active: admin.AmountsOf(summary.Active), Free: admin.AmountsOf(summary.Free), Pressure: summary.Pressure.String(),
		Certificate: a.who().Leaf().NotAfter,
	}
	for _, q := range a.folder.Quarantined() {
		s.SetAside = append(s.SetAside, q.Err.Error())
	}
	s.Connection = a.connectionStatus()
	s.InUse.Workspaces = a.work.Waiting()
	s.InUse.Objects, s.InUse.Trees = a.objects.InUse()
	now := a.cfg.now()
	for _, h := range a.core.Held() {
		t := admin.Attempt{ID: h.Context.Attempt.String(), Job: h.Context.Job.String(), State: h.State.String(), Stale: h.Stale}
		if h.Granted {
			t.LeaseFor = h.Deadline.Sub(now).Round(time.Millisecond).Seconds()
		}
		if run := a.attempts[h.Context.Attempt]; run != nil && run.Spool() != nil {
			t.LogNext, t.LogBytes = uint64(run.Spool().Next()), uint64(run.Spool().Used())
		}
		s.Attempts = append(s.Attempts, t)
	}
	return s
}

func (a *Agent) connectionStatus() admin.Connection {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := admin.Connection{State: forge.ConnClosed.String(), LastClose: a.lastWhy, LastError: a.lastErr}
	if c := a.current; c != nil {
		s.Endpoint, s.Sequence, s.Since = c.endpoint, c.seq, c.since
		if c.link.Context().Err() == nil {
			s.State, s.Protocol = c.link.State().String(), c.link.Version().String()
		}
	}
	return s
}

// Capabilities implements admin.Agent.
func (a *Agent) Capabilities(ctx context.Context) (c forge.Capabilities, err error) {
	err = a.call(ctx, func() { c = a.caps })
	return c, err
}

// Health implements admin.Agent.
func (a *Agent) Health(context.Context) (admin.Health, error) {
	return admin.HealthOf(a.look()), nil
}

// Drain implements admin.Agent.
func (a *Agent) Drain(ctx context.Context) error { return a.tell(ctx, core.CommandDrain) }

// Resume implements admin.Agent.
func (a *Agent) Resume(ctx context.Context) error { return a.tell(ctx, core.CommandResume) }

func (a *Agent) tell(ctx context.Context, kind core.CommandKind) error {
	return a.call(ctx, func() { a.step(core.Command{Kind: kind}) })
}

// CleanUp implements admin.Agent.
func (a *Agent) CleanUp(context.Context) (admin.CleanUp, error) {
	removed, err := a.sweep()
	return admin.CleanUp{Removed: removed, Problem: text(err)}, nil
}
