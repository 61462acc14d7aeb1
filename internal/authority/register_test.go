package authority

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Register, and what an operator says of a runner.

func TestARegistrationIsHeldAgainstTheRowsThatItChanges(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	want := []Key{
		{Table: TableSession, Lock: Update, ID: a.runner.ULID},
		{Table: TableFolder, Lock: Update, ID: a.runner.ULID, Sub: a.folder.ULID},
		{Table: TableBeat, Lock: Share, ID: a.runner.ULID},
		{Table: TableRunner, Lock: Share, ID: a.runner.ULID},
	}
	if diff := cmp.Diff(want, a.register().Keys(nil)); diff != "" {
		t.Error(diff)
	}
}

func TestTheNewestConnectionOfAProcessSpeaksForItAtOnce(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.must(a.connect(), "connect")
	if got := a.before().beat(c); got.Close != forge.CloseFenced {
		t.Errorf("the older connection is answered %+v", got)
	}
	if v := a.renewed(c); v.Verdict != forge.VerdictContinue {
		t.Errorf("the newer connection is answered %+v", v)
	}
}

func TestALateRegistrationOfAnOlderConnectionIsFenced(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	w.must(a.connect(), "connect")
	w.unchanged(func() {
		for _, old := range []*agent{a, a.before()} {
			if got := w.run(old.register()); got.Close != forge.CloseFenced {
				t.Errorf("connection %d is answered %+v", old.seq, got)
			}
		}
	})
}

func TestAReconnectKeepsTheSessionAndUpdatesWhatTheProcessSaysOfItself(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	want := w.rows.Sessions[a.runner]
	a.seq++
	cmd := a.register()
	cmd.Version, cmd.CapabilityDigest = "0.2", digest.Of([]byte("gpu"))
	w.must(w.run(cmd), "register")
	want.TransportSeq, want.Version, want.CapabilityDigest = a.seq, cmd.Version, cmd.CapabilityDigest
	if diff := cmp.Diff(want, w.rows.Sessions[a.runner]); diff != "" {
		t.Error(diff)
	}
}

func TestTheNextProcessOfAFolderTakesOverAtOnceAndInheritsNoLease(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	next := a.restarted()
	if got := next.connect(); !got.Done || got.Audit != AuditSessionReplaced {
		t.Fatalf("answered %+v", got)
	}
	if v := next.renewed(c); v.Verdict != forge.VerdictStale {
		t.Errorf("the next process is answered %+v for its predecessor's lease", v)
	}
}

func TestAProcessThatWasSupersededOnceStaysSo(t *testing.T) {
	w := newWorld(t)
	first := w.runner(1)
	second := first.restarted()
	third := second.restarted()
	w.must(third.connect(), "connect")
	w.unchanged(func() {
		for _, old := range []*agent{first, second} {
			if got := old.connect(); got.Close != forge.CloseSessionSuperseded || got.Done {
				t.Errorf("start %d is answered %+v", old.start, got)
			}
		}
	})
	if forge.CloseSessionSuperseded.Retry() != forge.RetryStop {
		t.Error("a superseded process comes back")
	}
}

func TestASupersededProcessStaysSoAfterAnotherFolderTookOver(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	w.watchFor(policy.Watch(policy.TTL + policy.Grace))
	other := a.elsewhere()
	w.must(other.connect(), "connect")
	w.watchFor(time.Hour)
	w.unchanged(func() {
		if got := a.connect(); got.Close != forge.CloseSessionSuperseded {
			t.Errorf("answered %+v", got)
		}
	})
	w.must(a.restarted().connect(), "a fresh start on the folder")
}

