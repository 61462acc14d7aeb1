//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case B24: a token makes one runner, whoever has it.
func TestAnEnrolmentTokenIsGoodForOneRunner(t *testing.T) {
	s := newStory(t)
	token, err := s.fleet.Token(s.ctx, "first", 1)
	s.must(err)
	first, err := s.fleet.AddAgent(s.ctx, "spare", 1, "") // with a token of its own
	s.must(err)
	s.must(os.RemoveAll(first.Folder))
	s.must(first.Enroll(s.ctx, token))
	s.must(os.RemoveAll(first.Folder)) // with it the key: whoever comes now is somebody else
	err = first.Enroll(s.ctx, token)
	if err == nil || !strings.Contains(err.Error(), "exit status") || !strings.Contains(err.Error(), "token") {
		t.Errorf("the second use: %v", err)
	}
	list, err := s.client.Runners(s.ctx, api.Page{})
	s.must(err)
	if len(list.Items) != 2 {
		t.Errorf("%d runners, want the two that were enrolled", len(list.Items))
	}
}

// Cases B24, T32 (ADR 0014): a copy of a state folder gets nothing while the one that it was copied from lives, somebody is told, and
// the first goes on.
func TestACopyOfAStateFolderIsRefusedAndReported(t *testing.T) {
	s := newStory(t)
	first := s.agent("one", 1, "")
	runner, err := first.Runner(s.ctx)
	s.must(err)
	gate := s.path("gate")
	run, job := s.shell("until has gate; do sleep 0.05; done", func(spec *api.JobSpec) {
		spec.Retry = &api.Retry{Infra: number(uint8(0))}
	})
	s.attempt(job, forge.AttemptRunning)
	before := s.session()
	clone, err := s.fleet.Clone(first, "copy", 1)
	s.must(err)
	if out, err := exec.CommandContext(s.ctx, "cp", "-a", first.Folder, clone.Folder).CombinedOutput(); err != nil {
		// The socket for the owner of the machine cannot be copied by every cp, and need not be.
		t.Logf("%v: %s", err, out)
	}
	s.must(clone.Start())
	s.must(fleet.Await(s.ctx, "the copy to be reported", func() (bool, error) {
		if !clone.Alive() {
			return false, fmt.Errorf("it has ended; its log is %s", clone.LogFile())
		}
		list, err := s.client.Audit(s.ctx, api.Page{})
		if err != nil {
			return false, err
		}
		for _, e := range list.Items {
			if e.Action == "clone_suspected" && e.Runner == runner.ID {
				return true, nil
			}
		}
		return false, nil
	}))
	s.must(fleet.Await(s.ctx, "the copy to say why it is out", func() (bool, error) {
		said, err := os.ReadFile(clone.LogFile())
		return strings.Contains(string(said), forge.CloseCloneSuspected.String()), err
	}))
	if after := s.session(); after != before {
		t.Errorf("the first came by connection %s and is there by %s", before, after)
	}
	s.must(writeFile(gate))
	if ended := s.ended(run); ended.State != "Succeeded" || len(ended.AllAttempts) != 1 {
		t.Errorf("the job is %s after %d attempts", ended.State, len(ended.AllAttempts))
	}
}

// Case B28: a runner that is drained and resumed while jobs come loses none of them.
func TestDrainsAndResumesBetweenOffersLoseNoJob(t *testing.T) {
	const rounds = 30
	s := newStory(t)
	agent := s.agent("one", 4, "")
	runner, err := agent.Runner(s.ctx)
	s.must(err)
	var runs []*api.Run
	for range rounds {
		run, _ := s.shell("true")
		runs = append(runs, run)
		for _, verb := range []api.RunnerVerb{api.RunnerDrain, api.RunnerResume} {
			_, err := s.client.SetRunner(s.ctx, runner.ID, verb)
			s.must(err)
		}
	}
	for _, run := range runs {
		classOf(t, s.ended(run), "Succeeded", "Succeeded")
	}
}

// Case T35: an agent that is asked to stop while its daemon is dead keeps its result until somebody takes it, and ends then.
func TestAStoppingAgentWaitsForADeadDaemonToTakeItsResult(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	gate, through := s.path("gate"), s.path("through")
	run, job := s.shell("until has gate; do sleep 0.05; done; note through through >/dev/null; echo through")
	a := s.attempt(job, forge.AttemptRunning)
	s.fleet.Daemon.Kill()
	s.must(writeFile(gate))
	s.file(through)
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
	s.must(agent.Signal(syscall.SIGTERM))
	s.must(s.fleet.Daemon.Start(s.ctx))
	ended := s.ended(run)
	if got := classOf(t, ended, "Succeeded", "Succeeded"); got.ID != a.ID || len(ended.AllAttempts) != 1 {
		t.Errorf("it ended with attempt %s of %d, want the only one, %s", got.ID, len(ended.AllAttempts), a.ID)
	}
	if log := s.log(a.ID); log != "through\n" {
		t.Errorf("log %q", log)
	}
	code, err := agent.Exited(s.ctx)
	s.must(err)
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Case T37: where the system cannot segment what is sent, the documented variable makes do without.
func TestAnAgentWithoutSegmentationOffloadDeliversItsLog(t *testing.T) {
	s := newStory(t)
	agent, err := s.fleet.AddAgent(s.ctx, "one", 1, "")
	s.must(err)
	agent.Env = []string{"QUIC_GO_DISABLE_GSO=true"}
	s.must(agent.Start())
	s.must(agent.AwaitOnline(s.ctx))
	run, _ := s.shell("seq 50000")
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if lines := strings.Count(s.log(a.ID), "\n"); lines != 50_000 {
		t.Errorf("%d lines, want 50000", lines)
	}
}
