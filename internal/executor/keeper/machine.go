package keeper

import (
	"errors"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// System is what a machine does to processes. All of it belongs to the goroutine of the machine.
type System interface {
	// Start starts the program of a step. Its end comes as an Exit with the id that is returned. An error that is ErrNotFound
	// says that there is no such program.
	Start(argv []string, dir string, env []string) (id int, err error)
	// Soft asks every process of the attempt to end.
	Soft()
	// Kill kills every process of the attempt that it finds. Others may come up meanwhile: it is called until an Exit says
	// that nothing is left.
	Kill()
	// Starts counts the programs that were started.
	Starts() uint64
	// Remarks returns what a reader of the log should know about the step that has ended, at most maxRemarks of them count.
	Remarks() []string
	// AsStep runs f with a step's rights on files, and returns when f has.
	AsStep(f func())
}

// Exit is news of processes that ended.
type Exit struct {
	ID     int    // of a program that ended
	Code   int    // its exit code, or
	Signal int    // the signal that it died of
	None   bool   // no process of the attempt is left
	Starts uint64 // with None: as many programs had been started before that was found
}

// Alarm calls at an instant.
type Alarm interface {
	Set(at forge.Instant)
	Ring() <-chan struct{}
}

// Machine decides what happens to one attempt's processes: which step runs, what ends it, and what that means. It runs in
// a process other than the agent where there can be one. One goroutine owns it.
//
//	waiting ─start─▶ between steps ⇄ a step runs ─▶ nothing left to run ─▶ killing what is left ─▶ over
//
// Two kinds of end reach into this: the end of a step (its time-out), after which steps may follow, and the end of the
// attempt (cause), after which only the steps run that run always, and only within the grace.
type Machine struct {
	plan   *Plan
	sys    System
	say    func(Report)
	alarm  Alarm
	dog    watchdog.Dog
	secret []forge.EnvVar

	started   bool
	startedAt forge.Instant
	running   bool    // the program of a step
	main      int     // its id
	awaiting  bool    // the word to go, for step current
	begun     *uint16 // the step that has it from the start
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

// maxRemarks bounds what a system has to say about one step.
const maxRemarks = 8

// Bounds of the pause between two sweeps of a kill.
const (
	minKillPause = time.Millisecond
	maxKillPause = 100 * time.Millisecond
)

// NewMachine returns a machine for a plan. It calls say from the goroutine that calls Run, with everything that its agent is
// to be told.
func NewMachine(p *Plan, sys System, a Alarm, say func(Report)) *Machine {
	return &Machine{plan: p, sys: sys, say: say, alarm: a, dog: watchdog.New(p.Policy, p.Deadline), graceEnds: forge.Never}
}

// Run goes on until everything is over. The end of in is the end of the agent. more, which may be nil, has requests too, and
// its end means nothing.
func (m *Machine) Run(in, more <-chan Request, exits <-chan Exit) executor.Outcome {
	for !m.over {
		m.alarm.Set(m.wake())
		select {
		case r, ok := <-in:
			if !ok {
				in = nil
				m.end(forge.Lost)
				m.hard()
				break
			}
			m.take(r)
		case r, ok := <-more:
			if !ok {
				more = nil
				break
			}
			m.take(r)
		case e := <-exits:
			m.exited(e)
		case <-m.alarm.Ring():
		}
		m.look(clock.Boot())
	}
	return m.outcome
}

func (m *Machine) take(r Request) {
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
		m.bitten(r.Bite == BiteHard)
	case r.Kill:
		m.end(forge.Signal)
		m.hard()
	case r.Full != nil:
		m.full(*r.Full)
	}
}

// wake is when look wants to be called next.
func (m *Machine) wake() forge.Instant {
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
func (m *Machine) limit() time.Duration { return m.plan.Steps[m.current].Timeout }

// look does what is due.
func (m *Machine) look(now forge.Instant) {
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
		m.sys.Kill()
		m.killPause = min(max(minKillPause, 2*m.killPause), maxKillPause)
		m.killAt = clock.Boot().Add(m.killPause)
	}
	m.settle()
}

func (m *Machine) start(now forge.Instant, s *Start) {
	if m.started || m.last {
		return
	}
	m.started, m.startedAt, m.begun = true, now, s.Begun
	if !m.dog.MayStart(now) {
		m.tooLate(now)
		return
	}
	var err error
	if len(s.Secrets) > 0 {
		m.sys.AsStep(func() { m.secret, err = place(m.plan.SecretsDir, s.Secrets) })
	}
	if err != nil {
		m.end(forge.SandboxSetup)
		m.last = true
		m.answer(Report{Refused: &Refusal{Class: forge.SandboxSetup, Text: err.Error()}})
	}
}

// answer answers the start, once.
func (m *Machine) answer(r Report) {
	if m.started && !m.answered {
		m.answered = true
		m.say(r)
	}
}

// tooLate refuses to start anything.
func (m *Machine) tooLate(now forge.Instant) {
	m.dog.Bite(now)
	m.bitten(true)
	m.answer(Report{Refused: &Refusal{TooLate: true}})
}

// settle does the next thing, if nothing is in the way of it.
func (m *Machine) settle() {
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
		if m.begun == nil || *m.begun != index {
			m.say(Report{Starting: &index})
			return
		}
		m.begun = nil
		m.release(clock.Boot(), m.current)
		m.settle()
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
func (m *Machine) pick() bool {
	for ; m.next < len(m.plan.Steps); m.next++ {
		if m.wanted(m.plan.Steps[m.next].When) {
			m.current = m.next
			m.next++
			return true
		}
	}
	return false
}

func (m *Machine) wanted(when forge.When) bool {
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
func (m *Machine) release(now forge.Instant, index int) {
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
	id, err := m.sys.Start(s.Argv, s.Dir, m.plan.environ(uint16(index), m.secret))
	m.answer(Report{Running: true})
	if err != nil {
		m.unstartable(err)
		return
	}
	m.running, m.alive, m.main = true, true, id
}

// unstartable ends a step whose program cannot be run, with the codes that shells use.
func (m *Machine) unstartable(err error) {
	code := uint8(CodeCannotRun)
	if errors.Is(err, ErrNotFound) {
		code = codeNotFound
	}
	m.say(Report{Notice: clip("The step's program cannot be run: " + err.Error())})
	m.record(forge.StepResult{Class: forge.ExitCode, ExitCode: code})
}

// What shells make of a program that cannot be run, and of one that is not there.
const (
	CodeCannotRun = 126
	codeNotFound  = 127
)

// ErrNotFound says that there is no program of a name.
var ErrNotFound = errors.New("not found")

func clip(text string) string { return text[:min(len(text), forge.MaxNotice)] }

func wallNow() forge.WallTime { return forge.WallTime(clock.Wall().UnixMilli()) }
