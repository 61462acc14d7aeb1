package watchdog_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// policy has a lead of 3 s and a grace of 2 s.
var policy = forge.DefaultLeasePolicy()

// at is an instant on the test's clock.
func at(d time.Duration) forge.Instant { return forge.Instant(d) }

// deadline is where each dog here begins; softDue and hardDue are what follows from it.
const (
	deadline = 60 * time.Second
	softDue  = deadline - 3*time.Second
	hardDue  = deadline - time.Second
)

func dog() watchdog.Dog { return watchdog.New(policy, at(deadline)) }

// steps calls Step at each moment and checks what it says.
func steps(t *testing.T, d *watchdog.Dog, want map[time.Duration]watchdog.Action, moments ...time.Duration) {
	t.Helper()
	for _, m := range moments {
		if got := d.Step(at(m)); got != want[m] {
			t.Errorf("at %v: action %d, want %d", m, got, want[m])
		}
	}
}

func TestTheSoftSignalGoesOutTheLeadBeforeTheDeadlineAndTheKillAfterTheGrace(t *testing.T) {
	d := dog()
	steps(t, &d, map[time.Duration]watchdog.Action{softDue: watchdog.Soft, hardDue: watchdog.Hard},
		0, softDue-1, softDue, softDue+1, hardDue-1, hardDue)
}

func TestEachActionIsSaidOnce(t *testing.T) {
	d := dog()
	d.Step(at(softDue))
	if got := d.Step(at(softDue)); got != watchdog.Nothing {
		t.Errorf("the soft signal is said twice: %d", got)
	}
	d.Step(at(hardDue))
	for _, m := range []time.Duration{hardDue, deadline, 2 * deadline} {
		if got := d.Step(at(m)); got != watchdog.Nothing {
			t.Errorf("after the kill, at %v: action %d", m, got)
		}
	}
}

func TestALateSignalLeavesLessGraceButTheKillStaysBeforeTheDeadline(t *testing.T) {
	late := softDue + 1500*time.Millisecond
	d := dog()
	steps(t, &d, map[time.Duration]watchdog.Action{late: watchdog.Soft, hardDue: watchdog.Hard}, late, hardDue-1, hardDue)
}

func TestAWakeAfterTheHardKillWasDueKillsAtOnce(t *testing.T) {
	for _, m := range []time.Duration{hardDue, deadline, 10 * deadline} {
		d := dog()
		if got := d.Step(at(m)); got != watchdog.Hard {
			t.Errorf("woken at %v: action %d, want the kill", m, got)
		}
		if !d.Bitten() {
			t.Errorf("woken at %v: killed and not bitten", m)
		}
	}
}

func TestARenewalMovesTheDeadlineAndTheKillWithIt(t *testing.T) {
	d := dog()
	d.Move(at(2 * deadline))
	steps(t, &d, map[time.Duration]watchdog.Action{softDue + deadline: watchdog.Soft, hardDue + deadline: watchdog.Hard},
		softDue, hardDue, deadline, softDue+deadline-1, softDue+deadline, hardDue+deadline)
}

func TestTheDeadlineNeverMovesBackward(t *testing.T) {
	d := dog()
	d.Move(at(deadline - 1))
	d.Move(at(0))
	if d.Deadline() != at(deadline) {
		t.Errorf("deadline %v, want %v", d.Deadline(), at(deadline))
	}
}

func TestOnceTheSoftSignalIsOutNoRenewalCallsItBack(t *testing.T) {
	d := dog()
	d.Step(at(softDue))
	d.Move(at(10 * deadline))
	if d.Deadline() != at(deadline) {
		t.Errorf("the renewal moved the deadline to %v", d.Deadline())
	}
	if got := d.Step(at(hardDue)); got != watchdog.Hard {
		t.Errorf("after a renewal: action %d, want the kill", got)
	}
}

func TestAWorkloadMayStartOnlyBeforeItsKillWouldBegin(t *testing.T) {
	for m, may := range map[time.Duration]bool{0: true, softDue - 1: true, softDue: false, hardDue: false, deadline: false, 2 * deadline: false} {
		d := dog()
		if got := d.MayStart(at(m)); got != may {
			t.Errorf("at %v: may start: %v", m, got)
		}
	}
}

func TestNothingStartsUnderADogThatHasSignalled(t *testing.T) {
	d := dog()
	d.Bite(at(time.Second))
	if d.MayStart(at(time.Second)) {
		t.Error("a workload may start while the attempt is being killed")
	}
}

func TestADogWithoutADeadlineLetsNothingStart(t *testing.T) {
	var d watchdog.Dog
	for _, m := range []time.Duration{0, 1, deadline} {
		if d.MayStart(at(m)) {
			t.Errorf("at %v a workload may start without a deadline", m)
		}
	}
}

func TestABiteByAnotherHolderBeginsTheKillWithItsGrace(t *testing.T) {
	d := dog()
	d.Bite(at(10 * time.Second))
	if !d.Bitten() || d.Wake() != at(12*time.Second) {
		t.Errorf("bitten %v, wakes at %v, want the kill at 12 s", d.Bitten(), d.Wake())
	}
	steps(t, &d, map[time.Duration]watchdog.Action{12 * time.Second: watchdog.Hard},
		10*time.Second, 12*time.Second-1, 12*time.Second, softDue, hardDue)
}

func TestASecondBiteGivesNoSecondGrace(t *testing.T) {
	d := dog()
	d.Bite(at(10 * time.Second))
	d.Bite(at(11 * time.Second))
	if got := d.Step(at(12 * time.Second)); got != watchdog.Hard {
		t.Errorf("2 s after the first bite: action %d, want the kill", got)
	}
}

func TestALateBiteStillKillsBeforeTheDeadline(t *testing.T) {
	d := dog()
	d.Bite(at(hardDue - 1))
	if d.Wake() != at(hardDue) {
		t.Errorf("the kill is due at %v, want %v", d.Wake(), at(hardDue))
	}
}

func TestAWorkloadThatWasSignalledIsBitten(t *testing.T) {
	d := dog()
	d.Step(at(softDue - 1))
	if d.Bitten() {
		t.Error("bitten before any signal")
	}
	d.Step(at(softDue))
	if !d.Bitten() {
		t.Error("signalled and not bitten")
	}
}

func TestADogWakesForItsNextActionAndThenNeverAgain(t *testing.T) {
	d := dog()
	for _, want := range []forge.Instant{at(softDue), at(hardDue)} {
		if d.Wake() != want {
			t.Fatalf("wakes at %v, want %v", d.Wake(), want)
		}
		d.Step(want)
	}
	if d.Wake() != forge.Never {
		t.Errorf("wakes at %v after the kill", d.Wake())
	}
}

// Case T61: deadlines are on a clock that counts the sleep of a machine. Whoever wakes after its deadline starts nothing, and the first thing
// that it is told is the kill, whatever renewal comes then.
func TestTheFirstThingAfterASleepOfAnHourIsTheKill(t *testing.T) {
	d := dog()
	woke := d.Deadline().Add(time.Hour)
	if d.MayStart(woke) {
		t.Error("a workload may start after its deadline")
	}
	if got := d.Step(woke); got != watchdog.Hard {
		t.Errorf("action %d, want the kill", got)
	}
	d.Move(woke.Add(time.Minute))
	if d.MayStart(woke) {
		t.Error("a renewal that came too late lets a workload start")
	}
}
