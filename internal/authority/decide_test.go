package authority

import (
	"fmt"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// every calls f for each combination of what decide knows, under a budget for everything and under none.
func every(f func(name string, job Job, e ending)) {
	budgets := map[string]forge.RetryPolicy{
		"no budget": {},
		"a budget": {
			Infra: 1, Max: 1, On: []forge.RetryWord{forge.RetryExit, forge.RetrySignal, forge.RetryTimeout, forge.RetryOOM},
		},
	}
	for budget, retry := range budgets {
		for _, class := range forge.Classes() {
			for bits := range 16 {
				e := ending{class: class, exit: 1, result: bits&1 != 0, accepted: bits&2 != 0, ran: bits&4 != 0}
				if !e.accepted && (e.ran || e.result) || !e.result && class != forge.Lost && class != forge.Interrupted && class != forge.Cancelled {
					continue // what nobody holds neither runs nor reports; what nobody reports has none of these classes
				}
				e.refused = !e.result && class == forge.Interrupted
				job := Job{State: forge.JobActive, Retry: &retry, CancelRequested: bits&8 != 0}
				f(fmt.Sprintf("%s, cancel requested %v, %v %+v", budget, job.CancelRequested, class, e), job, e)
			}
		}
	}
}

// decided is what decide should say, and whom it charges, in the order in which a person would ask.
func decided(job Job, e ending) (event lifecycle.Event, free, infra, user uint32) {
	fault := e.class.Fault()
	switch {
	case e.result && e.class == forge.Succeeded:
		return lifecycle.JobSucceed, 0, 0, 0
	case e.result && e.class == forge.Cancelled:
		return lifecycle.JobCancel, 0, 0, 0
	}
	if job.CancelRequested {
		if e.result && fault == forge.FaultUser {
			return lifecycle.JobFail, 0, 0, 0
		}
		return lifecycle.JobCancel, 0, 0, 0
	}
	if nothingRan := !e.accepted || e.refused || !e.ran && job.Retry.Infra > 0; !e.result && !e.ran && nothingRan {
		return lifecycle.JobRequeue, 1, 0, 0
	}
	if fault == forge.FaultInfrastructure && job.Retry.Infra > 0 {
		return lifecycle.JobRequeue, 0, 1, 0
	}
	if listed := e.class.Retry() >= forge.RetryExit && e.class.Retry() <= forge.RetryOOM; listed && job.Retry.Max > 0 {
		return lifecycle.JobRequeue, 0, 0, 1
	}
	return lifecycle.JobFail, 0, 0, 0
}

func TestWhatBecomesOfAJobFollowsFromHowItsAttemptEnded(t *testing.T) {
	cases := 0
	every(func(name string, job Job, e ending) {
		cases++
		wantEvent, free, infra, user := decided(job, e)
		got := decide(&job, e)
		if got != wantEvent || job.FreeRetries != free || job.InfraRetries != infra || job.UserRetries != user {
			t.Errorf("%s: %s, charged %d %d %d; want %s, %d %d %d",
				name, got, job.FreeRetries, job.InfraRetries, job.UserRetries, wantEvent, free, infra, user)
		}
	})
	if cases < 150 {
		t.Errorf("only %d cases", cases)
	}
}

func TestACancelledJobIsNeverPutBack(t *testing.T) {
	every(func(name string, job Job, e ending) {
		job.CancelRequested = true
		if got := decide(&job, e); got == lifecycle.JobRequeue {
			t.Errorf("%s: put back", name)
		}
	})
}

func TestWhatWasOurFaultUsesUpNoRetryOfTheUsersAndTheOtherWayRound(t *testing.T) {
	every(func(name string, job Job, e ending) {
		decide(&job, e)
		if fault := e.class.Fault(); job.UserRetries > 0 && fault != forge.FaultUser || job.InfraRetries > 0 && fault != forge.FaultInfrastructure {
			t.Errorf("%s: charged infra %d, user %d", name, job.InfraRetries, job.UserRetries)
		}
	})
}

func TestAJobIsTriedAgainOnlyWithinItsBudget(t *testing.T) {
	lost := ending{class: forge.Lost, accepted: true, ran: true}
	failed := ending{class: forge.ExitCode, exit: 7, result: true, accepted: true, ran: true}
	for name, e := range map[string]ending{"infra": lost, "user": failed} {
		job := Job{State: forge.JobActive, Retry: &forge.RetryPolicy{Infra: 2, Max: 2, On: []forge.RetryWord{forge.RetryExit}, ExitCodes: []uint8{7}}}
		for i, want := range []lifecycle.Event{lifecycle.JobRequeue, lifecycle.JobRequeue, lifecycle.JobFail, lifecycle.JobFail} {
			if got := decide(&job, e); got != want {
				t.Errorf("%s: end %d: %s, want %s", name, i+1, got, want)
			}
		}
	}
}

func TestOnlyTheExitCodesThatTheUserListedAreTriedAgain(t *testing.T) {
	job := Job{State: forge.JobActive, Retry: &forge.RetryPolicy{Max: 1, On: []forge.RetryWord{forge.RetryExit}, ExitCodes: []uint8{7}}}
	if got := decide(&job, ending{class: forge.ExitCode, exit: 8, result: true, accepted: true, ran: true}); got != lifecycle.JobFail {
		t.Errorf("another exit code: %s", got)
	}
}

func TestAJobThatMustNotRunTwiceGetsTheBenefitOfNoDoubt(t *testing.T) {
	once := &forge.RetryPolicy{Infra: 0}
	for _, c := range []struct {
		name string
		end  ending
		want lifecycle.Event
	}{
		{"an offer that expired", ending{class: forge.Lost}, lifecycle.JobRequeue},
		{"an offer that was refused", ending{class: forge.Interrupted, refused: true}, lifecycle.JobRequeue},
		{"a lease that was given back before anything was started", ending{class: forge.Interrupted, refused: true, accepted: true}, lifecycle.JobRequeue},
		{"a lease that was lost before it was said to run", ending{class: forge.Lost, accepted: true}, lifecycle.JobFail},
		{"a lease that was lost while it ran", ending{class: forge.Lost, accepted: true, ran: true}, lifecycle.JobFail},
		{"a result of ours", ending{class: forge.InputFetch, accepted: true, result: true}, lifecycle.JobFail},
	} {
		job := Job{State: forge.JobActive, Retry: once}
		if got := decide(&job, c.end); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAnAttemptLostBeforeItRanCostsNothingHoweverOften(t *testing.T) {
	job := Job{State: forge.JobActive, Retry: &forge.RetryPolicy{Infra: 1}}
	for range 20 {
		if got := decide(&job, ending{class: forge.Lost, accepted: true}); got != lifecycle.JobRequeue {
			t.Fatalf("after %d free retries: %s", job.FreeRetries, got)
		}
	}
	if job.FreeRetries != 20 || job.InfraRetries != 0 {
		t.Errorf("charged free %d, infra %d", job.FreeRetries, job.InfraRetries)
	}
}
