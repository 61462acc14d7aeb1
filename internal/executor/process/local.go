package process

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// drainPatience is how long the end of a step waits for its output where a child may hold the pipe.
const drainPatience = 200 * time.Millisecond

// local is a workload without a supervisor: its machine runs in the agent. It stands in on systems that have no child
// subreapers. Its goroutines are the machine's, a teller, which alone calls Event, and two readers and a waiter for each
// step; all but a reader that some process still writes to have ended when Done is closed.
type local struct {
	e       *Executor
	out     executor.Output
	attempt forge.AttemptID
	folder  string
	in      chan keeper.Request
	said    chan keeper.Report
	started chan error
	over    chan struct{} // closed when the machine has ended
	done    chan struct{}
	members *members

	outMu sync.Mutex // one call of out at a time

	mu      sync.Mutex
	asked   bool
	outcome executor.Outcome // read once done is closed
}

func (e *Executor) prepareLocal(ctx context.Context, order executor.Order) (executor.Workload, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, &executor.SetupError{Class: forge.SandboxSetup, Err: err}
	}
	p, err := e.newPlan(ctx, &order)
	if err != nil {
		return nil, err
	}
	if err := e.live.Take(order.Context.Attempt); err != nil {
		return nil, &executor.SetupError{Class: forge.SandboxSetup, Err: err}
	}
	w := &local{
		e: e, out: order.Output, attempt: order.Context.Attempt, folder: order.Folder, in: make(chan keeper.Request),
		said: make(chan keeper.Report, 5*len(p.Steps)+8), started: make(chan error, 1), over: make(chan struct{}), done: make(chan struct{}),
	}
	if w.members, err = newMembers(w.read); err != nil {
		e.live.Drop(order.Context.Attempt)
		return nil, &executor.SetupError{Class: forge.SandboxSetup, Err: err}
	}
	w.out.Event(forge.Notice{Level: forge.LevelWarning, Text: warning})
	go w.run(p)
	go w.teller()
	return w, nil
}

// run is the machine's goroutine.
func (w *local) run(p *keeper.Plan) {
	a := keeper.NewNaps()
	defer a.Stop()
	keeper.NewMachine(p, w.members, a, func(r keeper.Report) { w.said <- r }).Run(w.in, nil, w.members.exits)
	close(w.over)
	close(w.said)
}

// teller hands on what the machine says, and ends the workload.
func (w *local) teller() {
	for r := range w.said {
		w.report(&r)
	}
	w.members.drained()
	w.members.close()
	w.e.forget(w.attempt)
	close(w.done)
}

func (w *local) report(r *keeper.Report) {
	switch {
	case r.Running:
		w.started <- nil
	case r.Refused != nil:
		w.started <- r.Refused.Err()
	case r.Starting != nil:
		w.event(forge.StepStarted{Step: *r.Starting})
		w.tell(keeper.Request{Go: r.Starting})
	case r.Finished != nil:
		w.members.drained()
		w.event(forge.StepFinished{Result: *r.Finished})
	case r.Notice != "":
		w.event(forge.Notice{Level: forge.LevelError, Text: r.Notice})
	case r.Over != nil:
		w.outcome = *r.Over
	}
}

func (w *local) event(e forge.StepEvent) {
	w.outMu.Lock()
	defer w.outMu.Unlock()
	w.out.Event(e)
}

// read hands on one stream of one step.
func (w *local) read(stream forge.LogStream, r *os.File) {
	buf := make([]byte, executor.MaxWrite)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			w.outMu.Lock()
			w.out.Write(stream, buf[:n])
			w.outMu.Unlock()
		}
		if err != nil {
			_ = r.Close()
			return
		}
	}
}

// tell sends a request, if there still is somebody to take it.
func (w *local) tell(q keeper.Request) {
	select {
	case w.in <- q:
	case <-w.over:
	}
}

// Start lets the first step go.
func (w *local) Start(secrets []executor.Secret) error {
	w.mu.Lock()
	again := w.asked
	w.asked = true
	w.mu.Unlock()
	if again {
		return &executor.SetupError{Class: forge.SandboxSetup, Err: errors.New("it was started before")}
	}
	w.tell(keeper.Request{Start: keeper.ToSend(secrets)})
	select {
	case err := <-w.started:
		return err
	case <-w.done:
	}
	select {
	case err := <-w.started:
		return err
	default:
		return executor.ErrTooLate
	}
}

// MoveDeadline passes a later deadline on.
func (w *local) MoveDeadline(deadline forge.Instant) { w.tell(keeper.Request{Move: deadline}) }

// Stop ends the workload softly.
func (w *local) Stop(reason forge.CancelReason) { w.tell(keeper.Request{Stop: reason}) }

// Kill ends it at once.
func (w *local) Kill() { w.tell(keeper.Request{Kill: true}) }

// Bite ends it for its deadline.
func (w *local) Bite(soft bool) {
	if soft {
		w.tell(keeper.Request{Bite: keeper.BiteSoft})
		return
	}
	w.tell(keeper.Request{Bite: keeper.BiteHard})
}

// Done closes when all is over and handed on.
func (w *local) Done() <-chan struct{} { return w.done }

// Outcome says how it ended.
func (w *local) Outcome() executor.Outcome { return w.outcome }

// Files implements executor.Workload.
func (w *local) Files() (*os.Root, error) { return os.OpenRoot(w.folder) }

// Close kills what still runs, and waits.
func (w *local) Close() error {
	w.Kill()
	<-w.done
	return nil
}
