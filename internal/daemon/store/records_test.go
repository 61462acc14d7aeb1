package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// yard is a store with a clock that the test moves.
type yard struct {
	*store.Store
	t   *testing.T
	now forge.WallTime
}

func newYard(t *testing.T) *yard {
	y := &yard{t: t, now: 1_000_000}
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{Now: func() forge.WallTime { return y.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	y.Store = s
	return y
}

// try runs a change; later does so a second later and must work.
func (y *yard) try(change func(*store.Tx) error) error {
	return y.Update(y.t.Context(), store.ClassState, change)
}

func (y *yard) later(change func(*store.Tx) error) {
	y.t.Helper()
	y.now += 1000
	if err := y.try(change); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) rule(cmd authority.Command) authority.Answer {
	y.t.Helper()
	y.now += 1000
	answer, err := y.Do(y.t.Context(), store.ClassState, cmd)
	if err != nil || !answer.Done {
		y.t.Fatalf("%T: %+v, %v", cmd, answer, err)
	}
	return answer
}

func (y *yard) see(read func(*store.View) error) {
	y.t.Helper()
	if err := y.View(y.t.Context(), read); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) job(id forge.JobID) (j store.Job) {
	y.t.Helper()
	y.see(func(v *store.View) (err error) { j, err = v.Job(id); return err })
	return j
}

func (y *yard) attempts(id forge.JobID) (a []store.Attempt) {
	y.t.Helper()
	y.see(func(v *store.View) (err error) { a, err = v.Attempts(id); return err })
	return a
}

func (y *yard) run(id forge.RunID) (r store.Run) {
	y.t.Helper()
	y.see(func(v *store.View) (err error) { r, err = v.Run(id); return err })
	return r
}

// submission is a run of a build and a test that needs it.
func submission(key string) store.NewRun {
	n := store.NewRun{ID: ident.New[forge.RunID](), Project: "team/app", Trust: forge.TrustTrusted, Name: "a title — für Menschen", Key: key, Actor: "ada"}
	for i, name := range []forge.JobKey{"build", "test"} {
		spec := []byte("spec of " + name)
		j := store.NewJob{
			ID: ident.New[forge.JobID](), Key: name, Leg: forge.Leg{{Axis: "os", Value: "linux"}}, Draft: forge.SpecID(spec), Bytes: spec,
			Terms: store.Terms{HardTTL: 2 * time.Minute, MaxLifetime: time.Hour, Retry: forge.RetryPolicy{Infra: 2, On: []forge.RetryWord{forge.RetryExit}}},
		}
		if i > 0 {
			j.Needs = []forge.JobNeed{{Job: "build"}}
		}
		n.Jobs = append(n.Jobs, j)
	}
	return n
}

func (y *yard) submit(n store.NewRun) (run store.Run, made bool) {
	y.t.Helper()
	y.later(func(tx *store.Tx) (err error) { run, made, err = tx.CreateRun(n); return err })
	return run, made
}

// runner makes a runner and registers a session of it.
func (y *yard) runner(name string) authority.Fence {
	y.t.Helper()
	f := authority.Fence{Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](), TransportSeq: 1}
	y.later(func(tx *store.Tx) error {
		return tx.CreateRunner(store.NewRunner{ID: f.Runner, Name: name, Pool: "default", Trust: forge.TrustTrusted, Labels: []string{"fast"}, Slots: 2})
	})
	y.rule(&authority.Register{Runner: f.Runner, Session: f.Session, StartCounter: 1, TransportSeq: 1, Version: "1.0"})
	return f
}

func (y *yard) offer(f authority.Fence, job forge.JobID) forge.AttemptContext {
	y.t.Helper()
	return y.rule(&authority.Offer{Fence: f, Job: job, Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID]()}).Context
}

func plan(key forge.JobKey) func(store.Run, []store.Job) store.Settlement {
	return func(_ store.Run, jobs []store.Job) (s store.Settlement) {
		for _, j := range jobs {
			if j.Key == key {
				s.Plan = append(s.Plan, store.Planned{Plan: authority.Plan{Job: j.ID, Spec: j.Draft}})
			}
		}
		return s
	}
}

