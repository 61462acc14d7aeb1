package sim

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// sandbox is what an attempt has on a host: a workspace, perhaps a workload, its pid 1 with a watchdog of its own, and
// its log spool. It outlives the agent process that made it until somebody kills it or its deadline comes.
type sandbox struct {
	w       *World
	host    *host
	owner   *process
	ctx     forge.AttemptContext
	job     *simJob
	dog     watchdog.Dog
	prepped bool
	alive   bool               // the workload runs
	began   bool               // it ran once
	gone    bool               // nothing will run any more
	bitten  bool               // a watchdog signalled the workload while it was alive
	stalled bool               // pid 1 gets no processor: whatever it has to do waits, the word to start first
	stop    forge.CancelReason // that reached pid 1 while the workload was alive or before it started
	cleaned bool
	spooled forge.LogSeq // frames in the spool
	ended   int64
	result  forge.Result
}

// sandboxEffect carries out what the core asks of an attempt.
func (p *process) sandboxEffect(effect core.Effect) {
	w := p.w
	switch e := effect.(type) {
	case core.Prepare:
		p.prepare(e)
	case core.Start:
		b := w.boxes[e.Attempt]
		// The way from the agent to pid 1 takes a moment, and the machine may stall on it: pid 1 looks again.
		delay := w.between(100*time.Microsecond, 20*time.Millisecond)
		if w.faulty && w.chance(8) {
			delay = w.between(0, 2*w.shape.policy.TTL)
			w.reach(StartHeldBack)
			b.stalled = true
			if w.chance(2) {
				p.pause(delay) // the whole machine starves
			}
		}
		w.after(delay, b.start)
	case core.MoveDeadline:
		b := w.boxes[e.Attempt]
		w.after(w.between(0, 10*time.Millisecond), func() { b.move(e.Deadline) })
	case core.Stop:
		b := w.boxes[e.Attempt]
		w.after(w.between(0, 10*time.Millisecond), func() { b.stopFor(e.Reason) })
	case core.Kill:
		if b := w.boxes[e.Attempt]; e.Bite {
			b.bite(e.Soft)
		} else {
			w.after(w.between(0, 10*time.Millisecond), func() { b.kill() })
		}
	case core.Deliver:
		p.deliver(e)
	case core.Redeliver:
		p.redeliver(e)
	case core.CleanUp:
		p.cleanUp(e.Attempt)
	}
}

// prepare makes the sandbox; the workspace takes its time, and may fail.
func (p *process) prepare(e core.Prepare) {
	w := p.w
	w.sawPrepare(p, e)
	j := w.jobOf(e.Context.Job)
	b := &sandbox{w: w, host: p.host, owner: p, ctx: e.Context, job: j, dog: watchdog.New(w.shape.policy, e.Deadline)}
	w.boxes[e.Context.Attempt] = b
	p.host.boxes = append(p.host.boxes, b)
	w.after(j.prepare, func() {
		if b.gone || b.stop != forge.CancelNone {
			return
		}
		if w.faulty && w.chance(60) {
			w.reach(PreparationFailed)
			b.end(forge.Result{Class: forge.InputFetch})
			return
		}
		b.prepped = true
		p.handle(core.Prepared{Attempt: e.Context.Attempt})
	})
	b.arm()
}

// arm plans the watchdog of pid 1.
func (b *sandbox) arm() {
	wake := b.dog.Wake()
	if wake == forge.Never {
		return
	}
	b.w.timer(b.host.clock.when(max(wake, b.host.now())), func() {
		if !b.gone && b.dog.Wake() == wake {
			b.wakeDog()
		}
	})
}

func (b *sandbox) wakeDog() {
	b.w.explore.touch(b.host.part)
	if b.stalled {
		return
	}
	switch b.dog.Step(b.host.now()) {
	case watchdog.Soft:
		b.bite(true)
	case watchdog.Hard:
		b.bite(false)
	case watchdog.Nothing:
	}
	b.arm()
}

// bite signals for the deadline. A workload may end in its grace; nothing survives the hard kill.
func (b *sandbox) bite(soft bool) {
	if b.gone {
		return
	}
	b.w.reach(DeadlineKill)
	b.bitten = true
	b.dog.Bite(b.host.now())
	b.arm()
	if soft && b.alive {
		if b.w.chance(2) {
			b.w.after(b.w.between(0, b.w.shape.policy.SoftGrace-time.Millisecond), func() { b.end(b.job.result()) })
		}
		return
	}
	b.end(forge.Result{Class: forge.Lost})
}

// start releases the workload, unless it is too late for that.
func (b *sandbox) start() {
	b.w.explore.touch(b.host.part)
	w := b.w
	if b.stalled {
		b.stalled = false
		defer b.arm()
	}
	if b.gone || b.alive || b.stop != forge.CancelNone {
		return
	}
	if !b.owner.alive {
		return // the launcher is gone or going; pid 1 never hears the word
	}
	if !b.dog.MayStart(b.host.now()) {
		w.reach(StartTooLate)
		b.dog.Bite(b.host.now())
		b.end(forge.Result{Class: forge.Lost})
		return
	}
	b.alive, b.began = true, true
	w.living = append(w.living, b)
	w.sawStart(b)
	b.write(1 + b.job.frames/2)
	b.owner.handle(core.WorkloadStarted{Attempt: b.ctx.Attempt})
	if b.job.endless {
		return
	}
	w.after(b.job.runs, func() { b.end(b.job.result()) })
}

