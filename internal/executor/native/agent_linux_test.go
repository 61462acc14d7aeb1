package native_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/executortest"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// agentVar makes this test's executable an agent: a process with one attempt, which tests kill and stop.
const agentVar = "FORGEYARD_NATIVE_TEST_AGENT"

// task is what such an agent is to do.
type task struct {
	State, Folder, Unique, Script string
	Policy                        forge.LeasePolicy
	Deadline                      forge.Instant
}

// agentOutput is the Output of such an agent.
type agentOutput struct{}

func (agentOutput) Write(_ forge.LogStream, p []byte) { _, _ = os.Stdout.Write(p) }
func (agentOutput) Event(forge.StepEvent)             {}

// beAgent runs a task, and prints what the steps print, and the outcome.
func beAgent(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	e, err := native.Open(context.Background(), native.Config{State: t.State, Pool: 1})
	if err != nil {
		return err
	}
	order := newOrder(t.Folder, t.Unique, t.Script)
	order.Policy, order.Deadline, order.Output = t.Policy, t.Deadline, agentOutput{}
	w, err := e.Prepare(context.Background(), order)
	if err != nil {
		return err
	}
	if err := w.Start(nil); err != nil {
		return err
	}
	<-w.Done()
	if err := json.NewEncoder(os.Stdout).Encode(w.Outcome()); err != nil {
		return err
	}
	return e.Close()
}

// newTask returns a task whose step leaves children behind in every way, prints ready, and stays.
func newTask(t *testing.T) task {
	t.Helper()
	dir := t.TempDir()
	return task{
		State: filepath.Join(dir, "state"), Folder: filepath.Join(dir, "work"), Unique: newJob(t).unique,
		Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(time.Hour),
		Script: `sleep 1000 & setsid sh -c 'trap "" TERM HUP INT; sleep 1000; sleep 1000' & (setsid sleep 1000 &)
			trap '' TERM; sh -c 'echo ready; sleep 1000'; echo never`,
	}
}

// lingering is how long what its agent has left may take to die.
const lingering = 5 * time.Second

// launch starts an agent on a task; see executortest.Agent. What is inside of its sandbox may take a moment to die.
func launch(tb testing.TB, t task) (*exec.Cmd, <-chan string) {
	tb.Helper()
	return executortest.Agent(tb, agentVar, t, func() []int {
		for limit := time.Now().Add(lingering); len(inside(t.Unique)) > 0 && time.Now().Before(limit); {
		}
		return inside(t.Unique)
	})
}

// gone reports whether a process has ended.
func gone(pid int) bool { return unix.Kill(pid, 0) != nil }

// I14, cases B01 and B40, S13.
func TestNothingOfAnAttemptOutlivesItsAgentOrItsLauncher(t *testing.T) {
	for name, kill := range map[string]func(agent, launcher, first int) []int{
		"agent":              func(agent, _, _ int) []int { return []int{agent} },
		"agent and launcher": func(agent, launcher, _ int) []int { return []int{agent, launcher} },
		"launcher and agent": func(agent, launcher, _ int) []int { return []int{launcher, agent} },
		"all":                func(agent, launcher, first int) []int { return []int{agent, launcher, first} },
	} {
		t.Run(name, func(t *testing.T) {
			task := newTask(t)
			agent, _ := launch(t, task)
			first := firstOf(t, task.Unique)
			launcher := parentOf(t, first)
			eventually(t, "all of them run", func() bool { return len(inside(task.Unique)) >= 6 })
			for _, pid := range kill(agent.Process.Pid, launcher, first) {
				_ = unix.Kill(pid, unix.SIGKILL) // it may be dead of the one before
			}
			eventually(t, "all processes are dead", func() bool { return len(inside(task.Unique)) == 0 && gone(first) && gone(launcher) })
			e := openExecutor(t, native.Config{State: task.State})
			if err := e.KillLeftovers(t.Context()); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if got := names(t, task.State); !slices.Equal(got, []string{sandbox.LockFile}) {
				t.Errorf("the state folder has %q", got)
			}
		})
	}
}

// names lists a folder.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// I02: with the agent stopped, and with its launcher stopped too, the deadline is held.
func TestAnAttemptEndsBeforeItsDeadlineWhileItsAgentIsStopped(t *testing.T) {
	for name, both := range map[string]bool{"agent": false, "agent and launcher": true} {
		t.Run(name, func(t *testing.T) {
			task := newTask(t)
			task.Policy.KillLead, task.Policy.SoftGrace = 1500*time.Millisecond, 500*time.Millisecond
			task.Deadline = clock.Boot().Add(6 * time.Second)
			agent, lines := launch(t, task)
			stopped := []int{agent.Process.Pid}
			if both {
				stopped = append(stopped, parentOf(t, firstOf(t, task.Unique)))
			}
			for _, pid := range stopped {
				if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all processes are dead", func() bool { return len(inside(task.Unique)) == 0 })
			if now := clock.Boot(); now > task.Deadline {
				t.Errorf("it ended %v after its deadline", now.Sub(task.Deadline))
			}
			for _, pid := range stopped {
				if err := unix.Kill(pid, unix.SIGCONT); err != nil {
					t.Fatal(err)
				}
			}
			var o executor.Outcome
			if err := json.Unmarshal([]byte(<-lines), &o); err != nil || !o.Bitten || o.Result.Class != forge.Lost {
				t.Errorf("outcome %+v, %v", o, err)
			}
		})
	}
}

// Case B24: what a copied folder says about sandboxes is about those of the agent that it was copied from.
func TestTheExecutorOfACopiedFolderKillsNothingOfTheOther(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	e := openExecutor(t, native.Config{State: state})
	j := newJob(t, "echo ready; until test -e go; do sleep 0.05; done")
	w := j.start(e)
	j.sink.Await("ready")
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	openExecutor(t, native.Config{State: copied})
	if err := os.WriteFile(filepath.Join(j.order.Folder, "source", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := j.end(w); o.Result.Class != forge.Succeeded {
		t.Errorf("ended %+v", o)
	}
}