func (y *yard) settle(run forge.RunID, decide func(store.Run, []store.Job) store.Settlement) {
	y.t.Helper()
	y.later(func(tx *store.Tx) error { return tx.Settle(run, decide) })
}

func TestASubmissionIsStoredWholeAndOnceForAKey(t *testing.T) {
	y := newYard(t)
	n := submission("once")
	run, made := y.submit(n)
	if !made || run.Sequence != 1 || run.State != forge.RunPlanned || run.Created != y.now {
		t.Errorf("submitted: made %v, %+v", made, run)
	}
	if stored := y.run(n.ID); stored != run || stored.Name != n.Name {
		t.Errorf("stored as %+v, made as %+v", stored, run)
	}
	y.see(func(v *store.View) error {
		counts, err := v.JobCounts(n.ID)
		if len(counts) != 1 || counts[forge.JobWaiting] != 2 {
			t.Errorf("counted %v", counts)
		}
		return err
	})
	if again, made := y.submit(submission("once")); made || again.ID != n.ID {
		t.Errorf("submitted again: made %v, %+v", made, again)
	}
	other := submission("once")
	other.Project = "team/other"
	if _, made := y.submit(other); !made {
		t.Error("the key of one project was taken for that of another")
	}
	y.see(func(v *store.View) error {
		jobs, err := v.Jobs(n.ID)
		if err != nil {
			return err
		}
		want := []store.Job{}
		for i, j := range n.Jobs {
			want = append(want, store.Job{
				Job: forge.Job{ID: j.ID, Run: n.ID, Key: j.Key, Leg: j.Leg, Needs: j.Needs, State: forge.JobWaiting},
				Authority: authority.Job{
					ID: j.ID, State: forge.JobWaiting, HardTTL: j.Terms.HardTTL, MaxLifetime: j.Terms.MaxLifetime, Retry: &j.Terms.Retry,
				},
				Project: n.Project, Trust: n.Trust, Sequence: 1, Position: i, Draft: j.Draft, Created: run.Created, Changed: run.Created,
			})
		}
		if d := cmp.Diff(want, jobs, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("jobs (-want +got)\n%s", d)
		}
		projects, err := v.Projects("", 10)
		if len(projects) != 2 || projects[0].Name != "team/app" {
			t.Errorf("projects %+v", projects)
		}
		return err
	})
	bad := submission("")
	bad.Jobs[0].Needs = []forge.JobNeed{{Job: "test"}}
	if err := y.try(func(tx *store.Tx) error { _, _, err := tx.CreateRun(bad); return err }); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a circle of needs: %v", err)
	}
	if err := y.View(t.Context(), func(v *store.View) error { _, err := v.Run(bad.ID); return err }); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the run that was refused: %v", err)
	}
}

func TestRunsAreListedNewestFirstByPageProjectAndState(t *testing.T) {
	y := newYard(t)
	var ids []forge.RunID
	for range 5 {
		run, _ := y.submit(submission(""))
		ids = append(ids, run.ID)
	}
	y.settle(ids[1], func(store.Run, []store.Job) store.Settlement {
		return store.Settlement{Run: []lifecycle.Event{lifecycle.RunStart, lifecycle.RunFail}}
	})
	for _, test := range []struct {
		filter store.RunFilter
		want   []int
		more   bool
	}{
		{store.RunFilter{}, []int{4, 3, 2, 1, 0}, false},
		{store.RunFilter{Limit: 2}, []int{4, 3}, true},
		{store.RunFilter{Limit: 2, Before: 4}, []int{2, 1}, true},
		{store.RunFilter{Limit: 2, Before: 2}, []int{0}, false},
		{store.RunFilter{States: []forge.RunState{forge.RunFailed, forge.RunError}}, []int{1}, false},
		{store.RunFilter{Project: "team/none"}, nil, false},
		{store.RunFilter{Project: "team/app", States: []forge.RunState{forge.RunPlanned}, Limit: 3}, []int{4, 3, 2}, true},
	} {
		y.see(func(v *store.View) error {
			runs, next, err := v.Runs(test.filter)
			var got []int
			for _, r := range runs {
				got = append(got, slices.Index(ids, r.ID))
			}
			if !slices.Equal(got, test.want) || (next != 0) != test.more {
				t.Errorf("%+v: runs %v, next %d", test.filter, got, next)
			}
			return err
		})
	}
	if r := y.run(ids[1]); r.State != forge.RunFailed || r.Started != y.now || r.Ended != y.now {
		t.Errorf("the run that ended: %+v", r)
	}
}

