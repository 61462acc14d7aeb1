package agents_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// lose makes the daemon expire an attempt whose agent is still there.
func (w *world) lose(c forge.AttemptContext) {
	w.t.Helper()
	policy := forge.DefaultLeasePolicy()
	late := time.After(patience)
	leap := time.NewTicker(2 * clock.MaxNap) // the watch begins anew with what it reads next, and nothing wakes the loop before
	defer leap.Stop()
	for w.attempt(c.Attempt).Authority.State != forge.AttemptLost {
		select {
		case <-leap.C:
			w.server.Advance(forge.Instant(2 * (policy.TTL + policy.Grace)))
		case <-time.After(10 * time.Millisecond):
		case <-late:
			w.t.Fatalf("the attempt is %v", w.attempt(c.Attempt).Authority.State)
		}
	}
}

// says delivers a short log and a result, and returns the answer.
func (p *process) says(c forge.AttemptContext) forge.CompletionAnswer {
	p.w.t.Helper()
	log := p.openLog(c, 1)
	p.w.must(log.write("done\n"))
	p.w.must(log.s.Close())
	p.acked(c.Attempt, 2)
	return p.finish(c, []byte("done\n"), 1)
}

// beat sends a heartbeat for one lease and returns the verdict.
func (p *process) beat(c forge.AttemptContext) forge.Verdict {
	p.w.t.Helper()
	p.nonce++
	p.say(&forge.Heartbeat{
		Runner: p.runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline,
		Attempts: []forge.HeartbeatItem{{Attempt: c.Attempt, Lease: c.Lease, Phase: forge.AttemptRunning}},
	})
	for {
		if ack := hear[*forge.HeartbeatAck](p); ack.Nonce == p.nonce && len(ack.Verdicts) == 1 {
			return ack.Verdicts[0].Verdict
		}
	}
}

// Cases T54, B30: once an attempt was given away, its agent can neither give it back, renew it nor finish it, and whoever has
// the job now notices nothing.
func TestAStaleAgentChangesNothingOfWhatWasGivenAway(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		job := w.job()
		stale, heir := w.process(w.runner(1)), w.process(w.runner(1))
		stale.connect()
		w.place(job, stale.runner)
		old := stale.take()
		w.lose(old)
		heir.connect()
		w.place(job, heir.runner)
		now := heir.take()

		stale.say(&forge.LeaseReject{Context: old, Reason: forge.RejectDraining})
		if verdict := stale.beat(old); verdict != forge.VerdictStale { // requests are handled in order
			t.Errorf("the lease that is over was answered with %v", verdict)
		}
		foreign := now
		foreign.Runner, foreign.Session = stale.runner, stale.session
		stale.say(&forge.LeaseReject{Context: foreign, Reason: forge.RejectDraining})
		if verdict := stale.beat(now); verdict != forge.VerdictStale {
			t.Errorf("the lease of another was answered with %v", verdict)
		}
		if answer := stale.says(old); answer != forge.CompletionStale {
			t.Errorf("the result that came too late was answered with %v", answer)
		}
		if state := w.attempt(old.Attempt).Authority.State; state != forge.AttemptLost {
			t.Errorf("the lost attempt is %v", state)
		}
		if state := w.attempt(now.Attempt).Authority.State; state != forge.AttemptAccepted {
			t.Errorf("the next attempt is %v", state)
		}
		if answer := heir.says(now); answer != forge.CompletionAccepted {
			t.Errorf("its result was answered with %v", answer)
		}
	})
}

// Case B28: whatever is decided about a runner between an offer and its answer, the offer is taken or refused with a reason,
// and no job vanishes.
func TestADrainAndAResumeBetweenOfferAndAnswerLoseNoJob(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner := w.runner(1)
	p := w.process(runner)
	p.connect()
	set := func(draining bool) {
		_, err := w.store.Do(w.ctx, store.ClassState, &authority.SetRunner{Runner: runner, Draining: draining})
		w.must(err)
	}
	for round := range 30 {
		job := w.job()
		w.place(job, runner)
		offer := hear[*forge.LeaseOffer](p)
		set(true)
		if round%3 == 0 { // it has heard of the drain and not of the resume
			p.say(&forge.LeaseReject{Context: offer.Context, Reason: forge.RejectDraining})
			p.beat(offer.Context)
			if state := w.attempt(offer.Context.Attempt).Authority.State; state != forge.AttemptRefused {
				t.Fatalf("round %d: the attempt that was refused is %v", round, state)
			}
			set(false)
			w.place(job, runner)
			offer = hear[*forge.LeaseOffer](p)
		}
		if round%3 == 1 {
			set(false)
		}
		p.nonce++
		p.say(&forge.LeaseAccept{Context: offer.Context, Nonce: p.nonce})
		if ack := hear[*forge.LeaseAcceptAck](p); !ack.Granted {
			t.Fatalf("round %d: refused with %v", round, ack.Refused)
		}
		set(false)
		if answer := p.says(offer.Context); answer != forge.CompletionAccepted {
			t.Fatalf("round %d: the result was answered with %v", round, answer)
		}
	}
}