func TestTwoProcessesOfOneStartAreACopy(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	twin := a.restarted()
	twin.start = a.start
	w.unchanged(func() {
		want := Answer{Close: forge.CloseCloneSuspected, Audit: AuditCloneSuspected}
		if diff := cmp.Diff(want, twin.connect()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnotherFolderNeverSupersedesASessionThatMayLive(t *testing.T) {
	patience := policy.Watch(policy.TTL + policy.Grace)
	refused := Answer{Close: forge.CloseCloneSuspected, Audit: AuditCloneSuspected}
	for _, story := range []struct {
		name string
		tell func(*world, *agent)
	}{
		{"never watched", func(w *world, _ *agent) { w.pass(2 * patience) }},
		{"not for long enough", func(w *world, _ *agent) { w.watchFor(patience - 1) }},
		{"a heartbeat that was seen", func(w *world, a *agent) {
			w.watchFor(patience - 1)
			a.beat()
			w.watchFor(patience - 1)
		}},
		{"a heartbeat that was not seen", func(w *world, a *agent) {
			w.watchFor(patience)
			a.beat()
		}},
		{"a reconnect that was not seen", func(w *world, a *agent) {
			w.watchFor(patience)
			w.must(a.connect(), "connect")
		}},
		{"a restart that was not seen", func(w *world, a *agent) {
			w.watchFor(patience)
			w.must(a.restarted().connect(), "connect")
		}},
		{"a daemon that was restarted", func(w *world, _ *agent) {
			w.watchFor(patience)
			w.restartDaemon()
			w.watchFor(patience - 1)
		}},
	} {
		w := newWorld(t)
		a := w.runner(1)
		story.tell(w, a)
		w.unchanged(func() {
			if diff := cmp.Diff(refused, a.elsewhere().connect()); diff != "" {
				t.Errorf("%s:\n%s", story.name, diff)
			}
		})
	}
}

func TestAnotherFolderReplacesADeadSessionWithAnAuditEvent(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	c := a.hold(w.anyJob())
	w.watchFor(policy.Watch(policy.TTL + policy.Grace))
	other := a.elsewhere()
	if got := other.connect(); !got.Done || got.Audit != AuditFolderReplaced {
		t.Fatalf("answered %+v", got)
	}
	if got := w.run(&Recover{Fence: other.fence(), Item: forge.RecoveredAttempt{Context: c, Killed: true}}); got.Recovery != forge.RecoveryWaits {
		t.Errorf("the newcomer's word on an old lease is answered %+v", got)
	}
}

func TestWhoMayNotSpeakIsToldWhyAndLeavesNoTrace(t *testing.T) {
	for name, story := range map[string]struct {
		want forge.CloseReason
		tell func(*world, *agent)
	}{
		"unknown runner": {forge.CloseAuthFailed, func(w *world, a *agent) { delete(w.rows.Runners, a.runner) }},
		"no session row": {forge.CloseAuthFailed, func(w *world, a *agent) { delete(w.rows.Sessions, a.runner) }},
		"revoked":        {forge.CloseRevoked, func(w *world, a *agent) { w.run(&SetRunner{Runner: a.runner, Revoked: true, Disabled: true}) }},
		"disabled":       {forge.CloseRunnerDisabled, func(w *world, a *agent) { w.run(&SetRunner{Runner: a.runner, Disabled: true}) }},
	} {
		w := newWorld(t)
		a := w.runner(1)
		story.tell(w, a)
		w.unchanged(func() {
			for _, who := range []*agent{a, a.restarted(), a.elsewhere()} {
				if diff := cmp.Diff(Answer{Close: story.want}, who.connect()); diff != "" {
					t.Errorf("%s:\n%s", name, diff)
				}
			}
		})
	}
}

func TestADisabledOrRevokedRunnersWorkIsToldToStop(t *testing.T) {
	for _, set := range []SetRunner{{Disabled: true}, {Revoked: true}} {
		w := newWorld(t)
		a := w.runner(1)
		c := a.hold(w.anyJob())
		set.Runner = a.runner
		w.must(w.run(&set), "set")
		if v := a.renewed(c); v.Cancel != forge.CancelDisabled {
			t.Errorf("%+v: answered %+v", set, v)
		}
		w.must(w.run(&CancelJob{Job: c.Job}), "cancel")
		if v := a.renewed(c); v.Cancel != forge.CancelUser {
			t.Errorf("%+v: a user's cancel is answered %+v", set, v)
		}
	}
}

func TestADrainingRunnerFinishesWhatItHolds(t *testing.T) {
	w, a, c := ready(t, forge.RetryPolicy{})
	w.must(w.run(&SetRunner{Runner: a.runner, Draining: true}), "drain")
	if v := a.renewed(c); v.Verdict != forge.VerdictContinue || v.Cancel != forge.CancelNone {
		t.Errorf("answered %+v", v)
	}
	if got := a.complete(w.completion(c, good)); got.Completion != forge.CompletionAccepted {
		t.Errorf("the completion is answered %+v", got)
	}
}

func TestRevocationIsForEver(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	w.must(w.run(&SetRunner{Runner: a.runner, Revoked: true, Disabled: true, Draining: true}), "revoke")
	w.must(w.run(&SetRunner{Runner: a.runner}), "enable")
	if r := w.rows.Runners[a.runner]; !r.Revoked || r.Disabled || r.Draining || r.Slots != 1 {
		t.Errorf("the runner is %+v", r)
	}
	if w.run(&SetRunner{Runner: forge.RunnerID{ULID: w.id()}}).Done {
		t.Error("a runner came from nowhere")
	}
}

func TestACopyThatTookTheSessionsIDAlongIsSuspected(t *testing.T) {
	w := newWorld(t)
	a := w.runner(1)
	for name, change := range map[string]func(c *Register){
		"another folder": func(c *Register) { c.StateFolder = forge.StateFolderID{ULID: w.id()} },
		"another boot":   func(c *Register) { c.Boot = forge.BootID{ULID: w.id()} },
		"another start":  func(c *Register) { c.StartCounter++ },
	} {
		copied := a.register()
		copied.TransportSeq += 10
		change(copied)
		if got := w.run(copied); got.Close != forge.CloseCloneSuspected || got.Audit != AuditCloneSuspected {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
