package control

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

var good = forge.Result{Class: forge.Succeeded}

func TestAReadyJobIsPlacedWithoutWaitingForAnyTick(t *testing.T) {
	w, a := newWorldAndAgent(t)
	w.run()
	run := w.submit("build=Waiting test[build]=Waiting")
	a.work(good)
	a.work(good)
	w.ended(run, forge.RunSucceeded)
	changed, nudged, ticked := w.Rounds()
	t.Logf("rounds: %d by changes, %d by nudges, %d by time", changed, nudged, ticked)
	if changed == 0 {
		t.Error("no round was woken by a change of the store")
	}
	// The loop with its ticks taken away does the same: nothing above needed one.
	w2 := newWorld(t)
	a2 := w2.agent("a", 1)
	a2.connect()
	changes := w2.store.Subscribe()
	defer changes.Close()
	run2 := w2.submit("build=Waiting test[build]=Waiting")
	for w2.runState(run2.ID) != forge.RunSucceeded {
		<-changes.C()
		if matters(changes.Take()) {
			w2.round(w2.ctx)
		}
		select {
		case p := <-w2.places:
			c := w2.offer(a2, p)
			a2.accept(c)
			a2.complete(c, good)
		default:
		}
	}
}

func TestPhasesOfAnAttemptAreNoWork(t *testing.T) {
	w, a := newWorldAndAgent(t)
	w.submit("a=Waiting")
	w.round(w.ctx)
	w.round(w.ctx)
	c := w.taken(a)
	changes := w.store.Subscribe()
	defer changes.Close()
	w.do(&authority.Phase{Fence: a.fence, Context: c, Seq: 1, Phase: forge.AttemptRunning})
	<-changes.C()
	if what := changes.Take(); matters(what) || !slices.Contains(what.Jobs, c.Job) {
		t.Errorf("%+v", what)
	}
}

// A job that is skipped may let another be decided, in a round that nothing else would wake.
func TestSkippedJobsAreWork(t *testing.T) {
	w, a := newWorldAndAgent(t)
	run := w.submit("a=Waiting b[a]=Waiting")
	w.round(w.ctx)
	w.round(w.ctx)
	a.work(forge.Result{Class: forge.ExitCode, ExitCode: 1})
	changes := w.store.Subscribe()
	defer changes.Close()
	w.must(w.settleOne(w.ctx, run.ID))
	<-changes.C()
	if !matters(changes.Take()) || w.jobs(run.ID)["b"].State != forge.JobSkipped {
		t.Error("no round follows a job that is skipped")
	}
}

// Case T12.
func TestWhatIsReadyInTheStoreIsPlacedWhoeverMadeItSo(t *testing.T) {
	w := newWorld(t)
	w.submit("a=Waiting")
	// The process dies here. Another one knows nothing but the store.
	again := &world{t: t, ctx: w.ctx, store: w.store, places: make(chan Placement, 8)}
	again.Control = New(Config{Store: w.store, Place: func(p Placement) { again.places <- p }, Policy: policy})
	a := again.agent("a", 1)
	again.run()
	a.connect()
	again.offered(a)
}