func TestAJobLeavesItsTimesReasonsAndResultBehind(t *testing.T) {
	y := newYard(t)
	n := submission("")
	y.submit(n)
	build := n.Jobs[0].ID
	f := y.runner("one")
	y.settle(n.ID, plan("build"))
	planned := y.now
	first := y.offer(f, build)
	y.rule(&authority.Reject{Fence: f, Context: first, Reason: forge.RejectDiskInsufficient})
	rejected := y.now

	if j := y.job(build); j.State != forge.JobReady || j.Ready != planned || j.Changed != rejected || j.Started != 0 {
		t.Errorf("after a reject: %+v", j)
	}
	y.see(func(v *store.View) error {
		r, err := v.Runner(f.Runner)
		if r.LastReject != forge.RejectDiskInsufficient || r.LastRejectJob != build || r.LastRejectAt != rejected {
			t.Errorf("the runner's last reject: %+v", r)
		}
		ready, err2 := v.Ready(10)
		if len(ready) != 1 || !slices.Equal(ready[0].Refused, []forge.RunnerID{f.Runner}) || ready[0].FreeRetries != 1 || ready[0].Changed != rejected {
			t.Errorf("ready: %+v", ready)
		}
		return errors.Join(err, err2)
	})

	second := y.offer(f, build)
	y.rule(&authority.Claim{Fence: f, Context: second, Phase: forge.AttemptOffered})
	accepted := y.now
	y.rule(&authority.Phase{Fence: f, Context: second, Seq: 3, Phase: forge.AttemptRunning})
	running := y.now
	y.rule(&authority.AppendLog{Runner: f.Runner, Attempt: second.Attempt, First: 1, Count: 2, Bytes: 20, Hash: digest.Of([]byte("log"))})
	seal := forge.LogSeal{Last: 2, Bytes: 20, Hash: digest.Of([]byte("log"))}
	y.rule(&authority.SealLog{Fence: f, Context: second, Seal: seal})
	m := &forge.Completion{
		Context: second, Message: ident.New[forge.MessageID](), Capture: forge.Succeeded, Log: seal,
		Result: forge.Result{
			Class: forge.OutOfMemory, Limit: 1 << 40, Peak: ^uint64(0), Duration: 3 * time.Second,
			Steps: []forge.StepResult{{Index: 1, Class: forge.Signal, Signal: 9, Start: 5, Duration: time.Second}},
		},
	}
	m.Hash = m.ResultHash()
	y.rule(&authority.Complete{Fence: f, Completion: m})

	attempts := y.attempts(build)
	if len(attempts) != 2 {
		t.Fatalf("attempts: %+v", attempts)
	}
	if a := attempts[0]; a.Authority.State != forge.AttemptRefused || a.Reject != forge.RejectDiskInsufficient || a.Ended != rejected || a.Result != nil {
		t.Errorf("the first: %+v", a)
	}
	want := store.Attempt{
		Authority: authority.Attempt{
			ID: second.Attempt, Job: build, Number: 2, State: forge.AttemptFailed, EventSeq: 3, Outcome: forge.OutOfMemory,
			Completion: m.Message, ResultHash: m.Hash,
		},
		Log:     authority.Log{Attempt: second.Attempt, Runner: f.Runner, Next: 3, Bytes: 20, Hash: seal.Hash, Sealed: true, Seal: seal},
		Capture: forge.Succeeded, Result: &m.Result,
		Created: accepted - 1000, Accepted: accepted, Started: running, Ended: y.now,
	}
	if d := cmp.Diff(want, attempts[1], cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Attempt{}, "Lease", "LeaseExpires")); d != "" {
		t.Errorf("the second (-want +got)\n%s", d)
	}
	if l := attempts[1].Lease; l.State != forge.LeaseReleased || l.Context != second || l.Renewals != 1 {
		t.Errorf("its lease: %+v", l)
	}
	if j := y.job(build); j.State != forge.JobFailed || j.Started != accepted || j.Ended != y.now || j.Authority.Outcome != forge.OutOfMemory {
		t.Errorf("the job: %+v", j)
	}
}

