package keeper

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// pump is the only caller of an attempt's Output, on a goroutine of its own and for the beginning of the first step. It reads the steps' pipes and the keeper's reports. A step waits for
// its beginning to be in the log, and its end stands behind all that was in the pipes when it ended.
type pump struct {
	w       *workload
	turns   sync.Mutex // held by who calls Output; those calls may wait, and whoever wants the next one with them
	in      messages
	buf     [executor.MaxWrite]byte
	closed  [3]bool // of w.fds: nothing more comes
	current int     // step that began and did not end, -1 for none
	since   forge.Instant
	wall    forge.WallTime
	steps   []forge.StepResult
	found   map[uint16]Finding // by step
	over    *executor.Outcome
	began   forge.Instant

	said     int  // reports
	ready    bool // it was said
	answered bool // the start was
}

var streams = [3]forge.LogStream{1: forge.LogStdout, 2: forge.LogStderr}

func newPump(w *workload) *pump { return &pump{w: w, current: -1, found: map[uint16]Finding{}} }

// run goes on until the keeper is gone and all output is handed over.
func (p *pump) run() {
	w := p.w
	for !p.closed[0] && p.over == nil {
		p.turn()
	}
	w.helpers.Wait()
	if p.over == nil {
		<-w.buried // which says why
	}
	p.turns.Lock()
	defer p.turns.Unlock()
	p.drain()
	p.finish()
	w.shut()
	w.job.Over()
	close(w.done)
}

// turn waits for something to read, and reads it: reports first.
func (p *pump) turn() {
	var readable [3]bool
	for _, i := range p.w.inlet.wait() {
		readable[i] = true
	}
	p.turns.Lock()
	defer p.turns.Unlock()
	if readable[0] {
		p.reports()
	}
	for i := 1; i < len(readable); i++ {
		if readable[i] {
			p.output(i, len(p.buf))
		}
	}
}

// end notes that nothing more comes from one of them.
func (p *pump) end(i int) {
	p.closed[i] = true
	p.w.inlet.drop(p.w.fds[i])
}

// output hands on at most most bytes of one stream, and returns how many there were.
func (p *pump) output(i, most int) int {
	n, err := unix.Read(p.w.fds[i], p.buf[:min(most, len(p.buf))])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0
	case err != nil || n <= 0:
		p.end(i)
		return 0
	}
	p.w.job.Order.Output.Write(streams[i], p.buf[:n])
	return n
}

// drain hands on what is in the pipes now. What comes meanwhile may wait: some process may never stop printing.
func (p *pump) drain() {
	for i := 1; i < len(p.w.fds); i++ {
		left, err := unix.IoctlGetInt(p.w.fds[i], unix.TIOCINQ)
		for err == nil && left > 0 && !p.closed[i] {
			n := p.output(i, left)
			if n == 0 {
				break
			}
			left -= n
		}
	}
}

// reports takes in what the keeper has said.
func (p *pump) reports() {
	n, err := unix.Read(p.w.fds[0], p.buf[:])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return
	case err != nil || n <= 0:
		p.end(0)
		return
	}
	p.in.feed(p.buf[:n])
	for {
		var r Report
		ok, err := p.in.take(&r)
		if err == nil && ok && !p.legal(&r) {
			err = errOutOfTurn
		}
		if err != nil {
			p.w.job.Log.Error("a keeper speaks in riddles; its attempt is killed", "error", err)
			p.end(0)
			p.w.Kill()
			return
		}
		if !ok {
			return
		}
		p.report(&r)
	}
}

var errOutOfTurn = errors.New("it says what it cannot have to say")

// legal reports whether a keeper may say something now. It runs beside hostile steps, and is believed no further than that
// its agent stays whole.
func (p *pump) legal(r *Report) bool {
	steps := len(p.w.job.Order.Spec.Steps)
	unknown := func(s forge.StepResult) bool { return int(s.Index) >= steps }
	p.said++
	first := func(said *bool) bool { defer func() { *said = true }(); return !*said }
	switch {
	case p.over != nil, p.said > mostReports(steps):
		return false
	case r.Ready:
		return first(&p.ready)
	case r.Running, r.Refused != nil:
		return first(&p.answered)
	case r.Starting != nil:
		return int(*r.Starting) < steps
	case r.Finished != nil:
		return !unknown(*r.Finished)
	case r.Over != nil:
		return r.Over.Result.Validate() == nil && !slices.ContainsFunc(r.Over.Result.Steps, unknown)
	}
	return true
}

