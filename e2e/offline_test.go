//go:build linux

package e2e_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case B36: a job that may outlive its connection goes on while its agent is cut off for longer than the shortest lease. The
// agent is started anew in that time: the job ends with the process that began it, nothing is run again before a daemon says
// so, and once the road is back the loss is told at once and not when the job's long lease is over.
func TestAJobThatMayGoOnAloneEndsWithTheAgentThatBeganIt(t *testing.T) {
	s := newStory(t)
	agent, road := s.relayed("one", 1)
	began, alive := s.path("began"), s.path("alive")
	run, job := s.shell(`[ "$(note began $FORGEYARD_ATTEMPT_ID)" -gt 1 ] || while :; do note alive x >/dev/null; sleep 0.1; done`,
		func(spec *api.JobSpec) {
			spec.Connectivity = &api.Connectivity{Mode: forge.GracePeriod.String(), Extra: duration(2 * storyWithin)}
			spec.Retry = &api.Retry{Infra: number(uint8(1))}
		})
	first := s.attempt(job, forge.AttemptRunning)
	s.file(alive)
	road.Break()
	stayCut(s, 2*fleet.Fast.TTL)
	before := len(s.file(alive))
	s.must(fleet.Await(s.ctx, "the job to go on alone", func() (bool, error) {
		if a, err := s.client.Attempt(s.ctx, first.ID); err != nil || a.Ended {
			return false, errors.Join(err, errors.New("the attempt is over"))
		}
		said, err := os.ReadFile(alive)
		return len(said) > before, err
	}))

	agent.Kill()
	s.must(agent.Start())
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
	stayCut(s, time.Second)
	if now := s.attempt(job, forge.AttemptRunning); now.ID != first.ID {
		t.Errorf("attempt %s was begun while %s may have been at work", now.ID, first.ID)
	}
	if n := strings.Count(s.file(began), "\n"); n != 1 {
		t.Errorf("the job was begun %d times before its agent had heard of a daemon", n)
	}

	road.Mend()
	ended := s.ended(run)
	if ended.State != "Succeeded" || len(ended.AllAttempts) != 2 {
		t.Fatalf("the job is %s after %d attempts, want Succeeded after 2", ended.State, len(ended.AllAttempts))
	}
	if a := ended.AllAttempts[0]; a.ID != first.ID || a.State != forge.AttemptLost.String() {
		t.Errorf("the first attempt is %s %s, want %s Lost", a.ID, a.State, first.ID)
	}
	if n := strings.Count(s.file(began), "\n"); n != 2 {
		t.Errorf("the job was begun %d times, want 2", n)
	}
}