// Case T12: a wish that came to nothing is wished again.
func TestAPlacementThatIsForgottenIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.still()
	w.agent("a", 1).connect()
	w.submit("a=Waiting")
	w.round(w.ctx)
	first := <-w.places
	w.round(w.ctx)
	if len(w.places) > 0 {
		t.Fatal("it was wished again at once")
	}
	w.now = w.now.Add(wishStands)
	w.round(w.ctx)
	second := <-w.places
	if second.Job != first.Job || second.Attempt == first.Attempt || second.Lease == first.Lease {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestAWishOnItsWayTakesItsRoom(t *testing.T) {
	w := newWorld(t)
	w.still()
	w.agent("a", 1).connect()
	w.submit("a=Waiting b=Waiting")
	w.round(w.ctx)
	w.round(w.ctx)
	if n := len(w.places); n != 1 {
		t.Errorf("%d jobs were placed on one slot", n)
	}
}

func TestNoMoreJobsArePlacedThanTheAdministratorGaveSlots(t *testing.T) {
	w := newWorld(t)
	w.agent("a", 3).connect()
	w.submit("a=Waiting b=Waiting c=Waiting d=Waiting e=Waiting")
	w.round(w.ctx)
	if n := len(w.places); n != 3 {
		t.Errorf("%d jobs were placed", n)
	}
}

func TestNothingIsPlacedOnARunnerThatMayNotTakeIt(t *testing.T) {
	w := newWorld(t)
	a := w.agent("a", 4)
	w.submit("a=Waiting")
	quiet := func(why string) {
		t.Helper()
		w.round(w.ctx)
		if len(w.places) > 0 {
			t.Fatalf("a job was placed on a runner that %s", why)
		}
	}
	quiet("is not connected")
	a.connect()
	for _, verbs := range [][2]Verb{{Drain, Resume}, {Disable, Enable}} {
		_, err := w.SetRunner(w.ctx, a.id, verbs[0], "tester")
		w.must(err)
		quiet("was told to " + string(verbs[0]))
		_, err = w.SetRunner(w.ctx, a.id, verbs[1], "tester")
		w.must(err)
	}
	w.Heartbeat(a.id, forge.AgentDraining, forge.ResourceSummary{})
	quiet("drains by itself")
	w.Heartbeat(a.id, forge.AgentOnline, forge.ResourceSummary{Pressure: forge.PressureDisk})
	quiet("is short of disk")
	w.Heartbeat(a.id, forge.AgentOnline, forge.ResourceSummary{Pressure: forge.PressureNormal})
	w.Health(a.id, forge.Health{Status: forge.Unhealthy})
	quiet("is not healthy")
	w.Health(a.id, forge.Health{Status: forge.Healthy})
	w.Disconnected(a.id)
	quiet("went away")
	a.connect()
	w.round(w.ctx)
	if len(w.places) != 1 {
		t.Error("and then it is not placed at all")
	}
}

// Case T16: the machine of a runner may be gone long before its connection is.
func TestNothingIsPlacedOnARunnerThatWentSilentUntilItIsHeardAgain(t *testing.T) {
	w := newWorld(t)
	w.still()
	a := w.agent("a", 1)
	a.connect()
	w.now = w.now.Add(w.silence() + 1)
	w.submit("a=Waiting")
	w.round(w.ctx)
	if len(w.places) > 0 {
		t.Fatal("a job was placed on a runner that missed three heartbeats")
	}
	if !w.Presence(a.id).Connected {
		t.Error("it counts as gone although its connection stands")
	}
	w.Heartbeat(a.id, forge.AgentOnline, forge.ResourceSummary{})
	w.round(w.ctx)
	if len(w.places) != 1 {
		t.Error("a runner that is heard again gets nothing")
	}
}

func TestAFailedJobSkipsWhatNeedsItAndFailsTheRun(t *testing.T) {
	w := newWorld(t)
	a := w.agent("a", 2)
	a.connect()
	w.run()
	run := w.submit("a=Waiting b[a]=Waiting c[b]=Waiting")
	a.work(forge.Result{Class: forge.ExitCode, ExitCode: 3, Steps: []forge.StepResult{{Class: forge.ExitCode, ExitCode: 3}}})
	w.ended(run, forge.RunFailed)
	jobs := w.jobs(run.ID)
	if jobs["b"].State != forge.JobSkipped || jobs["c"].State != forge.JobSkipped || jobs["b"].Reason != "a, which it needs, failed" {
		t.Errorf("b: %v %q, c: %v", jobs["b"].State, jobs["b"].Reason, jobs["c"].State)
	}
	why, err := w.Explain(w.ctx, jobs["a"].ID)
	w.must(err)
	if why.Summary != "attempt 1 of 1: it ended with exit code 3, in step 1" {
		t.Errorf("why: %s", why.Summary)
	}
}

// Case B08.
func TestCancellingARunEndsEveryJobOfIt(t *testing.T) {
	w, a := newWorldAndAgent(t)
	run := w.submit("a=Waiting b=Waiting c[a]=Waiting")
	w.round(w.ctx)
	c := w.taken(a)
	for range 2 { // asking twice is asking once
		_, err := w.CancelRun(w.ctx, run.ID, "tester")
		w.must(err)
	}
	jobs := w.jobs(run.ID)
	if jobs["a"].State != forge.JobActive || !jobs["a"].Authority.CancelRequested {
		t.Errorf("a is %+v", jobs["a"].Authority)
	}
	if jobs["b"].State != forge.JobCancelled || jobs["c"].State != forge.JobCancelled {
		t.Errorf("b is %v, c is %v", jobs["b"].State, jobs["c"].State)
	}
	a.complete(c, forge.Result{Class: forge.Cancelled})
	w.round(w.ctx)
	if s := w.runState(run.ID); s != forge.RunCancelled {
		t.Errorf("the run is %v", s)
	}
	var acts []string
	w.view(func(v *store.View) error {
		events, _, err := v.Audits(0, 100)
		for _, e := range events {
			acts = append(acts, e.Kind)
		}
		return err
	})
	if !slices.Equal(acts, []string{"run.cancel"}) {
		t.Errorf("audit: %v", acts)
	}
}

// Case B09.
func TestACancelledJobEndsWithItsLeaseWhenItsAgentIsGone(t *testing.T) {
	w, a := newWorldAndAgent(t)
	run := w.submit("a=Waiting")
	w.round(w.ctx)
	c := w.taken(a)
	_, err := w.CancelJob(w.ctx, c.Job, "tester")
	w.must(err)
	w.Disconnected(a.id)
	why, err := w.Explain(w.ctx, c.Job)
	w.must(err)
	if !strings.Contains(why.Summary, "asked to stop; it is not connected, and if it does not come back the attempt is lost at most 2m2s") {
		t.Errorf("why: %q %q", why.Summary, why.Details)
	}
	w.do(&authority.Expire{Context: c, State: forge.LeaseAccepted, Renewals: 1})
	w.round(w.ctx)
	if s := w.runState(run.ID); s != forge.RunCancelled {
		t.Errorf("the run is %v", s)
	}
}

// Case T55.
func TestAJobThatLostItsRunnerIsPlacedAgain(t *testing.T) {
	w, a := newWorldAndAgent(t)
	run := w.submit("a=Waiting")
	w.round(w.ctx)
	c := w.taken(a)
	w.do(&authority.Phase{Fence: a.fence, Context: c, Seq: 1, Phase: forge.AttemptRunning})
	w.do(&authority.Expire{Context: c, State: forge.LeaseAccepted, Renewals: 1})
	w.round(w.ctx)
	a.work(good)
	w.round(w.ctx)
	if s := w.runState(run.ID); s != forge.RunSucceeded {
		t.Errorf("the run is %v", s)
	}
	why, err := w.Explain(w.ctx, c.Job)
	w.must(err)
	want := []string{
		"attempt 1: it was lost: its runner crashed, or was not heard of in time", "attempt 2: it ended well",
	}
	if !slices.Equal(why.Details, want) {
		t.Errorf("why: %q", why.Details)
	}
}

// TestAJobThatIsRefusedByAnOwnersPolicySaysWhatToChange: an agent whose owner allows no plain process refuses every job
// that has no sandbox, and whoever waits for it must hear which setting that is.
func TestAJobThatIsRefusedByAnOwnersPolicySaysWhatToChange(t *testing.T) {
	w, a := newWorldAndAgent(t)
	run := w.submit("a=Waiting")
	w.round(w.ctx)
	c := w.offered(a)
	w.do(&authority.Reject{Fence: a.fence, Context: c, Reason: forge.RejectLocalPolicy})
	w.round(w.ctx)
	job, err := w.Explain(w.ctx, c.Job)
	w.must(err)
	runner, err := w.ExplainRunner(w.ctx, a.id)
	w.must(err)
	for who, text := range map[string]string{"the job": job.Summary, "the runner": strings.Join(runner.Details, " ")} {
		if !strings.Contains(text, "owner's policy") || !strings.Contains(text, "allow_unconfined: true") {
			t.Errorf("%s says %q", who, text)
		}
	}
	_, err = w.CancelRun(w.ctx, run.ID, "tester")
	w.must(err)
	if job, err = w.Explain(w.ctx, c.Job); err != nil || len(job.Details) != 0 {
		t.Errorf("its only attempt is told twice: %q %q, %v", job.Summary, job.Details, err)
	}
}

func TestOffersThatComeToNothingPauseAfterFive(t *testing.T) {
	w := newWorld(t)
	w.still()
	a := w.agent("a", 1)
	a.connect()
	w.submit("a=Waiting")
	for i := range freeOffers {
		w.round(w.ctx)
		c := w.offered(a)
		w.do(&authority.Expire{Context: c, State: forge.LeaseOffered})
		if i == 0 && len(w.places) > 0 {
			t.Fatal("placed twice")
		}
	}
	w.round(w.ctx)
	if len(w.places) > 0 {
		t.Fatal("the sixth offer follows at once")
	}
	var job forge.JobID
	for id := range w.waits {
		job = id
	}
	why, err := w.Explain(w.ctx, job)
	w.must(err)
	if why.Placement == nil || !why.Placement.NotYet || !slices.Contains(why.Details, "5 offers came to nothing; it is offered again in 10s") {
		t.Errorf("why: %q %q", why.Summary, why.Details)
	}
	w.now = w.now.Add(firstPause)
	w.round(w.ctx)
	w.offered(a)
}

// A disk that stays full does not use up all retries within a second.
func TestWhatMachinesSpoilIsTriedAgainAtOnceAndThenAfterAPause(t *testing.T) {
	w := newWorld(t)
	w.still()
	a := w.agent("a", 1)
	a.connect()
	run := w.submit("a=Waiting")
	full := forge.Result{Class: forge.DiskInsufficient}
	for range promptRetries + 1 {
		w.round(w.ctx)
		a.work(full)
	}
	w.round(w.ctx)
	if len(w.places) > 0 {
		t.Fatal("the third attempt follows at once")
	}
	why, err := w.Explain(w.ctx, w.legs(run.ID)[0].ID)
	w.must(err)
	if !slices.Contains(why.Details, "2 attempts were ended by faults of machines; it is offered again in 10s") ||
		why.Summary != "it waits for a runner: pausing before it is offered again; 2 attempts were ended by faults of machines" {
		t.Errorf("why: %q %q", why.Summary, why.Details)
	}
	w.now = w.now.Add(firstPause)
	w.round(w.ctx)
	a.work(full)
	w.round(w.ctx)
	w.ended(run, forge.RunError)
}

func TestPausesGrowAndStayBounded(t *testing.T) {
	for free, want := range map[uint32]time.Duration{
		0: 0, 4: 0, 5: firstPause, 6: 2 * firstPause, 9: 16 * firstPause, 10: longestPause, 1 << 31: longestPause,
	} {
		if got := pauseAfter(free, 0); got != want {
			t.Errorf("after %d offers: %v, not %v", free, got, want)
		}
	}
	for infra, want := range map[uint32]time.Duration{0: 0, 1: 0, 2: firstPause, 3: 2 * firstPause, 255: longestPause} {
		if got := pauseAfter(0, infra); got != want {
			t.Errorf("after %d faults: %v, not %v", infra, got, want)
		}
	}
}

// Case T07.
func TestARunnerThatRefusedIsPassedOverForAnotherAndAskedAgainLater(t *testing.T) {
	w := newWorld(t)
	w.still()
	a := w.agent("a", 1)
	a.connect()
	w.submit("a=Waiting")
	w.round(w.ctx)
	c := w.offered(a)
	w.do(&authority.Reject{Fence: a.fence, Context: c, Reason: forge.RejectDiskInsufficient})
	w.round(w.ctx)
	if len(w.places) > 0 {
		t.Fatal("the runner is asked again at once")
	}
	why, err := w.Explain(w.ctx, c.Job)
	w.must(err)
	if !slices.Contains(why.Details, "attempt 1: its runner refused it: its disk has too little room") {
		t.Errorf("why: %q", why.Details)
	}
	whyRunner, err := w.ExplainRunner(w.ctx, a.id)
	w.must(err)
	if !slices.Contains(whyRunner.Details, "it last refused a job because its disk has too little room") {
		t.Errorf("why runner: %q", whyRunner.Details)
	}
	b := w.agent("b", 1)
	b.connect()
	w.round(w.ctx)
	if p := <-w.places; p.Runner != b.id {
		t.Errorf("placed on %v, not on the other runner", p.Runner)
	}
	w.Disconnected(b.id)
	w.now = w.now.Add(askAgain)
	w.round(w.ctx)
	if p := <-w.places; p.Runner != a.id {
		t.Errorf("placed on %v, not on the first runner", p.Runner)
	}
}

func TestWhyTellsWhatAJobWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.agent("near", 1) // is not connected
	run := w.submit("a=Waiting b[a]=Waiting")
	jobs := w.jobs(run.ID)
	summary := func(key forge.JobKey) string {
		t.Helper()
		why, err := w.Explain(w.ctx, jobs[key].ID)
		w.must(err)
		return why.Summary
	}
	if got := summary("b"); got != "it waits for a (Ready)" {
		t.Errorf("b: %s", got)
	}
	if got := summary("a"); !strings.HasPrefix(got, "it waits for a runner: ") || !strings.Contains(got, "1 runner") {
		t.Errorf("a: %s", got)
	}
	r := w.agent("r", 1)
	r.connect()
	w.round(w.ctx)
	if got := summary("a"); got != "it is about to be offered to runner r" {
		t.Errorf("a: %s", got)
	}
	c := w.offered(r)
	if got := summary("a"); got != "it is offered to runner r" {
		t.Errorf("a: %s", got)
	}
	r.accept(c)
	if got := summary("a"); got != "runner r has it: attempt 1 is Accepted" {
		t.Errorf("a: %s", got)
	}
	if _, err := w.Explain(w.ctx, forge.JobID{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a job that is not there: %v", err)
	}
}
