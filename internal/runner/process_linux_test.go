package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
)

// withProcesses makes an agent run real processes.
func withProcesses(t *testing.T) func(*Config) {
	return func(c *Config) {
		c.Executors = func(state string) ([]executor.Executor, error) {
			e, err := process.New(process.Config{State: state, Log: c.Log})
			return []executor.Executor{e}, err
		}
	}
}

func shell(script string) forge.JobSpec {
	s := spec()
	s.Network = forge.NetworkHost
	s.Steps = []forge.Step{{Script: script, Shell: []string{"/bin/sh", "-c"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	return s
}

// TestAShellCommandRunsInItsWorkspaceAndIsRemovedWithIt is the whole agent with a real process.
func TestAShellCommandRunsInItsWorkspaceAndIsRemovedWithIt(t *testing.T) {
	y := newYard(t, nil)
	a := y.start(func(c *Config) { withProcesses(t)(c); c.Policy.AllowHostNetwork = true })
	job := y.daemon.Offer(y.daemon.Synced(), shell(`pwd; echo "$FORGEYARD_ATTEMPT_ID" >&2; echo x > file; /bin/chmod 000 .; exit 7`))
	done := runnertest.Await(y.daemon, "the job is completed", of(job))
	if done.Result.Class != forge.ExitCode || done.Result.ExitCode != 7 || len(done.Result.Steps) != 1 {
		t.Errorf("completed with %+v", done.Result)
	}
	log := y.daemon.Log(job.Attempt)
	if out := string(log.Output(forge.LogStdout)); !strings.Contains(out, job.Attempt.String()+"/source") {
		t.Errorf("it ran in %q", out)
	}
	if out := string(log.Output(forge.LogStderr)); out != job.Attempt.String()+"\n" {
		t.Errorf("its environment said %q", out)
	}
	a.untilIdle()
	a.Stop()
	a.end(core.ExitStopped)
	y.nothingLeft()
}

// TestAProcessIsDeadBeforeItsLeaseEndsWhenNoDaemonAnswers cuts the agent off for good: invariant I01, with real processes and
// the real clock.
func TestAProcessIsDeadBeforeItsLeaseEndsWhenNoDaemonAnswers(t *testing.T) {
	y := newYard(t, nil)
	a := y.start(func(c *Config) { withProcesses(t)(c); c.Policy.AllowHostNetwork = true })
	job := y.daemon.Offer(y.daemon.Synced(), shell(`trap "" TERM INT; while :; do /bin/sleep 0.1; done`))
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	y.daemon.Refuse(true)
	y.daemon.Cut()
	var deadline forge.Instant
	for limit := time.Now().Add(runnertest.Patience); ; {
		var held []core.Held
		y.must(a.call(t.Context(), func() { held = a.core.Held() }))
		if len(held) != 1 {
			t.Fatalf("held: %+v", held)
		}
		if held[0].Frozen != nil {
			break
		}
		if deadline = held[0].Deadline; time.Now().After(limit) {
			t.Fatal("it lives on")
		}
	}
	if now := a.cfg.now(); now > deadline {
		t.Errorf("the last process died %v after the deadline", now.Sub(deadline))
	}
	y.daemon.Refuse(false)
	if done := runnertest.Await(y.daemon, "its loss is told", of(job)); done.Outcome() != forge.Lost {
		t.Errorf("completed with %+v", done.Result)
	}
}
