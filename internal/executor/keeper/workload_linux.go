package keeper

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// Bounds of the agent's patience with a keeper.
const (
	tellPatience = 2 * time.Second        // for a message to leave
	killPatience = 300 * time.Millisecond // for a kill to be carried out; less than the hard kill's lead on the deadline
	endPatience  = 10 * time.Second       // for an end after the spec's grace: a step can hold its keeper up
)

// workload is one attempt as its agent sees it.
type workload struct {
	job   Job
	host  Host
	conn  *os.File
	reads []*os.File // stdout, stderr
	fds   [3]int     // of conn and reads, as long as the pump runs
	inlet *inlet     // of the pump
	pump  *pump

	ready   chan struct{} // closed when the keeper has its plan
	started chan error    // the answer to Start
	overdue chan struct{} // a kill was asked for
	gone    chan struct{} // closed when the host and everything below it is dead
	buried  chan struct{} // closed when the host has been waited for, after gone
	death   Death         // of the host; read once buried is closed
	done    chan struct{}

	helpers sync.WaitGroup     // wait, enforce and watch
	over    context.CancelFunc // ends watch; called when gone is closed
	quota   *quota             // of watch

	tellMu sync.Mutex // one message at a time

	mu     sync.Mutex
	dog    watchdog.Dog
	asked  bool // Start was called
	begun  forge.Instant
	latest forge.Instant // when the keeper must be at its end by itself
	late   bool          // it was not
	stop   forge.CancelReason
	bitten bool
	killed bool
	full   *Overrun // it had written too much

	outcome executor.Outcome // read once done is closed

	closing sync.Once
	closed  error
}

// tell sends a message. Nothing is lost with one that cannot be sent: a keeper that does not listen is dead or will be.
func (w *workload) tell(q *Request) error {
	w.tellMu.Lock()
	defer w.tellMu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(tellPatience)); err != nil {
		return err
	}
	return writeMessage(w.conn, q)
}

// Start lets the first step go.
func (w *workload) Start(secrets []executor.Secret) error {
	w.mu.Lock()
	again := w.asked
	now := clock.Boot()
	if !again {
		w.asked, w.begun = true, now
		w.endBy(now.Add(w.job.Plan.Run))
	}
	late := !w.dog.MayStart(now)
	w.mu.Unlock()
	if again {
		return Setup(errors.New("it was started before"))
	}
	if late {
		w.Bite(false)
		<-w.done
		return executor.ErrTooLate
	}
	start := ToSend(secrets)
	if len(secrets) == 0 { // else the start may be refused before any step begins
		start.Begun = w.pump.begin()
	}
	if err := w.tell(&Request{Start: start}); err != nil {
		w.Kill()
	}
	select {
	case err := <-w.started:
		return err
	case <-w.done:
	}
	select {
	case err := <-w.started:
		return err
	default:
		return executor.ErrTooLate // something ended it first
	}
}

// MoveDeadline passes a later deadline on.
func (w *workload) MoveDeadline(deadline forge.Instant) {
	w.mu.Lock()
	w.dog.Move(deadline)
	w.mu.Unlock()
	w.host.MoveDeadline(deadline)
	_ = w.tell(&Request{Move: deadline}) // else the attempt ends earlier
}

// Stop ends the workload softly.
func (w *workload) Stop(reason forge.CancelReason) {
	w.mu.Lock()
	if w.stop == forge.CancelNone {
		w.stop = reason
		w.endBy(clock.Boot())
	}
	reason = w.stop
	w.mu.Unlock()
	if w.tell(&Request{Stop: reason}) != nil {
		w.hasten()
	}
}

// Bite ends it for its deadline.
func (w *workload) Bite(soft bool) {
	w.mu.Lock()
	w.bitten = true
	w.dog.Bite(clock.Boot())
	w.mu.Unlock()
	b := BiteSoft
	if !soft {
		b = BiteHard
	}
	if w.tell(&Request{Bite: b}) != nil || !soft {
		w.hasten()
	}
}

