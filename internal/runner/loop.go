package runner

import (
	"context"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/capability"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// loop owns the core until that exits.
func (a *Agent) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	a.step(core.Started{})
	for !a.exited {
		wake := a.core.Wake()
		timer.Reset(a.nap(wake))
		select {
		case do := <-a.inbox:
			do()
		case <-timer.C:
			if a.cfg.now() >= wake {
				a.step(core.Tick{})
			}
		}
	}
}

// nap is how long to wait for an instant of the clock that decides.
func (a *Agent) nap(until forge.Instant) time.Duration {
	if until == forge.Never {
		return clock.MaxNap
	}
	return max(0, min(until.Sub(a.cfg.now()), clock.MaxNap))
}

// do has something done by the loop. It waits only while the loop is busy, and not at all once that has ended.
func (a *Agent) do(f func()) {
	select {
	case a.inbox <- f:
	case <-a.life.Done():
	}
}

// post feeds an event to the core.
func (a *Agent) post(e core.Event) { a.do(func() { a.step(e) }) }

// call has something done by the loop and waits for it.
func (a *Agent) call(ctx context.Context, f func()) error {
	did := make(chan struct{})
	select {
	case a.inbox <- func() { f(); close(did) }:
	case <-a.life.Done():
		return ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-did:
		return nil
	case <-a.life.Done():
		return ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// step feeds one event in and carries out what the core says.
func (a *Agent) step(e core.Event) {
	if a.exited {
		return
	}
	before := a.core.State()
	effects := slices.Clone(a.core.Step(a.cfg.now(), e))
	if state := a.core.State(); state != before {
		a.cfg.Log.Info("the agent's state changes", telemetry.KeyState, state.String())
	}
	held := len(a.attempts)
	for _, effect := range effects {
		a.carryOut(effect)
	}
	if len(a.attempts) != held {
		a.admit()
	}
}

// admit tells the core what the machine can take now.
func (a *Agent) admit() { a.step(core.Command{Kind: core.CommandAdmission, Admission: a.admission()}) }

// admission is what an offer is held against.
func (a *Agent) admission() forge.Admission {
	return forge.Admission{Capabilities: a.caps, Policy: a.cfg.Policy, Free: a.summary().Free, Removing: a.work.Waiting(), NoCaches: true}
}

// summary is what heartbeats say of the load.
func (a *Agent) summary() forge.ResourceSummary {
	var active forge.Resources
	for _, t := range a.attempts {
		if sum, err := active.Add(t.Resources()); err == nil {
			active = sum
		}
	}
	a.mu.Lock()
	reading := a.reading
	a.mu.Unlock()
	return capability.Summary(a.caps.Resources, a.cfg.Reserve, active, reading)
}
