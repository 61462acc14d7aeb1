package runner

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// leaping is a clock that can be made to jump ahead.
type leaping struct{ ahead atomic.Int64 }

func (l *leaping) now() forge.Instant { return clock.Boot().Add(time.Duration(l.ahead.Load())) }

func (l *leaping) leap(by time.Duration) { l.ahead.Add(int64(by)) }

// Case T09: a preparation that takes longer than two leases keeps its lease, because heartbeats renew it from the grant on.
func TestAPreparationThatOutlastsItsLeaseTwiceKeepsIt(t *testing.T) {
	var passes leaping
	ready := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Preparing: func(ctx context.Context, _ executor.Order) error {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}})
	begun := forge.Instant(0)
	y.daemon.Answer = func(_ *runnertest.Conn, f forge.Frame) bool {
		beat, is := f.Body.(*forge.Heartbeat)
		if !is || len(beat.Attempts) == 0 {
			return false
		}
		if phase := beat.Attempts[0].Phase; phase != forge.AttemptPreparing {
			return false
		}
		switch {
		case begun == 0:
			begun = passes.now()
		case passes.now().Sub(begun) <= 2*y.daemon.Policy.TTL:
			passes.leap(y.daemon.Policy.TTL / 4)
		case ready != nil:
			close(ready)
			ready = nil
		}
		return false
	}
	a := y.start(func(c *Config) { c.now = passes.now })
	job := y.daemon.Offer(y.daemon.Synced(), spec())
	if done := runnertest.Await(y.daemon, "the job is completed", of(job)); done.Result.Class != forge.Succeeded {
		t.Errorf("completed with %+v", done.Result)
	}
	if n := y.daemon.Count(func(m forge.Message) bool { _, is := m.(*forge.Register); return is }); n != 1 {
		t.Errorf("it registered %d times", n)
	}
	a.untilIdle()
}

// Case T09: what was given away while it was prepared is dropped without a word, and its slot takes other work.
func TestAPreparationWhoseLeaseIsStaleMakesRoomForOtherWork(t *testing.T) {
	var first atomic.Bool
	y := newYard(t, &runnertest.Machine{
		Preparing: func(ctx context.Context, _ executor.Order) error {
			if first.CompareAndSwap(false, true) {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		},
	})
	y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
		beat, is := f.Body.(*forge.Heartbeat)
		if !is || len(beat.Attempts) == 0 || beat.Attempts[0].Phase != forge.AttemptPreparing {
			return false
		}
		ack := &forge.HeartbeatAck{Nonce: beat.Nonce}
		for _, i := range beat.Attempts {
			ack.Verdicts = append(ack.Verdicts, forge.LeaseVerdict{Lease: i.Lease, Verdict: forge.VerdictStale})
		}
		if err := c.Reply(f, ack); err != nil {
			t.Error(err)
		}
		return true
	}
	a := y.start(func(c *Config) { c.Slots = 1 })
	c := y.daemon.Synced()
	stale := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the job is prepared", func(m *forge.PhaseChange) bool { return m.Context == stale })
	a.untilIdle()
	other := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the other job is completed", of(other))
	if y.daemon.Count(func(m forge.Message) bool { done, is := m.(*forge.Completion); return is && done.Context == stale }) != 0 {
		t.Error("a result was claimed for a stale lease")
	}
}

// Case T11: whatever a daemon behind errors says to a registration, the agent comes back until it is taken.
func TestAnAgentRegistersAgainWhateverErrorsItMeets(t *testing.T) {
	const times = 2 // the pauses between tries grow with each
	for _, reason := range []forge.CloseReason{
		forge.CloseInternal, forge.CloseNotReady, forge.CloseOverloaded, forge.CloseShutdown, forge.CloseLost,
	} {
		t.Run(reason.String(), func(t *testing.T) {
			y := newYard(t, &runnertest.Machine{})
			var met atomic.Int64
			y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
				if _, is := f.Body.(*forge.Register); !is || met.Add(1) > times {
					return false
				}
				if reason == forge.CloseLost {
					c.Road.Break()
				} else {
					c.Close(reason)
				}
				return true
			}
			y.start(nil)
			job := y.daemon.Offer(y.daemon.Synced(), spec())
			runnertest.Await(y.daemon, "a job is taken after that", of(job))
		})
	}
}