// Kill ends it at once.
func (w *workload) Kill() {
	w.mu.Lock()
	w.killed = true
	w.mu.Unlock()
	_ = w.tell(&Request{Kill: true}) // else the enforcer does it
	w.hasten()
}

// hasten has the enforcer see to it that nothing lives soon.
func (w *workload) hasten() {
	select {
	case w.overdue <- struct{}{}:
	default:
	}
}

// Done closes when all is over and handed on.
func (w *workload) Done() <-chan struct{} { return w.done }

// Outcome says how it ended.
func (w *workload) Outcome() executor.Outcome { return w.outcome }

// Close kills what still runs, waits, and gives back the host.
func (w *workload) Close() error {
	select {
	case <-w.done:
	default:
		w.Kill()
		<-w.done
	}
	<-w.buried
	w.closing.Do(func() { w.closed = w.host.Close() })
	return w.closed
}

// bury waits for all of the host's end. Close joins it.
func (w *workload) bury() {
	defer close(w.buried)
	w.death = w.host.Wait()
}

// wait waits for the end of everything that lives.
func (w *workload) wait() {
	select {
	case <-w.host.Gone():
	case <-w.buried:
	}
	close(w.gone)
	w.over()
}

// endBy bounds an attempt that is to end softly at an instant. It needs mu.
func (w *workload) endBy(at forge.Instant) {
	w.latest = min(w.latest, at.Add(w.job.Plan.Grace).Add(w.job.patience))
}

// overran reports whether a keeper has not ended its attempt in time.
func (w *workload) overran() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = w.late || clock.Boot() >= w.latest
	return w.late
}

// enforce kills what a keeper does not kill within killPatience of being told, or does not end in time. Whoever is stopped
// between its fork and its program holds the keeper up, and hostile steps can do that to those that follow.
func (w *workload) enforce() {
	naps := NewNaps()
	defer naps.Stop()
	for asked := false; !asked && !w.overran(); {
		naps.Set(forge.Never) // which is soon enough
		select {
		case <-w.overdue:
			asked = true
		case <-naps.Ring():
		case <-w.gone:
			return
		}
	}
	patience := time.NewTimer(killPatience)
	defer patience.Stop()
	select {
	case <-patience.C:
		w.job.Log.Warn("a keeper does not answer; its attempt is killed", "attempt", w.job.Order.Context.Attempt)
		w.host.Kill()
	case <-w.gone:
	}
}

// died says how an attempt ended whose keeper did not live to say so.
func (w *workload) died(steps []forge.StepResult) executor.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := executor.Outcome{StopSeen: w.stop, Bitten: w.bitten || w.death.Bitten || !w.dog.MayStart(clock.Boot())}
	o.Result = forge.Result{Class: forge.SandboxSetup, Steps: steps}
	if w.death.Signal != 0 {
		o.Result.Class, o.Result.Signal = forge.Signal, w.death.Signal
	}
	switch {
	case o.Bitten:
		o.Result.Class = forge.Lost
	case w.stop != forge.CancelNone:
		o.Result.Class = stopClass(w.stop)
	case w.full != nil:
		o.Result.Class, o.Result.Signal = forge.DiskFull, 0
		o.Result.Limit, o.Result.Peak = w.full.Limit, w.full.Peak
	case w.killed:
		o.Result.Class, o.Result.Signal = forge.Signal, killSignal
	case w.late:
		o.Result.Class = forge.TimedOut
		o.Result.Limit, o.Result.Peak = millis(w.job.Plan.Run), millis(clock.Boot().Sub(w.begun))
	case w.death.Finding.Class != 0:
		o.Result.Class, o.Result.Limit, o.Result.Peak = w.death.Finding.Class, w.death.Finding.Limit, w.death.Finding.Peak
	}
	return o
}
