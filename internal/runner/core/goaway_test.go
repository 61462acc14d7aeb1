package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// A daemon that announces its end is left for another, without a moment in which nobody is connected.

func TestAGoAwayIsFollowedByAConnectionElsewhereBesideTheOldOne(t *testing.T) {
	a := online(t)
	c := a.running(1)
	old := a.seq
	a.forget()
	a.receive(&forge.GoAway{After: 3 * time.Second, Spread: 2 * time.Second})
	a.until(3*time.Second - 1)
	no[core.Dial](a, "before it is time")
	a.until(2 * time.Second)
	d := effect[core.Dial](a)
	if d.Endpoint == 0 {
		t.Fatal("dials the daemon that goes away")
	}
	a.seq = d.Seq
	a.step(core.Connected{Seq: a.seq})
	no[core.CloseLink](a, "before the new connection stands for the runner")
	a.register()
	if l := effect[core.CloseLink](a); l.Seq != old {
		t.Fatalf("closed connection %d", l.Seq)
	}
	a.resync()
	a.is(c, forge.AttemptRunning)
	no[core.Kill](a, "although the lease goes on")
	a.until(5 * time.Second)
	no[core.Dial](a, "a second time")
}

func TestACloseAfterAGoAwayKeepsTheTimeThatItSaid(t *testing.T) {
	a := online(t)
	a.receive(&forge.GoAway{After: 20 * time.Second, Spread: 10 * time.Second})
	wait, endpoint := a.waits(forge.CloseGoAway)
	if wait < 20*time.Second || wait >= 30*time.Second {
		t.Fatalf("waits %v", wait)
	}
	if endpoint != 1 {
		t.Fatalf("dials endpoint %d", endpoint)
	}
}

func TestAHeldLeaseDoesNotWaitForALongGoAway(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.receive(&forge.GoAway{After: time.Hour})
	left := a.left(c)
	if wait, _ := a.waits(forge.CloseGoAway); wait > left/4 {
		t.Fatalf("waits %v of %v", wait, left)
	}
}

func TestADialBesideAConnectionIsTriedAgain(t *testing.T) {
	a := online(t)
	a.step(core.Reconnect{})
	first := effect[core.Dial](a)
	a.step(core.Closed{Seq: first.Seq, Reason: forge.CloseLost})
	a.beat() // the present connection goes on
	a.until(time.Second)
	if again := effect[core.Dial](a); again.Endpoint == first.Endpoint {
		t.Fatal("dials the same endpoint")
	}
}

func TestTheClockDoesNotRingWhileADialIsOnItsWay(t *testing.T) {
	a := online(t)
	a.step(core.Reconnect{})
	a.receive(&forge.GoAway{After: time.Second})
	for range 3 {
		a.until(5 * time.Second) // fails if the clock rings without end
		a.beat()
	}
}

func TestTheEndOfTheConnectionDuringADialLeavesTheRestToTheDial(t *testing.T) {
	a := online(t)
	a.step(core.Reconnect{})
	d := effect[core.Dial](a)
	a.lose(forge.CloseLost)
	a.until(time.Hour)
	no[core.Dial](a, "while one is on its way")
	a.step(core.Closed{Seq: d.Seq, Reason: forge.CloseLost})
	a.dial()
}
