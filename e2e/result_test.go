//go:build linux

package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestTheCommandRunsOnAnEnrolledAgentAndReturnsTheResult(t *testing.T) {
	s := newStory(t)
	s.agent("one", 2, "")
	out, errs, code, err := s.fleet.Run(s.ctx, "run", "--", "sh", "-c", "echo hello from $FORGEYARD_ATTEMPT_ID; exit 7")
	s.must(err)
	if code != 1 {
		t.Errorf("exit code %d, want 1: the run failed", code)
	}
	if !strings.Contains(out, "hello from 0") {
		t.Errorf("the log is not on standard output: %q", out)
	}
	if !strings.Contains(errs, "7") {
		t.Errorf("the exit code of the program is not told: %q", errs)
	}
}

// An exit code and a death by a signal are told apart, also where a shell would make one of the other: 137 is a code.
func TestExitCodesAndSignalsAreSeparateFields(t *testing.T) {
	s := newStory(t)
	s.agent("one", 4, "")
	type end struct{ code, signal int }
	tests := map[string]end{
		"exit-0": {code: 0}, "exit-1": {code: 1}, "exit-2": {code: 2}, "exit-126": {code: 126}, "exit-127": {code: 127},
		"exit-137": {code: 137}, "exit-255": {code: 255},
		"kill-KILL": {signal: 9}, "kill-SEGV": {signal: 11}, "kill-TERM": {signal: 15},
	}
	request := &api.RunRequest{}
	for name := range tests {
		script := strings.Replace(name, "exit-", "exit ", 1)
		if signal, ok := strings.CutPrefix(name, "kill-"); ok {
			script = "kill -" + signal + " $$"
		}
		job := fleet.Shell(script).Jobs[0]
		job.Key = name
		request.Jobs = append(request.Jobs, job)
	}
	run, err := s.fleet.Daemon.AwaitRun(s.ctx, s.client, s.submit(request).ID)
	s.must(err)
	for _, j := range run.Jobs {
		job, err := s.client.Job(s.ctx, j.ID)
		s.must(err)
		want := tests[job.Key]
		class, state := "ExitCode", "Failed"
		switch {
		case want.signal != 0:
			class = "Signal"
		case want.code == 0:
			class, state = "Succeeded", "Succeeded"
		}
		if job.State != state || job.Class != class {
			t.Errorf("%s: %s, class %q, want %s, class %q", job.Key, job.State, job.Class, state, class)
		}
		a := job.AllAttempts[0]
		if want.signal != 0 && (show(a.Signal) != fmt.Sprint(want.signal) || a.ExitCode != nil) {
			t.Errorf("%s: signal %s, exit code %s, want signal %d alone", job.Key, show(a.Signal), show(a.ExitCode), want.signal)
		}
		if want.code != 0 && (show(a.ExitCode) != fmt.Sprint(want.code) || a.Signal != nil) {
			t.Errorf("%s: exit code %s, signal %s, want exit code %d alone", job.Key, show(a.ExitCode), show(a.Signal), want.code)
		}
	}
}

// Cases B10 and B36: the time-out of a job that hangs and says nothing is enforced, however well its lease is renewed, and the limit is told.
func TestARunThatTakesTooLongTimesOut(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	run, _ := s.shell("echo begins; sleep 600", func(spec *api.JobSpec) {
		spec.Timeouts = &api.Timeouts{Run: duration(2 * time.Second), Grace: duration(time.Second)}
	})
	a := classOf(t, s.ended(run), "Failed", "TimedOut")
	if a.Limit == nil || a.Limit.Value != 2000 {
		t.Errorf("limit %+v, want 2000 ms", a.Limit)
	}
	if log := s.log(a.ID); log != "begins\n" { // Case B49: what came before the kill is there.
		t.Errorf("log %q", log)
	}
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}

// Case B04: a workload may clean up, and is Cancelled whatever it then says.
func TestACancelledWorkloadMayCleanUpAndIsCancelledAlthoughItsExitCodeIsZero(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	run, job := s.shell(`trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done`)
	s.said(s.attempt(job, forge.AttemptRunning).ID, "up")
	_, err := s.client.CancelRun(s.ctx, run.ID)
	s.must(err)
	a := classOf(t, s.ended(run), "Cancelled", "Cancelled")
	if log := s.log(a.ID); !strings.Contains(log, "bye\n") {
		t.Errorf("its last word is missing: %q", log)
	}
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}

// Case B05: what ignores the soft signal, in a session of its own too, is killed after the grace.
func TestACancelledWorkloadThatIgnoresSignalsIsKilledAfterItsGrace(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	run, job := s.shell(`nohup setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 &
		trap "" TERM HUP; echo up; while :; do sleep 1; done`, func(spec *api.JobSpec) {
		spec.Timeouts = &api.Timeouts{Grace: duration(time.Second)}
	})
	s.said(s.attempt(job, forge.AttemptRunning).ID, "up")
	_, err := s.client.CancelRun(s.ctx, run.ID)
	s.must(err)
	classOf(t, s.ended(run), "Cancelled", "Cancelled")
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}

// Cases B52, B53: bytes are bytes.
func TestTheRawLogIsWhatTheWorkloadWrote(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	run, _ := s.shell(`{ head -c 1000000 /dev/urandom; printf 'a\rb\0c'; } >written; note sum "$(sha256sum <written)" >/dev/null; cat written`)
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	log := s.log(a.ID)
	if got, want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(log))), s.file(s.path("sum")); got != want {
		t.Errorf("the log of %d bytes is not what was written", len(log))
	}
}

// Case B56: twenty jobs at once, each with its own log.
func TestLogsOfJobsThatRunAtTheSameTimeDoNotCross(t *testing.T) {
	s := newStory(t)
	s.agent("one", 8, "")
	request := &api.RunRequest{}
	for i := range 20 {
		job := fleet.Shell(fmt.Sprintf("for i in $(seq 200); do echo marker-%d $i; done", i)).Jobs[0]
		job.Key = fmt.Sprintf("job-%d", i)
		request.Jobs = append(request.Jobs, job)
	}
	run, err := s.fleet.Daemon.AwaitRun(s.ctx, s.client, s.submit(request).ID)
	s.must(err)
	if run.State != "Succeeded" {
		t.Fatalf("the run is %s", run.State)
	}
	for i, j := range run.Jobs {
		job, err := s.client.Job(s.ctx, j.ID)
		s.must(err)
		var want strings.Builder
		for line := range 200 {
			fmt.Fprintf(&want, "marker-%s %d\n", strings.TrimPrefix(job.Key, "job-"), line+1)
		}
		if got := s.log(job.AllAttempts[0].ID); got != want.String() {
			t.Errorf("job %d (%s) has another log of %d bytes", i, job.Key, len(got))
		}
	}
}