func (p *pump) report(r *Report) {
	out := p.w.job.Order.Output
	switch {
	case r.Ready:
		if p.w.job.Warning != "" {
			out.Event(forge.Notice{Level: forge.LevelWarning, Text: p.w.job.Warning})
		}
		close(p.w.ready)
	case r.Running:
		p.w.started <- nil
	case r.Refused != nil:
		p.w.started <- r.Refused.Err()
	case r.Starting != nil:
		p.starting(*r.Starting)
	case r.Finished != nil:
		p.finished(r.Finished)
	case r.Notice != "":
		p.drain()
		level := forge.LevelError
		if r.Hint {
			level = forge.LevelNotice
		}
		out.Event(forge.Notice{Level: level, Text: r.Notice})
	case r.Over != nil:
		p.over = r.Over
	}
}

// begin writes the beginning of the first step into the log before anybody is told to start it, and returns that step. It
// returns nil where there is none, or nobody left to start it.
func (p *pump) begin() *uint16 {
	p.turns.Lock()
	defer p.turns.Unlock()
	step, some := p.w.job.Plan.first()
	if !some || p.over != nil || p.closed[0] || p.began != 0 {
		return nil
	}
	p.begins(step)
	return &step
}

// begins writes the beginning of a step into the log.
func (p *pump) begins(step uint16) {
	p.drain()
	p.current, p.since, p.wall = int(step), clock.Boot(), wallNow()
	if p.began == 0 {
		p.began = p.since
	}
	p.w.job.Order.Output.Event(forge.StepStarted{Step: step})
}

func (p *pump) starting(step uint16) {
	p.begins(step)
	if p.w.tell(&Request{Go: &step}) != nil {
		p.w.hasten()
	}
}

// finished passes the end of a step on, under the name that the host has for it.
func (p *pump) finished(r *forge.StepResult) {
	p.drain()
	p.current = -1
	f := p.w.host.Finished(*r)
	if r.Class != forge.Succeeded {
		f.Notices = append(f.Notices, p.w.noDisk()...)
	}
	for _, text := range f.Notices {
		p.w.job.Order.Output.Event(forge.Notice{Level: forge.LevelWarning, Text: clip(text)})
	}
	if f.Class != 0 {
		p.found[r.Index] = f
		r.Class = f.Class
	}
	p.steps = append(p.steps, *r)
	p.w.job.Order.Output.Event(forge.StepFinished{Result: *r})
}

// name puts what the host has found into an outcome: the class of each step, and that of the whole where such a step decided.
func (p *pump) name(o *executor.Outcome) {
	decided := false
	for i := range o.Result.Steps {
		step := &o.Result.Steps[i]
		failed := step.Class != forge.Succeeded && !p.w.job.Order.Spec.Steps[step.Index].AllowFailure.Allows(step.Class, step.ExitCode)
		f, found := p.found[step.Index]
		if found {
			step.Class = f.Class
		}
		if decides := failed && !decided; decides && found && (o.Result.Class == forge.ExitCode || o.Result.Class == forge.Signal) {
			o.Result.Class, o.Result.Limit, o.Result.Peak = f.Class, f.Limit, f.Peak
			o.Result.ExitCode, o.Result.Signal = 0, 0
		}
		decided = decided || failed
	}
}

// finish settles the outcome. A step whose end nobody saw ended with its keeper, or was not started by it.
func (p *pump) finish() {
	now := clock.Boot()
	if p.over != nil {
		p.name(p.over)
		p.close(p.over, now)
		p.w.outcome = *p.over
		return
	}
	o := p.w.died(p.steps)
	p.close(&o, now)
	if p.began != 0 {
		o.Result.Duration = now.Sub(p.began)
	}
	p.w.outcome = o
}

// close ends the step that began and did not end.
func (p *pump) close(o *executor.Outcome, now forge.Instant) {
	if p.current < 0 {
		return
	}
	last := forge.StepResult{
		Index: uint16(p.current), Class: o.Result.Class, Signal: o.Result.Signal, Start: p.wall, Duration: now.Sub(p.since),
	}
	o.Result.Steps = append(o.Result.Steps, last)
	p.w.job.Order.Output.Event(forge.StepFinished{Result: last})
}
