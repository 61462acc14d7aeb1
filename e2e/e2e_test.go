//go:build linux

// Package e2e_test tells stories with real processes: a daemon, agents and the command, over real QUIC on the loopback, with
// leases of six seconds (the shortest that there are, a tenth of the default).
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// storyWithin bounds each story; a machine with two busy cores needs a fraction of it.
const storyWithin = 3 * time.Minute

var build fleet.Build

func TestMain(m *testing.M) {
	code := m.Run()
	build.Remove()
	os.Exit(code)
}

func programs(t *testing.T) fleet.Programs {
	t.Helper()
	if testing.Short() {
		t.Skip("stories with real processes are left out with -short")
	}
	p, err := build.Programs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// story is a fleet under test, with a client of its daemon.
type story struct {
	t      *testing.T
	ctx    context.Context
	fleet  *fleet.Fleet
	client *api.Client
}

// stage is where and how fast a story plays.
type stage struct {
	scale  fleet.Scale
	base   string // of its folder; empty: that of temporary files
	within time.Duration
	daemon []string // of the daemon's environment
	disks  disks
}

// newStory starts a daemon. Whatever the story leaves behind is ended after it; a process that was left is a failure.
func newStory(t *testing.T) *story {
	t.Helper()
	return newStoryOn(t, stage{scale: fleet.Fast, within: storyWithin})
}

// newPatientStory is one in which no lease is lost for a machine that is slow: for what counts attempts, or what they have moved.
func newPatientStory(t *testing.T) *story {
	t.Helper()
	return newStoryOn(t, stage{scale: fleet.Patient, within: storyWithin})
}

func newStoryOn(t *testing.T, on stage) *story {
	t.Helper()
	p := programs(t)
	t.Parallel()
	folder, err := os.MkdirTemp(on.base, "fy") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), on.within)
	f, err := fleet.New(filepath.Join(folder, "f"), p, on.scale, logWriter{t})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, ctx: ctx, fleet: f}
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			s.showLogs()
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		on.disks.unmount(t, f.Folder)
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	on.disks.mount(t, f.Folder)
	s.must(f.Daemon.StartWith(ctx, on.daemon...))
	s.client, err = f.Daemon.Client()
	s.must(err)
	t.Cleanup(s.client.Close)
	return s
}

// agent adds an agent and waits until it is there.
func (s *story) agent(name string, slots int, endpoint string) *fleet.Agent {
	s.t.Helper()
	a, err := s.fleet.AddAgent(s.ctx, name, slots, endpoint)
	s.must(err)
	s.must(a.Start())
	s.must(a.AwaitOnline(s.ctx))
	return a
}

// submit sends a run and returns it.
func (s *story) submit(r *api.RunRequest) *api.Run {
	s.t.Helper()
	run, err := s.client.Submit(s.ctx, r, "")
	s.must(err)
	return run
}

// shell sends a run of one script and returns its job's id with it.
func (s *story) shell(script string, edits ...func(*api.JobSpec)) (run *api.Run, job string) {
	s.t.Helper()
	run = s.submit(fleet.Shell(s.fleet.Witness.Script(script), edits...))
	return run, run.Jobs[0].ID
}

// ended waits for a run's end and returns the only job of it, with its attempts.
func (s *story) ended(run *api.Run) *api.Job {
	s.t.Helper()
	done, err := s.fleet.Daemon.AwaitRun(s.ctx, s.client, run.ID)
	s.must(err)
	job, err := s.client.Job(s.ctx, done.Jobs[0].ID)
	s.must(err)
	return job
}

// attempt waits until the newest attempt of a job is in one of the states.
func (s *story) attempt(job string, states ...forge.AttemptState) *api.Attempt {
	s.t.Helper()
	a, err := s.fleet.Daemon.AwaitAttempt(s.ctx, s.client, job, states...)
	s.must(err)
	return a
}

// log returns the raw log of an attempt.
func (s *story) log(attempt string) string {
	s.t.Helper()
	text, err := s.fleet.Log(s.ctx, s.client, attempt)
	s.must(err)
	return string(text)
}

// said waits until the daemon has a line in the log of an attempt.
func (s *story) said(attempt, line string) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, fmt.Sprintf("%q in the log of %s", line, attempt), func() (bool, error) {
		text, err := s.fleet.Log(s.ctx, s.client, attempt)
		return strings.Contains(string(text), line+"\n"), err
	}))
}

// file waits until a workload has made a file, and returns what is in it.
func (s *story) file(path string) string {
	s.t.Helper()
	var content []byte
	s.must(fleet.Await(s.ctx, "the file "+path, func() (bool, error) {
		var err error
		content, err = os.ReadFile(path)
		return err == nil && len(content) > 0, nil
	}))
	return string(content)
}

// path returns the path of a file that workloads know by its name alone, see fleet.Witness.
func (s *story) path(name string) string { return filepath.Join(s.fleet.Folder, name) }

// workload waits for the one process of the fleet with these arguments, and returns its id.
func (s *story) workload(arguments string) (pid int) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, "the process "+arguments, func() (bool, error) {
		for _, left := range s.fleet.Leftovers() {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", left)); err == nil && string(text) == arguments {
				pid = left
			}
		}
		return pid != 0, nil
	}))
	return pid
}

// parent returns the parent of a process.
func (s *story) parent(pid int) (ppid int) {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	s.must(err)
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	_, err = fmt.Sscan(rest, &ppid)
	s.must(err)
	return ppid
}

func (s *story) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// showLogs prints the end of what each program has said.
func (s *story) showLogs() {
	const most = 16 << 10
	files, _ := filepath.Glob(filepath.Join(s.fleet.Folder, "*.log"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if len(content) > most {
			content = content[len(content)-most:]
		}
		s.t.Logf("the end of %s:\n%s", filepath.Base(file), content)
	}
}

// logWriter passes lines to a test's log.
type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s %s", time.Now().Format("15:04:05.000"), p)
	return len(p), nil
}

// classOf checks how a job ended.
func classOf(t *testing.T, job *api.Job, state, class string) *api.Attempt {
	t.Helper()
	if job.State != state || job.Class != class {
		t.Errorf("the job is %s with class %q, want %s with %q; %s", job.State, job.Class, state, class, job.Reason)
	}
	if len(job.AllAttempts) == 0 {
		t.Fatal("it has no attempt")
	}
	return &job.AllAttempts[len(job.AllAttempts)-1]
}

// duration is for fields of specs.
func duration(d time.Duration) *api.Duration {
	v := api.Duration(d)
	return &v
}

// number is for optional numbers.
func number[T any](v T) *T { return &v }

// show writes an optional number.
func show(p *int) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprint(*p)
}

// writeFile makes a file that a script waits for.
func writeFile(path string) error { return os.WriteFile(path, []byte("1"), 0o600) }