// write adds frames to the spool.
func (b *sandbox) write(n int) {
	b.spooled += forge.LogSeq(n)
	for _, c := range b.owner.conns {
		if c.up[agentSide] {
			c.pump(b.ctx.Attempt)
		}
	}
}

func (b *sandbox) move(deadline forge.Instant) {
	b.w.explore.touch(b.host.part)
	if b.gone {
		return
	}
	if deadline < b.dog.Deadline() {
		b.w.reach(OldDeadlineArrived)
	}
	b.dog.Move(deadline)
	b.arm()
}

// stopFor passes a stop on: soft signal, grace, hard kill. What has not started yet never will.
func (b *sandbox) stopFor(reason forge.CancelReason) {
	b.w.explore.touch(b.host.part)
	w := b.w
	if b.gone || b.stop != forge.CancelNone {
		return
	}
	b.stop = reason
	if !b.alive {
		b.end(forge.Result{Class: forge.Cancelled})
		return
	}
	w.reach(RunningStopped)
	w.after(w.between(0, w.shape.policy.SoftGrace), func() { b.end(b.job.result()) })
}

// kill ends it at once, without a word about the result.
func (b *sandbox) kill() {
	b.end(forge.Result{Class: forge.Signal, Signal: 9})
}

// vanish is the end of a host: nobody is told.
func (b *sandbox) vanish() {
	b.gone = true
	b.dead()
}

// end is the end of every process of it. The owner hears of it, if it lives.
func (b *sandbox) end(result forge.Result) {
	b.w.explore.touch(b.host.part)
	if b.gone {
		return
	}
	w := b.w
	b.gone = true
	b.result = result
	if b.alive {
		b.write(b.job.frames - b.job.frames/2)
	}
	b.dead()
	b.ended = w.now
	w.logf("workload of attempt %s ends: %v, stop %v, bitten %v", short(b.ctx.Attempt.ULID), result.Class, b.stop, b.bitten)
	if b.owner.alive {
		w.after(w.between(0, 5*time.Millisecond), func() {
			b.owner.handle(core.WorkloadEnded{Attempt: b.ctx.Attempt, Result: result, StopSeen: b.stop, Bitten: b.dog.Bitten()})
		})
	}
}

func (b *sandbox) dead() {
	if b.alive {
		b.alive = false
		b.w.living = slices.DeleteFunc(b.w.living, func(other *sandbox) bool { return other == b })
	}
}

// deliver uploads the output, which becomes readable a moment after that is said.
func (p *process) deliver(e core.Deliver) {
	w := p.w
	took := w.between(time.Millisecond, 3*time.Second)
	w.after(took, func() {
		var seal forge.LogSeal
		var outputs []forge.OutputRef
		capture := forge.Succeeded
		if b := w.boxes[e.Attempt]; b != nil {
			seal = forge.LogSeal{Last: b.spooled, Bytes: uint64(b.spooled) * frameBytes, Hash: transcript(e.Attempt, b.spooled)}
			if b.spooled == 0 {
				seal.Hash = [32]byte{}
			}
			switch {
			case e.Outcome != forge.Succeeded || b.job.outputs == 0:
			case w.faulty && w.chance(50):
				capture = forge.UploadFailed
				w.reach(UploadFailedOnce)
			default:
				outputs = w.upload(e.Attempt)
			}
		}
		p.handle(core.Delivered{Attempt: e.Attempt, Outputs: outputs, Capture: capture, Log: seal})
	})
}

// redeliver uploads the output once more, if it is still there and the time for it suffices.
func (p *process) redeliver(e core.Redeliver) {
	w := p.w
	delete(w.missed, e.Attempt)
	took := w.between(time.Millisecond, 3*time.Second)
	if w.faulty && w.chance(8) {
		took = e.Within
		w.reach(RedeliveryLate)
	}
	w.after(min(took, e.Within), func() {
		failed := took >= e.Within || w.faulty && w.chance(4) || !p.alive
		if stored := w.store.refs[e.Attempt]; !failed && stored != nil {
			stored.live = true
			w.reach(OutputRedelivered)
		}
		w.reachIf(failed && p.alive, OutputGone)
		p.handle(core.Redelivered{Attempt: e.Attempt, Failed: failed})
	})
}

// upload stores an output for an attempt.
func (w *World) upload(attempt forge.AttemptID) []forge.OutputRef {
	ref := forge.OutputRef{Output: 0}
	ref.Ref.Digest = transcript(attempt, 1<<40)
	ref.Ref.Bytes = 1
	stored := &refs{ref: ref, live: !w.chance(5)}
	w.store.refs[attempt] = stored
	if !stored.live {
		w.after(w.between(0, 4*time.Second), func() { stored.live = true })
	}
	return []forge.OutputRef{ref}
}

// cleanUp removes everything of an attempt.
func (p *process) cleanUp(attempt forge.AttemptID) {
	w := p.w
	w.after(w.between(time.Millisecond, 500*time.Millisecond), func() {
		if !p.alive {
			return
		}
		p.host.boxes = slices.DeleteFunc(p.host.boxes, func(b *sandbox) bool {
			if b.ctx.Attempt == attempt {
				b.kill()
				b.cleaned = true
			}
			return b.ctx.Attempt == attempt
		})
		p.handle(core.CleanedUp{Attempt: attempt})
	})
}