// Case T11: an agent whose heartbeats are not acknowledged does not sit there as if it were online.
func TestHeartbeatsThatAreNotAcknowledgedEndTheConnectionAndNotTheJob(t *testing.T) {
	for name, answer := range map[string]forge.Message{
		"silence": nil, "errors": &forge.Error{Code: forge.ErrorInternal, Retry: forge.RetryBackoff, Text: "no database"},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			y := newYard(t, &runnertest.Machine{Run: func(context.Context, *runnertest.Workload) forge.Result {
				<-release
				return forge.Result{Class: forge.Succeeded}
			}})
			y.daemon.Policy.TTL, y.daemon.Policy.Request = time.Minute, 2*time.Second
			var sick atomic.Pointer[runnertest.Conn]
			y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
				if _, is := f.Body.(*forge.Heartbeat); !is {
					return false
				}
				sick.CompareAndSwap(nil, c)
				if sick.Load() != c {
					return false
				}
				if answer != nil {
					if err := c.Reply(f, answer); err != nil {
						t.Error(err)
					}
				}
				return true
			}
			y.start(nil)
			first := y.daemon.Synced()
			job := y.daemon.Offer(first, spec())
			y.daemon.Synced(first)
			close(release)
			if done := runnertest.Await(y.daemon, "the job is completed", of(job)); done.Result.Class != forge.Succeeded {
				t.Errorf("completed with %+v", done.Result)
			}
		})
	}
}

// Case B30: a result that came too late is refused once, and that is the end of it.
func TestAStaleAnswerToAResultEndsItsRetries(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
		done, is := f.Body.(*forge.Completion)
		if is {
			if err := c.Reply(f, &forge.CompletionAck{Attempt: done.Context.Attempt, Message: done.Message, Answer: forge.CompletionStale}); err != nil {
				t.Error(err)
			}
		}
		return is
	}
	a := y.start(nil)
	c := y.daemon.Synced()
	job := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the result is offered", of(job))
	a.untilIdle()
	y.daemon.Cut()
	y.daemon.Synced(c)
	after := len(y.daemon.Frames())
	y.daemon.Until("the agent has said all that it wanted to", func() bool {
		beats := 0
		for _, f := range y.daemon.Frames()[after:] {
			if _, is := f.Body.(*forge.Heartbeat); is {
				beats++
			}
		}
		return beats == 2
	})
	if n := y.daemon.Count(func(m forge.Message) bool { _, is := m.(*forge.Completion); return is }); n != 1 {
		t.Errorf("the result was sent %d times", n)
	}
	a.Stop()
	a.end(core.ExitStopped)
	y.nothingLeft()
}

// Case T18: an agent that comes back to a lost lease takes the same job again only when nothing of the old attempt is left.
func TestTheSameJobComesBackOnlyAfterTheOldAttemptIsGone(t *testing.T) {
	dead := make(chan struct{})
	var lost forge.AttemptContext
	y := newYard(t, &runnertest.Machine{})
	y.machine.Run = func(ctx context.Context, w *runnertest.Workload) forge.Result {
		if w.Context == lost {
			<-ctx.Done()
			<-dead // it takes its time to die
		}
		return forge.Result{Class: forge.Succeeded}
	}
	known := make(chan struct{})
	y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
		switch m := f.Body.(type) {
		case *forge.Resync:
			if len(m.Attempts) == 0 {
				return false
			}
			reply := &forge.ResyncReply{Nonce: m.Nonce}
			for _, i := range m.Attempts {
				reply.Verdicts = append(reply.Verdicts, forge.LeaseVerdict{Lease: i.Lease, Verdict: forge.VerdictStale})
			}
			if err := c.Reply(f, reply); err != nil {
				t.Error(err)
			}
			close(known)
			return true
		case *forge.LeaseAccept:
			if m.Context.Lease == lost.Lease {
				return false
			}
			if y.machine.Alive() != 0 {
				t.Error("the next attempt was accepted while the old one lived")
			}
			for _, left := range y.left() { // its record goes last, and what is out of the way goes in its own time
				if strings.Contains(left, lost.Attempt.String()) && !strings.HasPrefix(left, "journal/") && !strings.HasPrefix(left, "work/.gone-") {
					t.Errorf("the next attempt was accepted while there was %s", left)
				}
			}
		}
		return false
	}
	y.start(func(c *Config) { c.Slots = 1 })
	c := y.daemon.Synced()
	offered := func(c *runnertest.Conn) forge.AttemptContext { return y.daemon.Offer(c, spec()) }
	lost = offered(c)
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	y.daemon.Cut()
	<-known
	var next *runnertest.Conn
	y.daemon.Until("the agent is back", func() bool {
		for _, o := range y.daemon.Conns() {
			if o != c {
				next = o
			}
		}
		return next != nil
	})
	again := offered(next)
	seen := len(y.daemon.Frames())
	y.daemon.Until("the offer was heard", func() bool { // a heartbeat later it was
		beats := 0
		for _, f := range y.daemon.Frames()[seen:] {
			if _, is := f.Body.(*forge.Heartbeat); is {
				beats++
			}
		}
		return beats == 2
	})
	if n := y.daemon.Count(func(m forge.Message) bool { r, is := m.(*forge.LeaseAccept); return is && r.Context == again }); n != 0 {
		t.Error("it was accepted beside what is left of the old attempt")
	}
	close(dead)
	runnertest.Await(y.daemon, "the next attempt is completed", of(again))
}