func TestARunWantsSettlingOnceAfterEachChangeOfItsJobs(t *testing.T) {
	y := newYard(t)
	n := submission("")
	y.submit(n)
	wants := func() bool {
		t.Helper()
		var list []forge.RunID
		y.see(func(v *store.View) (err error) { list, err = v.Unsettled(10); return err })
		return len(list) == 1 && list[0] == n.ID
	}
	f := y.runner("one")
	if !wants() {
		t.Error("a new run is not listed")
	}
	y.settle(n.ID, plan("build"))
	if wants() {
		t.Error("listed after it was settled")
	}
	c := y.offer(f, n.Jobs[0].ID)
	y.rule(&authority.Claim{Fence: f, Context: c, Phase: forge.AttemptOffered})
	if !wants() {
		t.Error("not listed when a job has become active")
	}
	y.settle(n.ID, func(store.Run, []store.Job) store.Settlement {
		return store.Settlement{Run: []lifecycle.Event{lifecycle.RunStart}}
	})
	if r := y.run(n.ID); r.State != forge.RunRunning || r.Started != y.now {
		t.Errorf("started: %+v", r)
	}
	y.rule(&authority.CancelJob{Job: n.Jobs[0].ID})
	y.settle(n.ID, func(_ store.Run, jobs []store.Job) store.Settlement {
		return store.Settlement{Skip: []store.Skip{{Job: jobs[1].ID, Reason: "build was cancelled"}}}
	})
	if j := y.job(n.Jobs[1].ID); j.State != forge.JobSkipped || j.Reason != "build was cancelled" || j.Ended != y.now {
		t.Errorf("skipped: %+v", j)
	}
	if !wants() {
		t.Error("a skipped job may decide another, and the run is not listed")
	}
}

func TestWhatASettlementMayNotDoChangesNothing(t *testing.T) {
	y := newYard(t)
	n := submission("")
	y.submit(n)
	stranger := submission("")
	y.submit(stranger)
	y.settle(n.ID, plan("build"))
	before := []any{y.run(n.ID), y.job(n.Jobs[0].ID), y.job(n.Jobs[1].ID), y.job(stranger.Jobs[0].ID)}
	for what, s := range map[string]store.Settlement{
		"a job planned twice":     {Plan: []store.Planned{{Plan: authority.Plan{Job: n.Jobs[0].ID, Spec: n.Jobs[0].Draft}}}},
		"a job of another run":    {Plan: []store.Planned{{Plan: authority.Plan{Job: stranger.Jobs[0].ID, Spec: n.Jobs[0].Draft}}}},
		"a ready job skipped":     {Skip: []store.Skip{{Job: n.Jobs[1].ID}, {Job: n.Jobs[0].ID}}},
		"a job excused too early": {Excuse: []forge.JobID{n.Jobs[0].ID}},
		"a run ended twice":       {Run: []lifecycle.Event{lifecycle.RunFail, lifecycle.RunSucceed}},
	} {
		if err := y.Settle(t.Context(), n.ID, func(store.Run, []store.Job) store.Settlement { return s }); err == nil {
			t.Errorf("%s: no error", what)
		}
		after := []any{y.run(n.ID), y.job(n.Jobs[0].ID), y.job(n.Jobs[1].ID), y.job(stranger.Jobs[0].ID)}
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%s changed (-before +after)\n%s", what, d)
		}
	}
}

