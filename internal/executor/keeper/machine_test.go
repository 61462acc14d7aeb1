package keeper

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// puppet is a system whose programs end when the test says so.
type puppet struct {
	n            uint64
	softs, kills int
}

func (p *puppet) Start([]string, string, []string) (int, error) { p.n++; return int(p.n), nil }
func (p *puppet) Soft()                                         { p.softs++ }
func (p *puppet) Kill()                                         { p.kills++ }
func (p *puppet) Starts() uint64                                { return p.n }
func (p *puppet) Remarks() []string                             { return nil }
func (p *puppet) AsStep(f func())                               { f() }

// stage is a machine without a goroutine: the test feeds it event by event.
type stage struct {
	*testing.T
	m    *Machine
	sys  *puppet
	said []Report
}

func newStage(t *testing.T, steps ...Step) *stage {
	t.Helper()
	s := &stage{T: t, sys: &puppet{}}
	p := &Plan{
		Folder: t.TempDir(), Steps: steps, Run: time.Hour, Grace: time.Minute,
		Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(time.Hour),
	}
	s.m = NewMachine(p, s.sys, nil, func(r Report) { s.said = append(s.said, r) })
	return s
}

func (s *stage) take(r Request) { s.m.take(r); s.m.look(clock.Boot()) }
func (s *stage) exit(e Exit)    { s.m.exited(e); s.m.look(clock.Boot()) }

func (s *stage) goStep(i uint16) { s.take(Request{Go: &i}) }

func (s *stage) ended(class forge.Class, steps int) executor.Outcome {
	s.Helper()
	if !s.m.over {
		s.Fatalf("it is not over; said %+v", s.said)
	}
	o := s.m.outcome
	if o.Result.Class != class || len(o.Result.Steps) != steps {
		s.Errorf("outcome %+v, want %v with %d steps", o, class, steps)
	}
	return o
}

var plain = Step{Argv: []string{"x"}, When: forge.WhenSuccess}

func TestAStopThatComesBeforeAStepMayGoKeepsItFromRunning(t *testing.T) {
	s := newStage(t, plain)
	s.take(Request{Start: &Start{}})
	s.take(Request{Stop: forge.CancelUser})
	s.goStep(0)
	if o := s.ended(forge.Cancelled, 1); o.StopSeen != forge.CancelUser || s.sys.n != 0 {
		t.Errorf("%+v, %d programs", o, s.sys.n)
	}
}

func TestAFirstStepWhoseBeginningIsInTheLogGoesAtOnceAndTheNextOneAsks(t *testing.T) {
	failing := plain
	failing.When = forge.WhenFailure
	s := newStage(t, failing, plain, plain)
	first, some := s.m.plan.first()
	if first != 1 || !some {
		t.Fatal(first, some)
	}
	s.take(Request{Start: &Start{Begun: &first}})
	if s.sys.n != 1 || len(s.said) != 1 || !s.said[0].Running {
		t.Fatalf("%d programs, said %+v", s.sys.n, s.said)
	}
	s.exit(Exit{ID: 1})
	if last := s.said[len(s.said)-1]; last.Starting == nil || *last.Starting != 2 || s.sys.n != 1 {
		t.Errorf("%d programs, said %+v", s.sys.n, s.said)
	}
}

func TestAFirstStepThatBeganDoesNotGoAfterAStop(t *testing.T) {
	s := newStage(t, plain)
	first := uint16(0)
	s.take(Request{Stop: forge.CancelUser})
	s.take(Request{Start: &Start{Begun: &first}})
	if s.ended(forge.Cancelled, 0); s.sys.n != 0 {
		t.Errorf("%d programs", s.sys.n)
	}
}

func TestAStopThatComesWhenTheLastStepHasEndedIsNotSeen(t *testing.T) {
	s := newStage(t, plain)
	s.take(Request{Start: &Start{}})
	s.goStep(0)
	s.exit(Exit{ID: 1})
	s.take(Request{Stop: forge.CancelUser})
	s.take(Request{Bite: BiteSoft})
	s.exit(Exit{None: true, Starts: 1})
	if o := s.ended(forge.Succeeded, 1); o.StopSeen != forge.CancelNone || o.Bitten {
		t.Errorf("%+v", o)
	}
}

func TestTheNewsThatNothingLivesCountsOnlyIfNothingWasStartedSince(t *testing.T) {
	s := newStage(t, plain, plain)
	s.take(Request{Start: &Start{}})
	s.goStep(0)
	s.exit(Exit{ID: 1})
	s.goStep(1)
	s.exit(Exit{None: true, Starts: 1}) // found before the second step began
	s.exit(Exit{ID: 2, Code: 3})
	if s.m.over {
		t.Fatal("it is over while something may live")
	}
	s.exit(Exit{None: true, Starts: 2})
	s.ended(forge.ExitCode, 2)
}

func TestAnOrphansEndIsNotTheStepsEnd(t *testing.T) {
	s := newStage(t, plain)
	s.take(Request{Start: &Start{}})
	s.goStep(0)
	s.exit(Exit{ID: 99, Code: 1})
	if !s.m.running {
		t.Error("the step was taken for ended")
	}
}

func TestTheWordToGoForAnotherStepStartsNothing(t *testing.T) {
	s := newStage(t, plain, plain)
	s.take(Request{Start: &Start{}})
	s.goStep(1)
	if s.sys.n != 0 {
		t.Error("a program was started")
	}
}

func TestTheEndOfTheAgentKillsAndStartsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, plain, Step{Argv: []string{"x"}, When: forge.WhenAlways})
		s.m.alarm = NewNaps()
		in, exits := make(chan Request), make(chan Exit)
		ended := make(chan executor.Outcome)
		go func() { ended <- s.m.Run(in, nil, exits) }()
		first := uint16(0)
		in <- Request{Start: &Start{}}
		in <- Request{Go: &first}
		close(in)
		exits <- Exit{ID: 1, Signal: 9}
		exits <- Exit{None: true, Starts: 1}
		<-ended
		if s.sys.n != 1 || s.sys.kills == 0 {
			t.Errorf("%d programs, %d kills", s.sys.n, s.sys.kills)
		}
	})
}

func TestAKillIsRepeatedUntilNothingLives(t *testing.T) {
	s := newStage(t, plain)
	s.take(Request{Start: &Start{}})
	s.goStep(0)
	s.take(Request{Kill: true})
	for range 3 {
		s.m.look(s.m.wake())
	}
	if s.sys.kills != 4 {
		t.Errorf("%d kills", s.sys.kills)
	}
	s.exit(Exit{ID: 1, Signal: 9})
	s.exit(Exit{None: true, Starts: 1})
	s.ended(forge.Signal, 1)
}
