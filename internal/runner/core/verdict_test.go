package core_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// stages are the states of an attempt on an agent, each with a way to get there.
var stages = []struct {
	state forge.AttemptState
	reach func(a *agent, n byte) forge.AttemptContext
}{
	{forge.AttemptOffered, (*agent).offer},
	{forge.AttemptAccepted, (*agent).accepted},
	{forge.AttemptPreparing, (*agent).preparing},
	{forge.AttemptRunning, (*agent).running},
	{forge.AttemptUploading, (*agent).uploading},
	{forge.AttemptCompleting, (*agent).completing},
}

// What each verdict does to an attempt in each state.
func TestVerdictsOfAResync(t *testing.T) {
	const (
		goesOn   = "goes on"
		dropped  = "dropped, nobody told"
		rejected = "dropped, given back"
		cleaned  = "cleaned up, nobody told"
		killed   = "killed, nobody told"
		stopped  = "stopped"
		waits    = "ended where it would start"
	)
	verdicts := []forge.Verdict{forge.VerdictContinue, forge.VerdictCancel, forge.VerdictStale}
	want := map[forge.AttemptState][3]string{
		forge.AttemptOffered:    {goesOn, rejected, dropped},
		forge.AttemptAccepted:   {goesOn, waits, cleaned},
		forge.AttemptPreparing:  {goesOn, stopped, killed},
		forge.AttemptRunning:    {goesOn, stopped, killed},
		forge.AttemptUploading:  {goesOn, goesOn, goesOn},
		forge.AttemptCompleting: {goesOn, goesOn, goesOn},
	}
	for _, stage := range stages {
		for i, verdict := range verdicts {
			expected := want[stage.state][i]
			t.Run(stage.state.String()+" "+[]string{"continue", "cancel", "stale"}[i], func(t *testing.T) {
				a := online(t)
				c := stage.reach(a, 1)
				var record core.WriteRecord
				if stage.state == forge.AttemptAccepted {
					record = effect[core.WriteRecord](a)
				}
				a.effects = nil
				v := forge.LeaseVerdict{Lease: c.Lease, Verdict: verdict, HardTTL: a.ttl}
				if verdict == forge.VerdictCancel {
					v.HardTTL, v.Cancel = 0, forge.CancelMaxLifetime
				}
				a.reconnect(v)
				if stage.state == forge.AttemptAccepted {
					a.step(core.Journaled{Attempt: c.Attempt, Version: record.Record.Version})
				}
				if got := a.became(c); got != expected {
					t.Fatalf("it %s, should be %s", got, expected)
				}
			})
		}
	}
}

// became says what has become of an attempt since the effects were cleared.
func (a *agent) became(c forge.AttemptContext) string {
	h, held := a.held(c)
	told := hasSent[*forge.Completion](a) || hasSent[*forge.LogFinal](a)
	switch {
	case !held && hasSent[*forge.LeaseReject](a):
		return "dropped, given back"
	case !held:
		return "dropped, nobody told"
	case has[core.Kill](a) && h.Stale && !told:
		return "killed, nobody told"
	case has[core.CleanUp](a) && h.Stale && !told:
		return "cleaned up, nobody told"
	case has[core.Stop](a):
		return "stopped"
	case h.Frozen != nil && has[core.WriteRecord](a):
		return "ended where it would start"
	case has[core.Kill](a) || has[core.CleanUp](a) || h.Stale:
		return "unexpected"
	}
	return "goes on"
}

func TestAnAttemptThatWasStaleIsCleanedUpAndNeverReported(t *testing.T) {
	for _, stage := range stages[2:4] {
		t.Run(stage.state.String(), func(t *testing.T) {
			a := online(t)
			c := stage.reach(a, 1)
			a.reconnect(stale(c))
			if k := effect[core.Kill](a); k.Bite {
				t.Fatal("it is killed for its deadline")
			}
			a.sent = nil
			a.step(core.Prepared{Attempt: c.Attempt})
			no[core.Start](a, "for a stale lease")
			a.ends(c, core.WorkloadEnded{})
			effect[core.CleanUp](a)
			a.step(core.CleanedUp{Attempt: c.Attempt})
			if d := effect[core.DropRecord](a); d.Attempt != c.Attempt {
				t.Fatalf("dropped the record of %v", d.Attempt)
			}
			a.gone(c)
			notSent[*forge.Completion](a, "for a stale lease")
			notSent[*forge.PhaseChange](a, "for a stale lease")
		})
	}
}

