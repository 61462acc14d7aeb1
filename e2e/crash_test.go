//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// counting is a script that writes numbered lines, twenty a second, and keeps its own transcript of them.
func counting(lines int, transcript string) string {
	return fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); note %s "line $i" >/dev/null; echo "line $i"; sleep 0.05; done`, lines, filepath.Base(transcript))
}

// Cases B22, B25, T03: the agent dies and does not come back. The attempt is lost once its lease has run out; the next one
// is visible beside it and has a log of its own.
func TestAnAgentThatDiesForGoodLosesItsAttemptWhenTheLeaseEnds(t *testing.T) {
	s := newStory(t)
	first := s.agent("one", 1, "")
	run, job := s.shell("echo attempt $FORGEYARD_ATTEMPT_ID; sleep 30", func(spec *api.JobSpec) {
		spec.Retry = &api.Retry{Infra: number(uint8(1))}
	})
	lost := s.attempt(job, forge.AttemptRunning)
	s.said(lost.ID, "attempt "+lost.ID)
	first.Kill()
	// Whatever kept watch over the workload ends it without the agent, and long before the daemon gives the job away.
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
	s.agent("two", 1, "")
	var second string
	s.must(fleet.Await(s.ctx, "a second attempt", func() (bool, error) {
		j, err := s.client.Job(s.ctx, job)
		if err != nil || len(j.AllAttempts) < 2 {
			return false, err
		}
		second = j.AllAttempts[1].ID
		return j.AllAttempts[1].State == forge.AttemptRunning.String(), nil
	}))
	s.said(second, "attempt "+second)
	_, err := s.client.CancelRun(s.ctx, run.ID)
	s.must(err)
	ended := s.ended(run)
	if a := ended.AllAttempts[0]; a.ID != lost.ID || a.State != "Lost" {
		t.Errorf("the first attempt is %s %s, want %s Lost", a.ID, a.State, lost.ID)
	}
	for i, a := range ended.AllAttempts {
		if got, want := s.log(a.ID), fmt.Sprintf("attempt %s\n", a.ID); got != want {
			t.Errorf("the log of attempt %d is %q, want %q", i+1, got, want)
		}
	}
}

// Cases B40, T01: the agent dies and comes back. It ends what was left, says so, and the job goes on at once with a second
// attempt; nothing is run again by itself.
func TestAnAgentThatComesBackReportsWhatItLostAtOnce(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	marker := s.path("marker")
	run, job := s.shell(`[ "$(note marker $FORGEYARD_ATTEMPT_ID)" -gt 1 ] || sleep 600`)
	lost := s.attempt(job, forge.AttemptRunning)
	s.file(marker)
	agent.Kill()
	s.must(agent.Start())
	ended := s.ended(run)
	if ended.State != "Succeeded" || len(ended.AllAttempts) != 2 {
		t.Fatalf("the job is %s after %d attempts, want Succeeded after 2", ended.State, len(ended.AllAttempts))
	}
	if a := ended.AllAttempts[0]; a.ID != lost.ID || a.State != "Lost" {
		t.Errorf("the first attempt is %s %s, want %s Lost", a.ID, a.State, lost.ID)
	}
	if lines := strings.Count(s.file(marker), "\n"); lines != 2 {
		t.Errorf("the workload started %d times, want 2", lines)
	}
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}

// Cases B26, T13, T53, T56: the daemon dies and comes back while a job writes. The same attempt goes on, and its log is
// whole.
func TestADaemonThatComesBackFindsTheSameAttemptAtWork(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	transcript := s.path("transcript")
	run, job := s.shell(counting(120, transcript), func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} })
	a := s.attempt(job, forge.AttemptRunning)
	for range 3 {
		s.file(transcript)
		s.fleet.Daemon.Kill()
		s.must(s.fleet.Daemon.Start(s.ctx))
	}
	ended := s.ended(run)
	if got := classOf(t, ended, "Succeeded", "Succeeded"); got.ID != a.ID || len(ended.AllAttempts) != 1 {
		t.Errorf("it ended with attempt %s of %d, want the only one, %s", got.ID, len(ended.AllAttempts), a.ID)
	}
	if want := s.file(transcript); s.log(a.ID) != want {
		t.Errorf("the log has %d bytes, the transcript %d", len(s.log(a.ID)), len(want))
	}
}

// Cases B19, T26: an agent that is stopped past its lease has no workload left by then, and what it says when it goes on
// comes too late.
func TestAnAgentThatIsStoppedPastItsLeaseSaysNothingThatCounts(t *testing.T) {
	s := newStory(t)
	frozen := s.agent("one", 1, "")
	run, job := s.shell("echo up; sleep 3; echo done", func(spec *api.JobSpec) {
		spec.Retry = &api.Retry{Infra: number(uint8(1))}
	})
	lost := s.attempt(job, forge.AttemptRunning)
	s.must(frozen.Signal(syscall.SIGSTOP)) // the workload ends by itself meanwhile; its agent cannot say so
	s.must(fleet.Await(s.ctx, "the attempt to be lost", func() (bool, error) {
		a, err := s.client.Attempt(s.ctx, lost.ID)
		return err == nil && a.State == "Lost", nil
	}))
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
	s.must(frozen.Signal(syscall.SIGCONT))
	ended := s.ended(run)
	if ended.State != "Succeeded" || len(ended.AllAttempts) != 2 {
		t.Fatalf("the job is %s after %d attempts, want Succeeded after 2", ended.State, len(ended.AllAttempts))
	}
	first, err := s.client.Attempt(s.ctx, lost.ID)
	s.must(err)
	if first.State != "Lost" || first.ExitCode != nil {
		t.Errorf("the late completion counted: %s, exit code %s", first.State, show(first.ExitCode))
	}
}

// Case B12: somebody kills the processes of an attempt from outside: a step, or the first process of its sandbox.
func TestAWorkloadThatIsKilledFromOutsideFailsByThatSignal(t *testing.T) {
	for name, first := range map[string]bool{"a step": false, "pid 1": true} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.agent("one", 1, "")
			run, _ := s.shell("note up yes; exec sleep 600")
			s.file(s.path("up"))
			workload := s.workload("sleep\x00600\x00")
			if first {
				workload = s.parent(workload)
			}
			s.must(syscall.Kill(workload, syscall.SIGKILL))
			killed := time.Now()
			a := classOf(t, s.ended(run), "Failed", "Signal")
			if show(a.Signal) != "9" {
				t.Errorf("signal %s, want 9", show(a.Signal))
			}
			t.Logf("it ended %v after the kill", time.Since(killed))
		})
	}
}

// A job that asks for plain processes gets them where the owner of the machine allows it, and its record and its log say
// that nothing confined it.
func TestAJobOfPlainProcessesSaysThatItWasNotConfined(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	plain := func(spec *api.JobSpec) { spec.Sandbox = &api.Sandbox{Kind: "process"} }
	run, _ := s.shell("id -u; exec sleep 600", plain)
	workload := s.workload("sleep\x00600\x00")
	s.must(syscall.Kill(workload, syscall.SIGKILL))
	a := classOf(t, s.ended(run), "Failed", "Signal")
	if a.Sandbox != "process" {
		t.Errorf("the record says that it was confined by %q", a.Sandbox)
	}
	if log := s.log(a.ID); log != fmt.Sprintln(os.Getuid()) {
		t.Errorf("log %q", log)
	}
	out, errs, _, err := s.fleet.Run(s.ctx, "logs", a.ID)
	s.must(err)
	if !strings.Contains(out+errs, "Nothing confines it") {
		t.Errorf("the log says nothing about it: %q, %q", out, errs)
	}
	run, _ = s.shell("id -u; grep NoNewPrivs /proc/self/status")
	a = classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if log := s.log(a.ID); a.Sandbox != "native" || log != "1000\nNoNewPrivs:\t1\n" {
		t.Errorf("a job that asks for nothing is confined by %q, and prints %q", a.Sandbox, log)
	}
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}

// Case B23, B45, T01: killed and started again, twenty times, an agent is one runner and always gets in.
func TestAnAgentThatIsKilledAndStartedTwentyTimesIsOneRunnerAndOnline(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	before, err := agent.Runner(s.ctx)
	s.must(err)
	for range 20 {
		agent.Kill()
		s.must(agent.Start())
		s.must(agent.AwaitOnline(s.ctx))
	}
	list, err := s.client.Runners(s.ctx, api.Page{})
	s.must(err)
	if len(list.Items) != 1 || list.Items[0].ID != before.ID {
		t.Errorf("%d runners, the first with id %s; want one, %s", len(list.Items), list.Items[0].ID, before.ID)
	}
	run, _ := s.shell("true")
	classOf(t, s.ended(run), "Succeeded", "Succeeded")
}

// Case B37: asked to stop, an agent lets its job end and takes no other; a second signal ends it at once, and nothing is left.
func TestAStoppingAgentLetsItsJobEndAndASecondSignalForces(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	gate := s.path("gate")
	run, job := s.shell("until has gate; do sleep 0.05; done; echo through")
	s.attempt(job, forge.AttemptRunning)
	s.must(agent.Signal(syscall.SIGTERM))
	s.must(agent.AwaitState(s.ctx, "draining"))
	s.must(writeFile(gate))
	classOf(t, s.ended(run), "Succeeded", "Succeeded")
	code, err := agent.Exited(s.ctx)
	s.must(err)
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	s.must(agent.Start())
	s.must(agent.AwaitOnline(s.ctx))
	_, job = s.shell("sleep 600")
	s.attempt(job, forge.AttemptRunning)
	s.must(agent.Signal(syscall.SIGTERM))
	s.must(agent.AwaitState(s.ctx, "draining"))
	s.must(agent.Signal(syscall.SIGTERM))
	code, err = agent.Exited(s.ctx)
	s.must(err)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}
