package core_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// When, where and whether to connect again.

// waits returns how long the agent stays away after a close, and where it dials then.
func (a *agent) waits(reason forge.CloseReason) (time.Duration, int) {
	a.t.Helper()
	closed := a.now
	a.lose(reason)
	d := a.dial()
	a.seq = d.Seq
	return a.now.Sub(closed), d.Endpoint
}

func TestEveryCloseReasonHasItsRetry(t *testing.T) {
	const (
		fast    = 500 * time.Millisecond
		slowest = 5 * time.Minute
	)
	for reason := forge.CloseNormal; reason.Valid(); reason++ {
		t.Run(reason.String(), func(t *testing.T) {
			a := online(t)
			if reason == forge.CloseSessionSuperseded || reason == forge.CloseRevoked {
				a.lose(reason)
				want := map[forge.CloseReason]core.ExitCode{
					forge.CloseSessionSuperseded: core.ExitSuperseded, forge.CloseRevoked: core.ExitRevoked,
				}[reason]
				if e := effect[core.Exit](a); e.Code != want {
					t.Fatalf("exit %d", e.Code)
				}
				a.stopped(t)
				return
			}
			wait, endpoint := a.waits(reason)
			if elsewhere := reason != forge.CloseLost; (endpoint == 1) != elsewhere {
				t.Errorf("dials endpoint %d", endpoint)
			}
			switch reason.Retry() {
			case forge.RetryOperator, forge.RetryRecover:
				if wait < slowest/2 || wait >= slowest {
					t.Errorf("waits %v for an operator", wait)
				}
			default:
				if wait >= fast {
					t.Errorf("waits %v", wait)
				}
			}
			no[core.Exit](a, "for a reason that passes")
		})
	}
}

func (a *agent) stopped(t *testing.T) {
	t.Helper()
	if a.core.Wake() != forge.Never || a.core.State() != forge.AgentOffline {
		t.Fatalf("the process is %v and wakes at %v", a.core.State(), a.core.Wake())
	}
	a.forget()
	a.step(core.Started{})
	a.step(core.Tick{})
	if len(a.effects) > 0 {
		t.Fatalf("after its end the process asks for %v", a.effects)
	}
}

// The bounds double from half a second to half a minute, and the wait comes from all of the range below.
func TestBackoffDrawsFromTheWholeRangeBelowADoublingBound(t *testing.T) {
	const samples = 300
	longest := make([]time.Duration, 9)
	total := make([]time.Duration, 9)
	for seed := range uint64(samples) {
		cfg := config()
		cfg.Seed = seed
		a := newAgentWith(t, cfg)
		a.begin()
		effect[core.Dial](a)
		a.seq = 1
		for i := range longest {
			wait, _ := a.waits(forge.CloseLost)
			longest[i] = max(longest[i], wait)
			total[i] += wait
		}
	}
	bound := 500 * time.Millisecond
	for i := range longest {
		if longest[i] >= bound || longest[i] < bound*9/10 {
			t.Errorf("try %d waits up to %v, the bound is %v", i+1, longest[i], bound)
		}
		if mean := total[i] / samples; mean < bound*4/10 || mean > bound*6/10 {
			t.Errorf("try %d waits %v on average, the bound is %v", i+1, mean, bound)
		}
		bound = min(2*bound, 30*time.Second)
	}
}

func TestAnAgentThatHoldsALeaseWaitsAtMostAQuarterOfItsTime(t *testing.T) {
	for reason := forge.CloseNormal; reason.Valid(); reason++ {
		if reason.Retry() == forge.RetryStop && reason != forge.CloseNormal {
			continue
		}
		a := online(t)
		c := a.running(1)
		for range 12 {
			left := a.left(c)
			if left < 4*time.Second {
				break
			}
			if wait, _ := a.waits(reason); wait > left/4 {
				t.Errorf("%v: waits %v of %v", reason, wait, left)
			}
		}
	}
}

func TestSeveralTriesFitIntoWhatIsLeftOfALease(t *testing.T) {
	a := online(t)
	c := a.running(1)
	tries := 0
	for a.left(c) > 4*time.Second {
		a.waits(forge.CloseRunnerDisabled) // else minutes
		tries++
	}
	if tries < 8 {
		t.Fatalf("%d tries in a whole lease", tries)
	}
}

func TestEndpointsTakeTurns(t *testing.T) {
	a := online(t)
	var turns []int
	for range 6 {
		_, endpoint := a.waits(forge.CloseLost)
		turns = append(turns, endpoint)
	}
	for i, endpoint := range turns { // the first again, for it may have been a moment's blackout
		if want := i % 3; endpoint != want {
			t.Fatalf("endpoints %v", turns)
		}
	}
}

// A daemon that ends each connection as soon as it works is met less and less often.
func TestAConnectionThatLivesOnlyAMomentDoesNotEndTheBackoff(t *testing.T) {
	a := online(t)
	longest := time.Duration(0)
	for range 12 {
		closed := a.now
		a.lose(forge.CloseInternal)
		a.connect()
		longest = max(longest, a.now.Sub(closed))
		a.register()
		a.resync()
	}
	if longest < 4*time.Second {
		t.Fatalf("after 12 closes the agent still comes back within %v", longest)
	}
	a.beat()
	if wait, _ := a.waits(forge.CloseLost); wait >= 500*time.Millisecond {
		t.Fatalf("a connection that was good for a while is followed by a wait of %v", wait)
	}
}

func TestNoEndpointReadyMeansBackoff(t *testing.T) {
	a := online(t)
	longest := time.Duration(0)
	for range 12 {
		wait, _ := a.waits(forge.CloseNotReady)
		longest = max(longest, wait)
	}
	if longest < 4*time.Second {
		t.Fatalf("after 12 refusals of all endpoints the agent still comes back within %v", longest)
	}
}

func TestAWriterThatIsStuckEndsTheConnection(t *testing.T) {
	a := online(t)
	c := a.running(1)
	a.blocked = true
	a.until(30 * time.Second) // the heart beats somewhere in here
	if l := effect[core.CloseLink](a); l.Seq != a.seq || l.Reason != forge.CloseLost {
		t.Fatalf("%+v", l)
	}
	a.blocked = false
	a.connect()
	a.register()
	a.resync()
	a.is(c, forge.AttemptRunning)
}
