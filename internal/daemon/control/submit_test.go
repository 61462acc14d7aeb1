package control

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

func TestTheSameKeyGivesTheSameRunAndAnotherRequestIsRefused(t *testing.T) {
	w := newWorld(t)
	s := submission(t, "a=Waiting b[a]=Waiting")
	s.Key = "once"
	first, made, err := w.Submit(w.ctx, s)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	again, made, err := w.Submit(w.ctx, s)
	if err != nil || made || again.ID != first.ID {
		t.Errorf("again: %v, made %v, %v", again.ID, made, err)
	}
	for name, change := range map[string]func(*Submission){
		"another spec": func(s *Submission) { s.Jobs[0].Spec.Env = []forge.EnvVar{{Name: "A", Value: "1"}} },
		"other needs":  func(s *Submission) { s.Jobs[1].Needs = nil },
		"fewer jobs":   func(s *Submission) { s.Jobs = s.Jobs[:1] },
		"another key":  func(s *Submission) { s.Jobs[1].Key = "c" },
	} {
		other := s
		other.Jobs = slices.Clone(s.Jobs)
		change(&other)
		if _, _, err := w.Submit(w.ctx, other); !errors.Is(err, ErrKeyReused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARefusedSubmissionLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	refused := func(name, path string, s Submission) {
		t.Helper()
		_, _, err := w.Submit(w.ctx, s)
		var found forge.Problems
		var early Unsupported
		if errors.As(err, &early) {
			found = forge.Problems(early)
		} else if !errors.As(err, &found) {
			t.Errorf("%s: %v", name, err)
			return
		}
		if !slices.ContainsFunc(found, func(p forge.Problem) bool { return p.Path == path }) {
			t.Errorf("%s: nothing is said of %s: %v", name, path, found)
		}
	}
	with := func(change func(*forge.JobSpec)) Submission {
		s := submission(t, "a=Waiting b=Waiting")
		change(&s.Jobs[1].Spec)
		return s
	}
	refused("no jobs", "jobs", Submission{Project: "p", Trust: forge.TrustTrusted})
	refused("no project", "project", Submission{Trust: forge.TrustTrusted})
	refused("a need that is not there", "jobs[0].needs[0]", submission(t, "a[b]=Waiting"))
	refused("a circle", "jobs", submission(t, "a[b]=Waiting b[a]=Waiting"))
	refused("no steps", "jobs[1].spec.steps", with(func(s *forge.JobSpec) { s.Steps = nil }))
	for _, run := range []time.Duration{0, -1, 9e9 * time.Second} { // Case B10.
		refused("a timeout that ends nothing", "jobs[1].spec.timeouts.run", with(func(s *forge.JobSpec) { s.Timeouts.Run = run }))
	}
	refused("a secret without a name", "jobs[1].spec.secrets[0].ref.name", with(func(s *forge.JobSpec) { s.Secrets = []forge.SecretUse{{Env: "T"}} }))
	refused("a cache", "jobs[1].spec.caches", with(func(s *forge.JobSpec) { s.Caches = []forge.Cache{{Key: "k", Paths: []string{"home"}}} }))
	refused("a long script", "jobs[1].spec", with(func(s *forge.JobSpec) {
		s.Steps[0].Argv = []string{"echo", strings.Repeat("x", MaxInlineSpec/2), strings.Repeat("y", MaxInlineSpec/2)}
	}))
	refused("offline", "jobs[1].spec.connectivity.mode", with(func(s *forge.JobSpec) {
		s.Connectivity = forge.ConnectivityPolicy{Mode: forge.OfflineAuthorized, Extra: time.Hour}
	}))
	w.view(func(v *store.View) error {
		runs, _, err := v.Runs(store.RunFilter{})
		if len(runs) > 0 {
			t.Errorf("%d runs were stored", len(runs))
		}
		return err
	})
}

func TestTheLargestSpecThatTravelsIsTaken(t *testing.T) {
	w := newWorld(t)
	s := submission(t, "a=Waiting")
	spec := &s.Jobs[0].Spec
	spec.Steps[0].Argv = []string{"echo", strings.Repeat("x", 20<<10), ""}
	spec.Project, spec.Job, spec.Constraints.Trust = s.Project, "a", s.Trust
	bytes, err := jobspec.Encode(*spec)
	w.must(err)
	spec.Steps[0].Argv[2] = strings.Repeat("y", MaxInlineSpec-len(bytes)-2) // its length takes two bytes more
	if _, _, err := w.Submit(w.ctx, s); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	spec.Steps[0].Argv[2] += "y"
	var early Unsupported
	if _, _, err := w.Submit(w.ctx, s); !errors.As(err, &early) {
		t.Errorf("one past it: %v", err)
	}
}

func TestALeaseLivesAsLongAsItsSpecAndThePolicySay(t *testing.T) {
	w := newWorld(t)
	s := submission(t, "a=Waiting b=Waiting")
	s.Jobs[0].Spec.Connectivity = forge.ConnectivityPolicy{Mode: forge.Continuous}
	s.Jobs[1].Spec.Connectivity = forge.ConnectivityPolicy{Mode: forge.GracePeriod, Extra: 5 * time.Minute}
	s.Jobs[1].Spec.Retry = forge.RetryPolicy{Max: 1, On: []forge.RetryWord{forge.RetryTimeout}}
	run, _, err := w.Submit(w.ctx, s)
	w.must(err)
	jobs := w.jobs(run.ID)
	for key, want := range map[forge.JobKey]time.Duration{"a": policy.TTL, "b": policy.TTL + 5*time.Minute} {
		if got := jobs[key].Authority.HardTTL; got != want {
			t.Errorf("%s: %v between renewals, not %v", key, got, want)
		}
	}
	if b := jobs["b"].Authority; b.MaxLifetime != s.Jobs[1].Spec.MaxLifetime() || b.Retry.Max != 1 || b.Retry.Infra != 0 {
		t.Errorf("b: %+v, %+v", b, b.Retry)
	}
}

func TestTheTrustOfARunIsNotItsAuthorsToSay(t *testing.T) {
	w := newWorld(t)
	s := submission(t, "a=Waiting")
	s.Trust = forge.TrustUntrusted
	s.Jobs[0].Spec.Constraints.Trust = forge.TrustProtected
	run, _, err := w.Submit(w.ctx, s)
	w.must(err)
	j := w.jobs(run.ID)["a"]
	var bytes []byte
	w.view(func(v *store.View) (err error) { bytes, err = v.Spec(j.Spec); return err })
	spec, err := jobspec.Open(j.Spec, bytes)
	if err != nil || spec.Constraints.Trust != forge.TrustUntrusted {
		t.Errorf("the spec says %v, %v", spec.Constraints.Trust, err)
	}
}

// A job whose author does not say how long it may outlive its connection has what the daemon is set to, in a pipeline too.
func TestTheDaemonsGraceIsThatOfJobsThatSayNothing(t *testing.T) {
	for _, grace := range []time.Duration{0, 7 * time.Second} {
		w := newWorld(t)
		w.policy.Grace = grace
		run := w.pipelined("version: 1\njobs: { a: { steps: [x] } }\n", pipeline.Facts{})
		w.round(w.ctx)
		if got, want := w.jobs(run.ID)["a"].Authority.HardTTL, policy.TTL+grace; got != want {
			t.Errorf("a grace of %v: a job of a pipeline may live %v without its connection, not %v", grace, got, want)
		}
		if p := w.Connectivity(); p.Extra != grace || (p.Mode == forge.Continuous) != (grace == 0) {
			t.Errorf("a grace of %v: %+v", grace, p)
		}
	}
}
