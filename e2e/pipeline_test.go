//go:build linux

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// pipeline submits one whose scripts can note things; each of %s in it is such a script's beginning.
func (s *story) pipeline(text string) *api.Run {
	s.t.Helper()
	helpers := strings.TrimSuffix(strings.ReplaceAll(s.fleet.Witness.Script(""), "\n", "\n          "), " ")
	return s.submit(&api.RunRequest{Pipeline: &api.PipelineRequest{File: ".forgeyard.yml", Text: strings.ReplaceAll(text, "HELPERS", helpers)}})
}

// The daemon is killed while a job of a pipeline runs, and that job ends while there is no daemon. The next one takes its result and its
// outputs, and plans on from what is stored: every job runs once, each after what it needs.
func TestADaemonThatIsKilledBetweenTwoJobsPlansOnAndNoJobTwice(t *testing.T) {
	s := newPatientStory(t)
	s.agent("one", 2, "")
	run := s.pipeline(`version: 1
defaults: { network: host, runner: { disk: 16MiB } }
jobs:
  first:
    steps:
      - id: s
        run: |
          HELPERS
          note first $FORGEYARD_ATTEMPT_ID
          until has go; do sleep 0.1; done
          echo v=of-the-first >> "$FORGEYARD_OUTPUT"
          note done x
    outputs: { v: "${{ steps.s.v }}" }
  second:
    needs: first
    steps:
      - run: |
          HELPERS
          note second "$NEEDS_FIRST_V"
  third:
    needs: [first, second]
    if: always()
    steps:
      - run: |
          HELPERS
          note third "$NEEDS_SECOND_RESULT"
`)
	s.attempt(run.Jobs[0].ID, forge.AttemptRunning)
	s.file(s.path("first"))
	s.fleet.Daemon.Kill()
	note, err := fleet.NewTeller(s.fleet.Witness.Address())
	s.must(err)
	s.must(note.Create("go"))
	s.file(s.path("done"))
	s.must(s.fleet.Daemon.Start(s.ctx))
	ended, err := s.fleet.Daemon.AwaitRun(s.ctx, s.client, run.ID)
	s.must(err)
	if ended.State != "Succeeded" {
		t.Errorf("the run is %s: %s", ended.State, ended.Reason)
	}
	for _, j := range ended.Jobs {
		job, err := s.client.Job(s.ctx, j.ID)
		s.must(err)
		if job.State != "Succeeded" || len(job.AllAttempts) != 1 {
			t.Errorf("%s is %s after %d attempts: %s", job.Key, job.State, len(job.AllAttempts), job.Reason)
		}
	}
	for name, want := range map[string]string{"second": "of-the-first\n", "third": "success\n"} {
		if got := s.file(s.path(name)); got != want {
			t.Errorf("%s noted %q, want %q", name, got, want)
		}
	}
	if got := s.file(s.path("first")); strings.Count(got, "\n") != 1 {
		t.Errorf("the first began %d times: %s", strings.Count(got, "\n"), fmt.Sprintf("%q", got))
	}
}