func TestARunningAttemptGoesOnAcrossAReconnect(t *testing.T) {
	a := online(t)
	c := a.running(1)
	before := a.is(c, forge.AttemptRunning).Deadline
	a.effects = nil
	m := a.reconnect()
	want := forge.ResyncItem{
		Job: c.Job, Attempt: c.Attempt, Lease: c.Lease, Spec: c.Spec, Phase: forge.AttemptRunning, EventSeq: 2, LogNext: 1,
	}
	if len(m.Attempts) != 1 || m.Attempts[0] != want {
		t.Fatalf("%+v", m.Attempts)
	}
	if after := a.is(c, forge.AttemptRunning).Deadline; after <= before {
		t.Fatal("the resync renewed nothing")
	}
	no[core.Kill](a, "for a lost connection")
	no[core.Stop](a, "for a lost connection")
	no[core.Start](a, "twice")
	if s := effect[core.StreamLog](a); s.Attempt != c.Attempt || s.From != 1 || s.Seq != a.seq {
		t.Fatalf("%+v", s)
	}
	a.ends(c, core.WorkloadEnded{})
	a.complete(c)
	a.ackLog(c)
	a.sealed(c)
	if m := a.ack(forge.CompletionAccepted); m.Context != c {
		t.Fatalf("%+v", m.Context)
	}
}

func TestAResyncNamesEverythingOfWhichAnythingIsLeft(t *testing.T) {
	cfg := config()
	cfg.Slots = 16
	a := newAgentWith(t, cfg)
	a.begin()
	a.connect()
	a.register()
	a.resync()
	var all []forge.AttemptContext
	for i, stage := range stages {
		all = append(all, stage.reach(a, byte(1+i)))
		a.forget()
	}
	acked := a.asking(20)
	a.ack(forge.CompletionAccepted) // but not cleaned up
	dying := a.running(21)
	all = append(all, acked, dying)
	a.reconnect(stale(dying)) // killed, but not dead yet
	m := a.reconnect(stale(dying))
	if len(m.Attempts) != len(all) {
		t.Fatalf("%d leases are named, should be %d", len(m.Attempts), len(all))
	}
	for i, c := range all {
		if m.Attempts[i].Lease != c.Lease {
			t.Errorf("lease %d is another", i)
		}
	}
	a.step(core.CleanedUp{Attempt: acked.Attempt})
	if m := a.reconnect(); len(m.Attempts) != len(all)-1 {
		t.Fatalf("%d leases are named after one was cleaned up", len(m.Attempts))
	}
}

func TestAResyncSaysWhatIsTrueWhenItIsWritten(t *testing.T) {
	a := online(t)
	c := a.preparing(1)
	a.lose(forge.CloseLost)
	a.connect()
	a.blocked = true
	a.register()
	a.step(core.Prepared{Attempt: c.Attempt})
	a.step(core.WorkloadStarted{Attempt: c.Attempt})
	a.unblock()
	first := a.resync()
	if got := first.Attempts[0]; got.Phase != forge.AttemptRunning || got.EventSeq != 2 {
		t.Fatalf("the resync says %v, %d", got.Phase, got.EventSeq)
	}
	a.ends(c, core.WorkloadEnded{})
	again := a.reconnect()
	if got := again.Attempts[0]; got.Phase != forge.AttemptUploading || got.EventSeq != 3 {
		t.Fatalf("the next resync says %v, %d", got.Phase, got.EventSeq)
	}
	if first.Nonce == again.Nonce {
		t.Fatal("two transmissions share a nonce")
	}
}

func TestAnAcceptanceWhoseAnswerNeverCameIsRepeatedByTheResync(t *testing.T) {
	a := online(t)
	c := a.offer(1)
	if m := a.reconnect(); m.Attempts[0].Phase != forge.AttemptOffered {
		t.Fatalf("%+v", m.Attempts)
	}
	a.is(c, forge.AttemptAccepted)
	notSent[*forge.LeaseAccept](a, "for what the resync had accepted")
	a.journal()
	effect[core.Prepare](a)
}
