package keeper

import (
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// stop ends the attempt softly for a reason. What has ended by itself, or is ending for another reason, stays so.
func (m *Machine) stop(now forge.Instant, reason forge.CancelReason) {
	if m.cause != 0 || m.natural || m.last {
		return
	}
	m.outcome.StopSeen = reason
	m.endSoftly(now, stopClass(reason))
	m.last = m.last || !m.started
}

func stopClass(reason forge.CancelReason) forge.Class {
	switch reason {
	case forge.CancelMaxLifetime:
		return forge.TimedOut
	case forge.CancelDisabled:
		return forge.Interrupted
	default:
		return forge.Cancelled
	}
}

// timedOut ends the attempt softly because all steps together took too long.
func (m *Machine) timedOut(now forge.Instant) {
	m.outcome.Result.Limit = millis(m.plan.Run)
	m.outcome.Result.Peak = millis(now.Sub(m.startedAt))
	m.endSoftly(now, forge.TimedOut)
}

// full ends the attempt at once because it has written too much.
func (m *Machine) full(o Overrun) {
	if m.cause == 0 && !m.natural {
		m.outcome.Result.Limit, m.outcome.Result.Peak = o.Limit, o.Peak
		m.say(Report{Notice: fmt.Sprintf("The job has written %v, and may write %v. Ask for more with resources: disk.",
			forge.Bytes(o.Peak), forge.Bytes(o.Limit))})
	}
	m.end(forge.DiskFull)
	m.hard()
}

// endSoftly signals everything and gives it the spec's grace.
func (m *Machine) endSoftly(now forge.Instant, cause forge.Class) {
	m.end(cause)
	m.soft(now)
}

// stepTimedOut ends one step softly, with everything that was left behind by those before.
func (m *Machine) stepTimedOut(now forge.Instant) {
	m.stepCause = forge.TimedOut
	m.soft(now)
}

func (m *Machine) soft(now forge.Instant) {
	m.graceEnds = min(m.graceEnds, now.Add(m.plan.Grace))
	m.signalled = m.signalled || m.running
	if m.alive {
		m.sys.Soft()
	}
}

// bitten ends the attempt for its deadline: what the watchdog signalled is lost. The watchdog itself says when the soft
// signal has had its time.
func (m *Machine) bitten(hard bool) {
	if m.natural {
		m.hard() // it ended by itself; only what it left behind has to go
		return
	}
	m.outcome.Bitten = true
	m.end(forge.Lost)
	m.cause = forge.Lost
	m.last = true
	m.signalled = m.signalled || m.running
	switch {
	case hard || !m.started:
		m.hard()
	case m.alive:
		m.sys.Soft()
	}
}

// end notes why the attempt ends early; the first reason counts. A step that waits for its beginning does not run.
func (m *Machine) end(cause forge.Class) {
	if m.cause == 0 && !m.natural {
		m.cause = cause
	}
	if m.awaiting {
		m.awaiting = false
		m.stepAt, m.stepWall = clock.Boot(), wallNow()
		m.record(forge.StepResult{Class: m.cause})
	}
}

// hard kills everything, and lets nothing follow.
func (m *Machine) hard() {
	m.last = true
	m.kill()
}

// kill begins to kill everything.
func (m *Machine) kill() {
	m.signalled = m.signalled || m.running
	if !m.killing && m.alive {
		m.killing, m.killAt, m.killPause = true, 0, 0
	}
}

// exited takes news of processes in.
func (m *Machine) exited(e Exit) {
	switch {
	case e.None && e.Starts == m.sys.Starts():
		m.alive = false
	case !e.None && m.running && e.ID == m.main:
		m.running = false
		m.record(m.resultOf(e))
		if m.stepCause != 0 && m.cause == 0 {
			m.graceEnds = forge.Never
			m.kill() // what a step that took too long leaves behind does not outlive it
		}
	}
}

// resultOf says what the end of a step's program means.
func (m *Machine) resultOf(e Exit) forge.StepResult {
	r := forge.StepResult{ExitCode: uint8(e.Code), Signal: uint8(e.Signal)}
	switch {
	case m.signalled && m.stepCause != 0:
		r.Class = m.stepCause
	case m.signalled:
		r.Class = m.cause
	case e.Signal != 0:
		r.Class = forge.Signal
	case e.Code != 0:
		r.Class = forge.ExitCode
	default:
		r.Class = forge.Succeeded
	}
	return r
}

// record completes and reports the result of the current step.
func (m *Machine) record(r forge.StepResult) {
	r.Index = uint16(m.current)
	r.Start, r.Duration = m.stepWall, clock.Boot().Sub(m.stepAt)
	var limit, peak uint64
	switch r.Class {
	case forge.Succeeded:
		r.Class, limit, peak = m.measure(r)
	case forge.TimedOut:
		limit, peak = millis(m.limit()), millis(r.Duration)
	default:
	}
	result := &m.outcome.Result
	result.Steps = append(result.Steps, r)
	if r.Class != forge.Succeeded && !m.plan.Steps[m.current].Allow.Allows(r.Class, r.ExitCode) {
		m.failed = true
		if result.Class == 0 && m.cause == 0 {
			result.Class, result.ExitCode, result.Signal, result.Limit, result.Peak = r.Class, r.ExitCode, r.Signal, limit, peak
		}
	}
	remarks := m.sys.Remarks()
	for _, text := range remarks[:min(len(remarks), maxRemarks)] {
		m.say(Report{Notice: clip(text), Hint: true})
	}
	m.say(Report{Finished: &r})
}

// measure holds a step's outputs to their bound.
func (m *Machine) measure(r forge.StepResult) (class forge.Class, limit, peak uint64) {
	var size forge.Bytes
	var err error
	m.sys.AsStep(func() { size, err = outputBytes(m.plan.Folder, r.Index, executor.MaxStepOutputs) })
	if err != nil {
		m.say(Report{Notice: clip("The step's outputs cannot be measured: " + err.Error())})
	}
	if size <= executor.MaxStepOutputs && err == nil {
		return forge.Succeeded, 0, 0
	}
	m.say(Report{Notice: fmt.Sprintf("The step wrote %d bytes of outputs or more; %d are allowed. Keep large results as files.",
		size, executor.MaxStepOutputs)})
	return forge.OutputTooLarge, uint64(executor.MaxStepOutputs), uint64(size)
}

// finish says how it all ended. Nothing lives any more.
func (m *Machine) finish() {
	m.over = true
	r := &m.outcome.Result
	if m.started {
		r.Duration = clock.Boot().Sub(m.startedAt)
	}
	if m.cause != 0 {
		r.Class = m.cause
		if m.cause == forge.Signal {
			r.Signal = killSignal
		}
	}
	if r.Class == 0 {
		r.Class = forge.Succeeded
	}
	m.answer(Report{Running: true}) // there was no step to run
	m.say(Report{Over: &m.outcome})
}

// killSignal is the number of the signal that cannot be handled.
const killSignal = 9

func millis(d time.Duration) uint64 { return uint64(max(0, d) / time.Millisecond) }