// Case T35: an agent that is asked to stop while nobody takes its result waits for the acknowledgement before it ends.
func TestAStoppedAgentEndsOnlyWhenItsResultIsAcknowledged(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	asked := y.losesTheFirstResult()
	a := y.start(nil)
	c := y.daemon.Synced()
	job := y.daemon.Offer(c, spec())
	first := <-asked
	a.Stop()
	y.daemon.Refuse(false)
	y.daemon.Synced(c)
	y.daemon.Until("the result comes again", func() bool {
		return y.daemon.Count(func(m forge.Message) bool { done, is := m.(*forge.Completion); return is && done.Context == job }) == 2
	})
	a.end(core.ExitStopped)
	for _, f := range y.daemon.Frames() {
		if done, is := f.Body.(*forge.Completion); is && (done.Message != first.Message || done.Hash != first.Hash || f.ID != first.Message) {
			t.Errorf("said %v with %v, then %v", first.Message, first.Hash, done)
		}
	}
	y.nothingLeft()
}

// Case T35: where it may not wait, its journal keeps the result, and the next process says what it was.
func TestAResultThatNobodyAcknowledgedIsInTheJournal(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	asked := y.losesTheFirstResult()
	a := y.start(nil)
	job := y.daemon.Offer(y.daemon.Synced(), spec())
	first := <-asked
	a.Force()
	a.end(core.ExitForced)
	y.daemon.Refuse(false)
	y.start(nil)
	got := runnertest.Await[*forge.RecoverAttempts](y.daemon, "the next process reports", nil)
	if len(got.Previous) != 1 || got.Previous[0].Context != job {
		t.Fatalf("reported %+v", got.Previous)
	}
	if p := got.Previous[0]; p.Completion != first.Message || p.Hash != first.Hash {
		t.Errorf("reported %+v, said %v with %v", p, first.Message, first.Hash)
	}
}

// losesTheFirstResult makes the daemon die when it hears a result, until it is told to refuse nobody. The result goes to
// the channel.
func (y *yard) losesTheFirstResult() <-chan *forge.Completion {
	asked := make(chan *forge.Completion, 1)
	var heard atomic.Bool
	y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
		done, is := f.Body.(*forge.Completion)
		if !is || !heard.CompareAndSwap(false, true) {
			return false
		}
		y.daemon.Refuse(true)
		c.Road.Break()
		asked <- done
		return true
	}
	return asked
}

// Case T57: a request that this agent does not know is answered UNSUPPORTED and costs the connection; the agent lives on, and
// so does its job.
func TestAnUnknownRequestIsAnsweredAndCostsNoMoreThanTheConnection(t *testing.T) {
	release := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Run: func(context.Context, *runnertest.Workload) forge.Result {
		<-release
		return forge.Result{Class: forge.Succeeded}
	}})
	y.start(nil)
	c := y.daemon.Synced()
	job := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	request := y.daemon.SayUnknown(c)
	y.daemon.Until("the request is answered", func() bool {
		for _, f := range y.daemon.Frames() {
			if m, is := f.Body.(*forge.Error); is && f.Re == request {
				return m.Code == forge.ErrorUnsupported
			}
		}
		return false
	})
	<-c.Context().Done()
	if end, is := errors.AsType[*transport.CloseError](context.Cause(c.Context())); !is || end.Reason != forge.CloseUnsupported || !end.Remote {
		t.Errorf("the connection ended with %v", context.Cause(c.Context()))
	}
	y.daemon.Synced(c)
	close(release)
	if done := runnertest.Await(y.daemon, "the job is completed", of(job)); done.Result.Class != forge.Succeeded {
		t.Errorf("completed with %+v", done.Result)
	}
}
