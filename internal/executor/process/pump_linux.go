package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// pump is the only caller of an attempt's Output. It reads the steps' pipes and the supervisor's reports. A step waits for
// its beginning to be in the log, and its end stands behind all that was in the pipes when it ended.
type pump struct {
	w       *workload
	in      messages
	buf     [executor.MaxWrite]byte
	closed  [3]bool // of w.fds: nothing more comes
	current int     // step that began and did not end, -1 for none
	since   forge.Instant
	wall    forge.WallTime
	steps   []forge.StepResult
	over    *executor.Outcome
	began   forge.Instant
}

var streams = [3]forge.LogStream{1: forge.LogStdout, 2: forge.LogStderr}

// pump runs until the supervisor is gone and all output is handed over.
func (w *workload) pump() {
	p := &pump{w: w, current: -1}
	for !p.closed[0] {
		p.turn()
	}
	w.helpers.Wait()
	p.drain()
	p.finish()
	w.shut()
	w.e.forget(w.order.Context.Attempt)
	close(w.done)
}

// turn waits for something to read, and reads it: reports first.
func (p *pump) turn() {
	var fds [3]unix.PollFd
	for i, fd := range p.w.fds {
		fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		if p.closed[i] {
			fds[i].Fd = -1
		}
	}
	if _, err := unix.Poll(fds[:], -1); err != nil {
		return // interrupted
	}
	if fds[0].Revents != 0 {
		p.reports()
	}
	for i := 1; i < len(fds); i++ {
		if fds[i].Revents != 0 {
			p.output(i, len(p.buf))
		}
	}
}

// output hands on at most most bytes of one stream, and returns how many there were.
func (p *pump) output(i, most int) int {
	n, err := unix.Read(p.w.fds[i], p.buf[:min(most, len(p.buf))])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0
	case err != nil || n <= 0:
		p.closed[i] = true
		return 0
	}
	p.w.order.Output.Write(streams[i], p.buf[:n])
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

// reports takes in what the supervisor has said.
func (p *pump) reports() {
	n, err := unix.Read(p.w.fds[0], p.buf[:])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return
	case err != nil || n <= 0:
		p.closed[0] = true
		return
	}
	p.in.feed(p.buf[:n])
	for {
		var r report
		ok, err := p.in.take(&r)
		if err != nil {
			p.w.e.cfg.Log.Error("a supervisor speaks in riddles; its attempt is killed", "error", err)
			p.closed[0] = true
			p.w.Kill()
			return
		}
		if !ok {
			return
		}
		p.report(&r)
	}
}

func (p *pump) report(r *report) {
	out := p.w.order.Output
	switch {
	case r.Ready:
		out.Event(forge.Notice{Level: forge.LevelWarning, Text: warning})
		close(p.w.ready)
	case r.Running:
		p.w.started <- nil
	case r.Refused != nil:
		p.w.started <- refused(r.Refused)
	case r.Starting != nil:
		p.starting(*r.Starting)
	case r.Finished != nil:
		p.drain()
		p.current = -1
		p.steps = append(p.steps, *r.Finished)
		out.Event(forge.StepFinished{Result: *r.Finished})
	case r.Notice != "":
		p.drain()
		out.Event(forge.Notice{Level: forge.LevelError, Text: r.Notice})
	case r.Over != nil:
		p.over = r.Over
	}
}

func (p *pump) starting(step uint16) {
	p.drain()
	p.current, p.since, p.wall = int(step), clock.Boot(), wallNow()
	if p.began == 0 {
		p.began = p.since
	}
	p.w.order.Output.Event(forge.StepStarted{Step: step})
	if p.w.tell(&request{Go: &step}) != nil {
		p.w.hasten()
	}
}

// finish settles the outcome. A step whose end nobody saw ended with its supervisor.
func (p *pump) finish() {
	if p.over != nil {
		p.w.outcome = *p.over
		return
	}
	now := clock.Boot()
	o := p.w.died(p.steps)
	if p.current >= 0 {
		last := forge.StepResult{
			Index: uint16(p.current), Class: o.Result.Class, Signal: o.Result.Signal, Start: p.wall, Duration: now.Sub(p.since),
		}
		o.Result.Steps = append(o.Result.Steps, last)
		p.w.order.Output.Event(forge.StepFinished{Result: last})
	}
	if p.began != 0 {
		o.Result.Duration = now.Sub(p.began)
	}
	p.w.outcome = o
}

// deadly is the signal that the supervisor died of, or 0.
func (w *workload) deadly() uint8 {
	if w.cmd.ProcessState == nil {
		return 0
	}
	status, ok := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0
	}
	return uint8(status.Signal())
}
