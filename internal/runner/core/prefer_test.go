package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// The first endpoint is where an agent wants to be.

// elsewhere returns an agent that works at its second endpoint.
func elsewhere(t *testing.T) *agent {
	t.Helper()
	a := online(t)
	a.lose(forge.CloseShutdown)
	d := a.dial()
	if d.Endpoint != 1 {
		t.Fatalf("dials endpoint %d", d.Endpoint)
	}
	a.arrive(d)
	return a
}

// arrive makes what was dialled an active connection.
func (a *agent) arrive(d core.Dial) {
	a.t.Helper()
	a.seq = d.Seq
	a.wants, a.sent = 0, nil
	a.step(core.Connected{Seq: d.Seq})
	a.register()
	a.resync()
}

// beating lets time pass with the heart beating.
func (a *agent) beating(d time.Duration) {
	a.t.Helper()
	for end := a.now.Add(d); a.now.Add(20*time.Second) < end; {
		a.beat()
	}
}

// Case T40.
func TestAShortBlackoutKeepsTheEndpoint(t *testing.T) {
	for _, a := range []*agent{online(t), elsewhere(t)} {
		a.forget()
		a.until(time.Second)
		a.lose(forge.CloseLost)
		first := a.dial()
		a.step(core.Closed{Seq: first.Seq, Reason: forge.CloseLost})
		if second := a.dial(); second.Endpoint == first.Endpoint {
			t.Errorf("dials endpoint %d for ever", second.Endpoint)
		}
	}
	a := elsewhere(t)
	a.lose(forge.CloseLost)
	if d := a.dial(); d.Endpoint != 1 {
		t.Errorf("after a blackout it dials endpoint %d", d.Endpoint)
	}
}

// Case T39.
func TestThePreferredEndpointIsTriedBesideAnother(t *testing.T) {
	a := elsewhere(t)
	c := a.running(1)
	old := a.seq
	a.forget()
	a.beating(4 * time.Minute)
	no[core.Dial](a, "so soon")
	a.beating(2 * time.Minute)
	d := effect[core.Dial](a)
	if d.Endpoint != 0 {
		t.Fatalf("dials endpoint %d", d.Endpoint)
	}
	no[core.CloseLink](a, "before the new connection stands")
	a.forget()
	a.arrive(d)
	if l := effect[core.CloseLink](a); l.Seq != old {
		t.Errorf("closes connection %d", l.Seq)
	}
	a.is(c, forge.AttemptRunning)
	a.forget()
	a.beating(20 * time.Minute)
	no[core.Dial](a, "where it is already")
}

func TestThePreferredEndpointIsTriedAgainUntilItIsThere(t *testing.T) {
	a := elsewhere(t)
	c := a.running(1)
	for range 4 {
		a.forget()
		a.beating(6 * time.Minute)
		d := effect[core.Dial](a)
		if d.Endpoint != 0 {
			t.Fatalf("dials endpoint %d", d.Endpoint)
		}
		a.forget()
		a.step(core.Closed{Seq: d.Seq, Reason: forge.CloseLost})
		a.beating(4 * time.Minute)
		no[core.Dial](a, "soon after one that failed")
	}
	a.is(c, forge.AttemptRunning)
	a.lose(forge.CloseLost)
	if d := a.dial(); d.Endpoint != 1 {
		t.Errorf("after a blackout it dials endpoint %d", d.Endpoint)
	}
}

func TestATryAtThePreferredEndpointTakesOverWhereTheOtherEnds(t *testing.T) {
	a := elsewhere(t)
	a.forget()
	a.beating(6 * time.Minute)
	d := effect[core.Dial](a)
	a.lose(forge.CloseShutdown)
	a.forget()
	a.step(core.Closed{Seq: d.Seq, Reason: forge.CloseLost})
	if next := a.dial(); next.Endpoint == 0 {
		t.Error("dials what has just failed")
	}
}
