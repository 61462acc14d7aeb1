package process

import (
	"errors"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// system is what a machine does to processes. All of it belongs to the goroutine of the machine.
type system interface {
	// start starts the program of a step. Its end comes as an exit with the id that is returned.
	start(argv []string, dir string, env []string) (id int, err error)
	// soft asks every process of the attempt to end.
	soft()
	// kill kills every process of the attempt that it finds. Others may come up meanwhile: it is called until an exit says
	// that nothing is left.
	kill()
	// starts counts the programs that were started.
	starts() uint64
}

// exit is news of processes that ended.
type exit struct {
	id     int    // of a program that ended
	code   int    // its exit code, or
	signal int    // the signal that it died of
	none   bool   // no process of the attempt is left
	starts uint64 // with none: as many programs had been started before that was found
}

// alarm calls at an instant.
type alarm interface {
	set(at forge.Instant)
	ring() <-chan struct{}
}

// machine decides what happens to one attempt's processes: which step runs, what ends it, and what that means. It runs in
// the supervisor where there is one. One goroutine owns it.
//
//	waiting ─start─▶ between steps ⇄ a step runs ─▶ nothing left to run ─▶ killing what is left ─▶ over
//
// Two kinds of end reach into this: the end of a step (its time-out), after which steps may follow, and the end of the
// attempt (cause), after which only the steps run that run always, and only within the grace.
type machine struct {
	plan   *plan
	sys    system
	say    func(report)
	alarm  alarm
	dog    watchdog.Dog
	secret []forge.EnvVar

	started   bool
	startedAt forge.Instant
	running   bool // the program of a step
	main      int  // its id
	awaiting  bool // the word to go, for step current
	current   int
	next      int
	stepAt    forge.Instant
	stepWall  forge.WallTime
	alive     bool // something may live
	signalled bool // the step was signalled by us

	cause     forge.Class // why the attempt ends early, 0 while it does not
	stepCause forge.Class // likewise for the step
	graceEnds forge.Instant
	killing   bool
	killAt    forge.Instant
	killPause time.Duration
	last      bool // no further step
	natural   bool // the last step ended by itself
	answered  bool // the start was
	over      bool

	failed  bool
	outcome executor.Outcome
}

// Bounds of the pause between two sweeps of a kill.
const (
	minKillPause = time.Millisecond
	maxKillPause = 100 * time.Millisecond
)

func newMachine(p *plan, sys system, a alarm, say func(report)) *machine {
	return &machine{plan: p, sys: sys, say: say, alarm: a, dog: watchdog.New(p.Policy, p.Deadline), graceEnds: forge.Never}
}

// run goes on until everything is over. The end of in is the end of the agent.
func (m *machine) run(in <-chan request, exits <-chan exit) executor.Outcome {
	for !m.over {
		m.alarm.set(m.wake())
		select {
		case r, ok := <-in:
			if !ok {
				in = nil
				m.end(forge.Lost)
				m.hard()
				break
			}
			m.take(r)
		case e := <-exits:
			m.exited(e)
		case <-m.alarm.ring():
		}
		m.look(clock.Boot())
	}
	return m.outcome
}

func (m *machine) take(r request) {
	now := clock.Boot()
	switch {
	case r.Start != nil:
		m.start(now, r.Start)
	case r.Go != nil:
		m.release(now, int(*r.Go))
	case r.Move != 0:
		m.dog.Move(r.Move)
	case r.Stop != forge.CancelNone:
		m.stop(now, r.Stop)
	case r.Bite != 0:
		m.dog.Bite(now)
		m.bitten(r.Bite == biteHard)
	case r.Kill:
		m.end(forge.Signal)
		m.hard()
	}
}

// wake is when look wants to be called next.
func (m *machine) wake() forge.Instant {
	at := min(m.dog.Wake(), m.graceEnds)
	if m.started && m.cause == 0 && !m.natural {
		at = min(at, m.startedAt.Add(m.plan.Run))
	}
	if m.running && m.stepCause == 0 && m.limit() > 0 {
		at = min(at, m.stepAt.Add(m.limit()))
	}
	if m.killing {
		at = min(at, m.killAt)
	}
	return at
}

// limit is the time-out of the step that runs, zero for none.
func (m *machine) limit() time.Duration { return m.plan.Steps[m.current].Timeout }

// look does what is due.
func (m *machine) look(now forge.Instant) {
	switch m.dog.Step(now) {
	case watchdog.Soft:
		m.bitten(false)
	case watchdog.Hard:
		m.bitten(true)
	case watchdog.Nothing:
	}
	if m.started && m.cause == 0 && !m.natural && now >= m.startedAt.Add(m.plan.Run) {
		m.timedOut(now)
	}
	if m.running && m.stepCause == 0 && m.limit() > 0 && now >= m.stepAt.Add(m.limit()) {
		m.stepTimedOut(now)
	}
	if now >= m.graceEnds {
		m.graceEnds = forge.Never
		m.last = m.last || m.cause != 0
		m.kill()
	}
	if m.killing && now >= m.killAt {
		m.sys.kill()
		m.killPause = min(max(minKillPause, 2*m.killPause), maxKillPause)
		m.killAt = clock.Boot().Add(m.killPause)
	}
	m.settle()
}

func (m *machine) start(now forge.Instant, s *start) {
	if m.started || m.last {
		return
	}
	m.started, m.startedAt = true, now
	if !m.dog.MayStart(now) {
		m.tooLate(now)
		return
	}
	var err error
	if m.secret, err = place(m.plan.SecretsDir, s.Secrets); err != nil {
		m.end(forge.SandboxSetup)
		m.last = true
		m.answer(report{Refused: &refusal{Class: forge.SandboxSetup, Text: err.Error()}})
	}
}

// answer answers the start, once.
func (m *machine) answer(r report) {
	if m.started && !m.answered {
		m.answered = true
		m.say(r)
	}
}

// tooLate refuses to start anything.
func (m *machine) tooLate(now forge.Instant) {
	m.dog.Bite(now)
	m.bitten(true)
	m.answer(report{Refused: &refusal{TooLate: true}})
}

// settle does the next thing, if nothing is in the way of it.
func (m *machine) settle() {
	switch {
	case m.over || m.running || m.awaiting || (m.killing && m.alive):
		return
	case !m.started && !m.last:
		return
	}
	m.killing = false
	if !m.last && m.pick() {
		m.awaiting = true
		index := uint16(m.current)
		m.say(report{Starting: &index})
		return
	}
	if m.cause == 0 {
		m.natural, m.last = true, true
	}
	switch {
	case !m.alive:
		m.finish()
	case m.last:
		m.kill()
		m.killAt = max(m.killAt, clock.Boot().Add(minKillPause)) // mostly nothing is left, and the news of that is on its way
	}
}

// pick finds the next step that is to run.
func (m *machine) pick() bool {
	for ; m.next < len(m.plan.Steps); m.next++ {
		if m.wanted(m.plan.Steps[m.next].When) {
			m.current = m.next
			m.next++
			return true
		}
	}
	return false
}

func (m *machine) wanted(when forge.When) bool {
	switch when {
	case forge.WhenSuccess:
		return !m.failed && m.cause == 0
	case forge.WhenFailure:
		return m.failed && m.cause == 0
	default:
		return when == forge.WhenAlways
	}
}

// release starts the step whose beginning is in the log.
func (m *machine) release(now forge.Instant, index int) {
	if !m.awaiting || index != m.current {
		return
	}
	m.awaiting = false
	m.signalled, m.stepCause = false, 0
	m.stepAt, m.stepWall = now, wallNow()
	if !m.dog.MayStart(now) {
		m.tooLate(now)
		m.record(forge.StepResult{Class: forge.Lost})
		return
	}
	s := m.plan.Steps[index]
	id, err := m.sys.start(s.Argv, s.Dir, m.plan.environ(uint16(index), m.secret))
	m.answer(report{Running: true})
	if err != nil {
		m.unstartable(err)
		return
	}
	m.running, m.alive, m.main = true, true, id
}

// unstartable ends a step whose program cannot be run, with the codes that shells use.
func (m *machine) unstartable(err error) {
	code := uint8(codeCannotRun)
	if errors.Is(err, errNotFound) {
		code = codeNotFound
	}
	m.say(report{Notice: clip("The step's program cannot be run: " + err.Error())})
	m.record(forge.StepResult{Class: forge.ExitCode, ExitCode: code})
}

// What shells make of a program that cannot be run, and of one that is not there.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

var errNotFound = errors.New("not found")

func clip(text string) string { return text[:min(len(text), forge.MaxNotice)] }

func wallNow() forge.WallTime { return forge.WallTime(clock.Wall().UnixMilli()) }
