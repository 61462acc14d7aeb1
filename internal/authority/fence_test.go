package authority

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// fenced is every message of an agent except Register, as a process would send it about a lease that it holds.
var fenced = []struct {
	name  string
	tuple bool // it acts on the attempt that its whole context names
	cmd   func(*agent, forge.AttemptContext) Command
}{
	{"LeaseAccept", true, func(a *agent, c forge.AttemptContext) Command {
		return &Claim{Fence: a.fence(), Context: c, Phase: forge.AttemptOffered}
	}},
	{"LeaseReject", true, func(a *agent, c forge.AttemptContext) Command {
		return &Reject{Fence: a.fence(), Context: c, Reason: forge.RejectOther}
	}},
	{"Heartbeat", false, func(a *agent, c forge.AttemptContext) Command {
		return &Heartbeat{Fence: a.fence(), Leases: []forge.LeaseID{c.Lease}, Watched: make([]Watched, 1)}
	}},
	{"Resync, named", true, func(a *agent, c forge.AttemptContext) Command {
		return &Claim{Fence: a.fence(), Context: c, Phase: forge.AttemptRunning, EventSeq: 9}
	}},
	{"Resync, not named", true, func(a *agent, c forge.AttemptContext) Command { return &Absent{Fence: a.fence(), Context: c} }},
	{"Resync, empty", false, func(a *agent, _ forge.AttemptContext) Command { return &Touch{Fence: a.fence()} }},
	{"Phase", true, func(a *agent, c forge.AttemptContext) Command {
		return &Phase{Fence: a.fence(), Context: c, Seq: 9, Phase: forge.AttemptRunning}
	}},
	{"LogFinal", false, func(a *agent, c forge.AttemptContext) Command {
		return &SealLog{Fence: a.fence(), Context: c, Seal: sealOf(c, 3)}
	}},
	{"Completion", true, func(a *agent, c forge.AttemptContext) Command {
		return &Complete{Fence: a.fence(), Completion: a.w.completion(c, good)}
	}},
	{"RecoverAttempts", true, func(a *agent, c forge.AttemptContext) Command {
		return &Recover{Fence: a.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}}
	}},
}

func TestAMessageOfAnOlderConnectionGetsNoVerdictOnlyTheClose(t *testing.T) {
	for _, m := range fenced {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		w.must(a.writeLog(c, 1, 3), "append")
		w.must(a.connect(), "connect")
		w.unchanged(func() {
			got := w.run(m.cmd(a.before(), c))
			if diff := cmp.Diff(Answer{Close: forge.CloseFenced}, got); diff != "" {
				t.Errorf("%s:\n%s", m.name, diff)
			}
		})
	}
}

func TestAMessageOfASupersededProcessGetsNoVerdictOnlyTheClose(t *testing.T) {
	for _, m := range fenced {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		w.must(a.writeLog(c, 1, 3), "append")
		w.must(a.restarted().connect(), "connect")
		w.unchanged(func() {
			got := w.run(m.cmd(a, c))
			if diff := cmp.Diff(Answer{Close: forge.CloseSessionSuperseded}, got); diff != "" {
				t.Errorf("%s:\n%s", m.name, diff)
			}
		})
	}
}

func TestBeforeAnybodyHasRegisteredNobodyIsHeard(t *testing.T) {
	for _, m := range fenced {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		stranger := &agent{w: w, runner: forge.RunnerID{ULID: w.id()}}
		w.rows.Sessions[stranger.runner] = Session{Runner: stranger.runner}
		w.unchanged(func() {
			if got := w.run(m.cmd(stranger, c)); got.Close != forge.CloseSessionSuperseded {
				t.Errorf("%s without a session: %+v", m.name, got)
			}
		})
	}
}

// An agent names its own session, so a runner may claim another one's. What binds is the runner that TLS has proved.
func TestARunnerThatKnowsAnothersSessionAndTupleGetsNothingOfIts(t *testing.T) {
	for _, m := range fenced {
		w := newWorld(t)
		a := w.runner(2)
		c := a.hold(w.anyJob())
		a.logged(c)
		thief := w.runner(1)
		thief.session = a.session
		thief.start++
		w.must(thief.connect(), "connect")
		lease, job, log := w.rows.Leases[c.Lease], w.rows.Jobs[c.Job], w.rows.Logs[c.Attempt]
		attempt := w.rows.Attempts[c.Attempt]
		answer := w.run(m.cmd(thief, c))
		if w.rows.Leases[c.Lease] != lease || w.rows.Jobs[c.Job] != job || w.rows.Logs[c.Attempt] != log || w.rows.Attempts[c.Attempt] != attempt {
			t.Errorf("%s of another runner had an effect: %+v", m.name, answer)
		}
		for _, v := range answer.Verdicts {
			if v.Verdict != forge.VerdictStale {
				t.Errorf("%s of another runner is answered %+v", m.name, v)
			}
		}
	}
}

func TestAnOfferOfAnotherRunnersSessionIsNotAccepted(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := w.offer(a, w.anyJob())
	thief := w.runner(1)
	thief.session = a.session
	thief.start++
	w.must(thief.connect(), "connect")
	w.unchanged(func() {
		if got := thief.accept(c); got.Refused != forge.RefusedUnknown || got.Audit != AuditForeignAttempt {
			t.Errorf("answered %+v", got)
		}
		if got := w.run(&Reject{Fence: thief.fence(), Context: c}); got.Done || got.Audit != AuditForeignAttempt {
			t.Errorf("a rejection is answered %+v", got)
		}
	})
}

// changes are the six ways in which one part of an attempt's context is another's.
var changes = []struct {
	name string
	edit func(*world, *forge.AttemptContext)
}{
	{"job", func(w *world, c *forge.AttemptContext) { c.Job.ULID = w.id() }},
	{"attempt", func(w *world, c *forge.AttemptContext) { c.Attempt.ULID = w.id() }},
	{"lease", func(w *world, c *forge.AttemptContext) { c.Lease.ULID = w.id() }},
	{"spec", func(_ *world, c *forge.AttemptContext) { c.Spec = forge.SpecID([]byte("another")) }},
	{"runner", func(w *world, c *forge.AttemptContext) { c.Runner.ULID = w.id() }},
	{"session", func(w *world, c *forge.AttemptContext) { c.Session.ULID = w.id() }},
}

func TestAllSixPartsOfTheContextMustMatch(t *testing.T) {
	for _, m := range fenced {
		if !m.tuple {
			continue
		}
		for _, change := range changes {
			w := newWorld(t)
			a := w.runner(1)
			c := a.hold(w.anyJob())
			a.logged(c)
			change.edit(w, &c)
			w.unchanged(func() {
				if answer := w.run(m.cmd(a, c)); answer.Done || answer.Close != 0 {
					t.Errorf("%s with another %s is answered %+v", m.name, change.name, answer)
				}
			})
		}
	}
}