func TestARunIsCancelledOnceAndNeverAfterItsEnd(t *testing.T) {
	y := newYard(t)
	n := submission("")
	y.submit(n)
	ask := func(actor string) (stands bool) {
		y.later(func(tx *store.Tx) (err error) { stands, err = tx.RequestRunCancel(n.ID, actor); return err })
		return stands
	}
	if !ask("bob") || !ask("eve") {
		t.Error("a request did not stand")
	}
	if r := y.run(n.ID); !r.CancelRequested || r.CancelActor != "bob" {
		t.Errorf("after it: %+v", r)
	}
	y.settle(n.ID, func(store.Run, []store.Job) store.Settlement {
		return store.Settlement{Run: []lifecycle.Event{lifecycle.RunCancel}}
	})
	if ask("late") {
		t.Error("a request stands on a run that has ended")
	}
}

func TestSubscriptionsHearOfCommitsAndStayBounded(t *testing.T) {
	y := newYard(t)
	sub := y.Subscribe()
	n := submission("")
	y.submit(n)
	<-sub.C()
	if c := sub.Take(); c.All || !slices.Contains(c.Runs, n.ID) {
		t.Errorf("after a submission: %+v", c)
	}
	y.settle(n.ID, plan("build"))
	<-sub.C()
	if c := sub.Take(); !slices.Equal(c.Jobs, []forge.JobID{n.Jobs[0].ID}) {
		t.Errorf("after a job became ready: %+v", c)
	}
	f := y.runner("one")
	sub.Take()
	y.rule(&authority.Touch{Fence: f})
	if c := sub.Take(); len(c.Runners)+len(c.Jobs)+len(c.Runs) > 0 || c.All {
		t.Errorf("after a beat: %+v", c)
	}
	if err := y.try(func(tx *store.Tx) error {
		_, _, _ = tx.CreateRun(submission(""))
		return errors.New("rolled back")
	}); err == nil {
		t.Fatal("no error")
	}
	if c := sub.Take(); len(c.Runs) > 0 {
		t.Errorf("after what was rolled back: %+v", c)
	}
	y.later(func(tx *store.Tx) error {
		for range store.MaxChanges + 1 {
			if _, _, err := tx.CreateRun(submission("")); err != nil {
				return err
			}
		}
		return nil
	})
	<-sub.C()
	if c := sub.Take(); !c.All || len(c.Runs) > 0 {
		t.Errorf("after more than is listed: all %v, %d runs", c.All, len(c.Runs))
	}
	sub.Close()
	sub.Close()
	y.submit(submission(""))
	if c := sub.Take(); len(c.Runs) > 0 || c.All {
		t.Errorf("after Close: %+v", c)
	}
}

func TestAViewSeesOneStateAndNeverWrites(t *testing.T) {
	y := newYard(t)
	n := submission("")
	y.see(func(v *store.View) error {
		if _, err := v.Run(n.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("before: %v", err)
		}
		y.submit(n)
		if _, err := v.Run(n.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("committed meanwhile: %v", err)
		}
		return nil
	})
	if r := y.run(n.ID); r.ID != n.ID {
		t.Errorf("after: %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := y.View(ctx, func(v *store.View) error { _, err := v.Run(n.ID); return err }); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if r := y.run(n.ID); r.ID != n.ID {
		t.Errorf("the connection after it: %+v", r)
	}
}

func TestAuditEventsAreListedNewestFirst(t *testing.T) {
	y := newYard(t)
	for _, kind := range strings.Fields("one two three") {
		y.later(func(tx *store.Tx) error {
			return tx.AppendAudit(store.AuditEvent{Kind: kind, Subject: "s", Detail: "d"})
		})
	}
	y.see(func(v *store.View) error {
		page, next, err := v.Audits(0, 2)
		if len(page) != 2 || page[0].Kind != "three" || page[0].At != y.now || next != 2 {
			t.Errorf("first page %+v, next %d", page, next)
		}
		rest, next, err2 := v.Audits(next, 2)
		if len(rest) != 1 || rest[0].Kind != "one" || next != 0 {
			t.Errorf("second page %+v, next %d", rest, next)
		}
		return errors.Join(err, err2)
	})
}
