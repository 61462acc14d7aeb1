package core_test

import (
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// sent takes the first transmitted frame of a kind, and what was transmitted before stays.
func sent[M forge.Message](a *agent) (forge.Frame, M) {
	a.t.Helper()
	for i, f := range a.sent {
		if m, ok := f.Body.(M); ok {
			a.sent = append(a.sent[:i:i], a.sent[i+1:]...)
			return f, m
		}
	}
	var m M
	a.t.Fatalf("no %T was transmitted, but %v", m, kinds(a.sent))
	return forge.Frame{}, m
}

func hasSent[M forge.Message](a *agent) bool {
	for _, f := range a.sent {
		if _, ok := f.Body.(M); ok {
			return true
		}
	}
	return false
}

// effect takes the first effect of a kind.
func effect[E core.Effect](a *agent) E {
	a.t.Helper()
	for i, e := range a.effects {
		if e, ok := e.(E); ok {
			a.effects = append(a.effects[:i:i], a.effects[i+1:]...)
			return e
		}
	}
	var e E
	a.t.Fatalf("no %T was asked for, but %+v", e, a.effects)
	return e
}

func has[E core.Effect](a *agent) bool {
	for _, e := range a.effects {
		if _, ok := e.(E); ok {
			return true
		}
	}
	return false
}

// no fails the story where the core asked for something that it must not.
func no[E core.Effect](a *agent, why string) {
	a.t.Helper()
	if has[E](a) {
		var e E
		a.t.Fatalf("%T was asked for %s", e, why)
	}
}

func notSent[M forge.Message](a *agent, why string) {
	a.t.Helper()
	if hasSent[M](a) {
		var m M
		a.t.Fatalf("%T was transmitted %s", m, why)
	}
}

// forget clears what was collected so far.
func (a *agent) forget() { a.sent, a.effects = nil, nil }

// kinds spells transmitted frames.
func kinds(frames []forge.Frame) []string {
	var all []string
	for _, f := range frames {
		all = append(all, fmt.Sprintf("%T", f.Body))
	}
	return all
}

// held returns what the agent holds of a lease.
func (a *agent) held(c forge.AttemptContext) (core.Held, bool) {
	for _, h := range a.core.Held() {
		if h.Context == c {
			return h, true
		}
	}
	return core.Held{}, false
}

// is fails the story unless the attempt is held in this state.
func (a *agent) is(c forge.AttemptContext, state forge.AttemptState) core.Held {
	a.t.Helper()
	h, ok := a.held(c)
	if !ok {
		a.t.Fatalf("the attempt is not held, but should be %v", state)
	}
	if h.State != state {
		a.t.Fatalf("the attempt is %v, should be %v", h.State, state)
	}
	return h
}

func (a *agent) gone(c forge.AttemptContext) {
	a.t.Helper()
	if h, ok := a.held(c); ok {
		a.t.Fatalf("the attempt is still held, %v", h.State)
	}
}

// The stages of an attempt, each from the one before.

// accepted returns job n granted; its record is not durable yet.
func (a *agent) accepted(n byte) forge.AttemptContext {
	a.t.Helper()
	c := a.offer(n)
	a.grant(c)
	a.is(c, forge.AttemptAccepted)
	return c
}

func (a *agent) preparing(n byte) forge.AttemptContext {
	a.t.Helper()
	c := a.accepted(n)
	a.journal()
	effect[core.Prepare](a)
	a.is(c, forge.AttemptPreparing)
	return c
}

func (a *agent) running(n byte) forge.AttemptContext {
	a.t.Helper()
	c := a.preparing(n)
	a.step(core.Prepared{Attempt: c.Attempt})
	effect[core.Start](a)
	a.step(core.WorkloadStarted{Attempt: c.Attempt})
	a.is(c, forge.AttemptRunning)
	return c
}

// ends says that the workload is no more.
func (a *agent) ends(c forge.AttemptContext, e core.WorkloadEnded) {
	a.t.Helper()
	e.Attempt = c.Attempt
	if e.Result.Class == 0 {
		e.Result.Class = forge.Succeeded
	}
	a.step(e)
}

func (a *agent) uploading(n byte) forge.AttemptContext {
	a.t.Helper()
	c := a.running(n)
	a.ends(c, core.WorkloadEnded{})
	a.is(c, forge.AttemptUploading)
	return c
}

// seal is how each log here ends: ten frames.
func seal() forge.LogSeal {
	return forge.LogSeal{Last: 10, Bytes: 100, Hash: digest.RefOf([]byte("log")).Digest}
}

func delivered(c forge.AttemptContext) core.Delivered {
	return core.Delivered{
		Attempt: c.Attempt, Capture: forge.Succeeded, Log: seal(),
		Outputs: []forge.OutputRef{{Output: 0, Ref: digest.RefOf([]byte("output"))}},
	}
}

// completing returns job n with its whole completion durable, and no frame of its log acknowledged.
func (a *agent) completing(n byte) forge.AttemptContext {
	a.t.Helper()
	c := a.uploading(n)
	a.complete(c)
	return c
}

// complete takes an attempt that is uploading to where its completion is durable.
func (a *agent) complete(c forge.AttemptContext) {
	a.t.Helper()
	a.journal()
	effect[core.Deliver](a)
	a.step(delivered(c))
	a.journal()
	a.is(c, forge.AttemptCompleting)
}

// ackLog acknowledges the whole log.
func (a *agent) ackLog(c forge.AttemptContext) {
	a.t.Helper()
	a.receive(&forge.LogAck{Attempt: c.Attempt, Next: seal().Last + 1})
}

// sealed answers the LogFinal.
func (a *agent) sealed(c forge.AttemptContext) {
	a.t.Helper()
	f, _ := sent[*forge.LogFinal](a)
	a.answer(f.ID, &forge.LogFinalAck{Attempt: c.Attempt})
}

// asking returns job n with its completion on its way.
func (a *agent) asking(n byte) forge.AttemptContext {
	a.t.Helper()
	c := a.completing(n)
	a.ackLog(c)
	a.sealed(c)
	return c
}

// ack answers the completion.
func (a *agent) ack(answer forge.CompletionAnswer) *forge.Completion {
	a.t.Helper()
	f, m := sent[*forge.Completion](a)
	a.answer(f.ID, &forge.CompletionAck{Attempt: m.Context.Attempt, Message: m.Message, Answer: answer})
	return m
}

// left is what remains of a lease's time on the agent's clock.
func (a *agent) left(c forge.AttemptContext) time.Duration {
	a.t.Helper()
	h, ok := a.held(c)
	if !ok {
		a.t.Fatal("the lease is not held")
	}
	return h.Deadline.Sub(a.now)
}

func stale(c forge.AttemptContext) forge.LeaseVerdict {
	return forge.LeaseVerdict{Lease: c.Lease, Verdict: forge.VerdictStale}
}
