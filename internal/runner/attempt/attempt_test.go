package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is one report.
type told struct {
	what    string
	outcome executor.Outcome
	outputs []forge.OutputRef
	capture forge.Class
	seal    forge.LogSeal
	err     error
}

// reports collects what an attempt tells.
type reports chan told

func (r reports) Prepared(forge.AttemptID)                    { r <- told{what: "prepared"} }
func (r reports) Started(forge.AttemptID)                     { r <- told{what: "started"} }
func (r reports) Ended(_ forge.AttemptID, o executor.Outcome) { r <- told{what: "ended", outcome: o} }

func (r reports) Delivered(_ forge.AttemptID, outputs []forge.OutputRef, capture forge.Class, seal forge.LogSeal) {
	r <- told{what: "delivered", outputs: outputs, capture: capture, seal: seal}
}

func (r reports) Redelivered(_ forge.AttemptID, err error) { r <- told{what: "redelivered", err: err} }

func (r reports) CleanedUp(_ forge.AttemptID, err error) { r <- told{what: "cleaned up", err: err} }

func (r reports) want(t *testing.T, what string) told {
	t.Helper()
	select {
	case got := <-r:
		if got.what != what {
			t.Fatalf("%s was reported, want %s: %+v", got.what, what, got)
		}
		return got
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing was reported, want %s", what)
		return told{}
	}
}

// story is one attempt under test.
type story struct {
	*attempt.Attempt
	reports
	machine *runnertest.Machine
	cancel  context.CancelFunc
	ended   chan struct{}
	root    *workspace.Root
	work    string
	spool   string
}

func begin(t *testing.T, machine *runnertest.Machine, edit func(*attempt.Config)) *story {
	t.Helper()
	dir := t.TempDir()
	root, err := workspace.Open(filepath.Join(dir, "work"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec := forge.DefaultJobSpec()
	spec.Job = "build"
	s := &story{reports: make(reports, 16), machine: machine, ended: make(chan struct{}), root: root, work: filepath.Join(dir, "work"), spool: filepath.Join(dir, "spool")}
	cfg := attempt.Config{
		Context: forge.AttemptContext{
			Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
			Spec: forge.SpecID([]byte("spec")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
		},
		Spec: spec, Deadline: 1 << 40, Policy: forge.DefaultLeasePolicy(),
		Executor: machine, Workspaces: root, SpoolDir: s.spool, Reporter: s.reports,
		Wall: func() forge.WallTime { return 7 }, Log: slog.New(slog.DiscardHandler),
	}
	if edit != nil {
		edit(&cfg)
	}
	s.Attempt = attempt.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-s.ended
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// log reads the whole log, as text.
func (s *story) log(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	r := s.Spool().Reader(1)
	defer r.Close()
	for {
		frames, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			b.Write(f.Bytes)
		}
	}
}

// end walks from the end of the workload to the end of everything.
func (s *story) end(t *testing.T) {
	t.Helper()
	s.CleanUp()
	if got := s.want(t, "cleaned up"); got.err != nil {
		t.Error(got.err)
	}
	<-s.ended
	if err := s.root.Idle(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{s.work, s.spool} {
		if left, err := os.ReadDir(dir); len(left) != 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left in %s: %v, %v", filepath.Base(dir), left, err)
		}
	}
	if n := s.machine.Alive(); n != 0 {
		t.Errorf("%d workloads are alive", n)
	}
}

func TestAnAttemptWalksFromItsWorkspaceToItsCleanUp(t *testing.T) {
	var folder string
	var env []forge.EnvVar
	s := begin(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		folder, env = w.Folder, w.Env
		w.Output.Write(forge.LogStdout, []byte("hello\n"))
		return forge.Result{Class: forge.ExitCode, ExitCode: 3}
	}}, nil)
	s.want(t, "prepared")
	if s.machine.Alive() != 0 {
		t.Error("something runs before the start")
	}
	s.Start()
	s.want(t, "started")
	if o := s.want(t, "ended").outcome; o.Result.Class != forge.ExitCode || o.Result.ExitCode != 3 || o.Bitten || o.StopSeen != 0 {
		t.Errorf("the outcome is %+v", o)
	}
	s.Deliver()
	got := s.want(t, "delivered")
	if got.capture != forge.Succeeded || got.seal.Last == 0 || got.seal.Hash.IsZero() {
		t.Errorf("delivered %+v", got)
	}
	if log := s.log(t); !strings.Contains(log, "hello\n") {
		t.Errorf("the log is %q", log)
	}
	if filepath.Dir(folder) != s.work || filepath.Base(folder) != s.Context().Attempt.String() {
		t.Errorf("the workload ran in %s", folder)
	}
	if want := (forge.EnvVar{Name: "FORGEYARD_ATTEMPT_ID", Value: s.Context().Attempt.String()}); !strings.Contains(fmt.Sprint(env), fmt.Sprint(want)) {
		t.Errorf("the environment is %v", env)
	}
	s.end(t)
}

// TestAStopEndsAnAttemptWhereverItStands also holds that nothing starts after a stop.
func TestAStopEndsAnAttemptWhereverItStands(t *testing.T) {
	t.Run("while it is prepared", func(t *testing.T) {
		preparing := make(chan struct{})
		s := begin(t, &runnertest.Machine{Preparing: func(ctx context.Context, _ executor.Order) error {
			close(preparing)
			<-ctx.Done()
			return context.Cause(ctx)
		}}, nil)
		<-preparing
		s.Stop(forge.CancelUser)
		if o := s.want(t, "ended").outcome; o.Result.Class != forge.Cancelled || o.StopSeen != forge.CancelUser {
			t.Errorf("the outcome is %+v", o)
		}
		s.end(t)
	})
	t.Run("before it starts", func(t *testing.T) {
		s := begin(t, &runnertest.Machine{}, nil)
		s.want(t, "prepared")
		s.Stop(forge.CancelUser)
		if o := s.want(t, "ended").outcome; o.Result.Class != forge.Cancelled || o.StopSeen != forge.CancelUser {
			t.Errorf("the outcome is %+v", o)
		}
		s.Start() // too late
		s.end(t)
	})
	t.Run("while it runs", func(t *testing.T) {
		s := begin(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
			<-ctx.Done()
			return forge.Result{Class: forge.ExitCode, ExitCode: 143}
		}}, nil)
		s.want(t, "prepared")
		s.Start()
		s.want(t, "started")
		s.Stop(forge.CancelUser)
		if o := s.want(t, "ended").outcome; o.Result.ExitCode != 143 || o.StopSeen != forge.CancelUser {
			t.Errorf("the outcome is %+v", o)
		}
		s.end(t)
	})
}

func TestAnAttemptThatIsBittenIsLost(t *testing.T) {
	s := begin(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
		<-ctx.Done()
		return forge.Result{Class: forge.Succeeded}
	}}, nil)
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.Bite(true)
	if o := s.want(t, "ended").outcome; !o.Bitten {
		t.Errorf("the outcome is %+v", o)
	}
	s.Deliver()
	s.want(t, "delivered")
	if log := s.log(t); !strings.Contains(log, "lease") {
		t.Errorf("the log does not say why: %q", log)
	}
	s.end(t)
}

func TestADeadlineThatMovedDuringPreparationReachesTheWorkload(t *testing.T) {
	preparing, goOn := make(chan struct{}), make(chan struct{})
	s := begin(t, &runnertest.Machine{Preparing: func(context.Context, executor.Order) error {
		close(preparing)
		<-goOn
		return nil
	}}, nil)
	<-preparing
	s.MoveDeadline(1 << 50)
	s.MoveDeadline(1 << 45) // an older one
	close(goOn)
	s.want(t, "prepared")
	if moved := s.machine.Moved(); len(moved) == 0 || moved[len(moved)-1] != 1<<50 {
		t.Errorf("the workload was told %v", moved)
	}
	s.Kill()
	s.want(t, "ended")
	s.end(t)
}

// TestAWorkloadThatEndsIsNotHeldUpByItsLog: a spool that nobody reads is full, and the workload waits for room. Its kill
// must not wait with it. T06, T10.
func TestAWorkloadThatEndsIsNotHeldUpByItsLog(t *testing.T) {
	full := make(chan struct{})
	s := begin(t, &runnertest.Machine{Run: func(ctx context.Context, w *runnertest.Workload) forge.Result {
		for i := range 64 {
			if i == 15 {
				close(full)
			}
			w.Output.Write(forge.LogStdout, make([]byte, forge.MaxLogPayload))
		}
		return forge.Result{Class: forge.Succeeded}
	}}, func(c *attempt.Config) {
		c.Spool = logspool.Config{Bound: logspool.MinBound, Policy: logspool.Block}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	<-full
	s.Kill()
	s.want(t, "ended")
	s.Deliver()
	s.want(t, "delivered")
	s.end(t)
}

func TestSecretsComeJustBeforeTheStartAndAreMasked(t *testing.T) {
	fetched := false
	value := forge.NewSecret([]byte("hunter2-hunter2"))
	s := begin(t, &runnertest.Machine{
		Preparing: func(context.Context, executor.Order) error {
			if fetched {
				t.Error("the secrets were fetched before the preparation")
			}
			return nil
		},
		Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
			// The value is cut between two writes, and between the streams' own orders.
			w.Output.Write(forge.LogStdout, []byte("the password is hunter2-"))
			w.Output.Write(forge.LogStderr, []byte("other\n"))
			w.Output.Write(forge.LogStdout, []byte("hunter2!\n"))
			if string(w.Secrets[0].Value.Reveal()) != "hunter2-hunter2" {
				t.Error("the workload did not get its secret")
			}
			return forge.Result{Class: forge.Succeeded}
		},
	}, func(c *attempt.Config) {
		c.Spec.Secrets = []forge.SecretUse{{Env: "PASSWORD", Ref: forge.SecretRef{Name: "db/password"}}}
		c.Secrets = func(_ context.Context, _ forge.AttemptContext, uses []forge.SecretUse) ([]executor.Secret, error) {
			fetched = true
			return []executor.Secret{{Use: uses[0], Value: value}}, nil
		}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	s.want(t, "delivered")
	log := s.log(t)
	if strings.Contains(log, "hunter2") || !strings.Contains(log, "the password is ") || !strings.Contains(log, "***!\n") {
		t.Errorf("the log is %q", log)
	}
	if strings.Contains(string(value.Reveal()), "hunter2") {
		t.Error("the agent still holds the value")
	}
	for _, dir := range []string{s.spool, s.work} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if strings.Contains(string(b), "hunter2") {
				t.Errorf("%s has the value", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.end(t)
}

func TestAnAttemptWithoutItsSecretsIsNotStarted(t *testing.T) {
	s := begin(t, &runnertest.Machine{Run: func(context.Context, *runnertest.Workload) forge.Result {
		t.Error("it was started")
		return forge.Result{}
	}}, func(c *attempt.Config) {
		c.Spec.Secrets = []forge.SecretUse{{Env: "A", Ref: forge.SecretRef{Name: "a"}}}
		c.Secrets = func(context.Context, forge.AttemptContext, []forge.SecretUse) ([]executor.Secret, error) {
			return nil, errors.New("a is not there")
		}
	})
	s.want(t, "prepared")
	s.Start()
	if o := s.want(t, "ended").outcome; o.Result.Class != forge.InputFetch {
		t.Errorf("the outcome is %+v", o)
	}
	s.end(t)
}

func TestWhyAnAttemptCouldNotBePreparedIsItsClass(t *testing.T) {
	for what, test := range map[string]struct {
		err  error
		want forge.Class
	}{
		"the sandbox":       {&executor.SetupError{Class: forge.SandboxSetup, Err: errors.New("no namespace")}, forge.SandboxSetup},
		"a name":            {&executor.SetupError{Class: forge.PathIncompatible, Err: errors.New("con")}, forge.PathIncompatible},
		"a full disk":       {fmt.Errorf("mkdir: %w", syscall.ENOSPC), forge.DiskInsufficient},
		"something unheard": {errors.New("x"), forge.SandboxSetup},
	} {
		t.Run(what, func(t *testing.T) {
			s := begin(t, &runnertest.Machine{Preparing: func(context.Context, executor.Order) error { return test.err }}, nil)
			if o := s.want(t, "ended").outcome; o.Result.Class != test.want {
				t.Errorf("the outcome is %+v", o)
			}
			s.Deliver()
			s.want(t, "delivered")
			if log := s.log(t); !strings.Contains(log, test.err.Error()) {
				t.Errorf("the log does not say why: %q", log)
			}
			s.end(t)
		})
	}
}

func TestAPreparationThatTakesTooLongTimesOut(t *testing.T) {
	s := begin(t, &runnertest.Machine{Preparing: func(ctx context.Context, _ executor.Order) error {
		<-ctx.Done()
		return ctx.Err()
	}}, func(c *attempt.Config) { c.Spec.Timeouts.Prepare = time.Millisecond })
	if o := s.want(t, "ended").outcome; o.Result.Class != forge.TimedOut || o.Result.Limit != 1 {
		t.Errorf("the outcome is %+v", o)
	}
	s.end(t)
}

func TestAStartThatIsTooLateIsALoss(t *testing.T) {
	s := begin(t, &runnertest.Machine{Late: true}, nil)
	s.want(t, "prepared")
	s.Start()
	if o := s.want(t, "ended").outcome; !o.Bitten {
		t.Errorf("the outcome is %+v", o)
	}
	s.end(t)
}

// TestAProcessThatEndsKillsItsWorkloadsAndLeavesTheDisk: what is on the disk is for the next process.
func TestAProcessThatEndsKillsItsWorkloadsAndLeavesTheDisk(t *testing.T) {
	s := begin(t, &runnertest.Machine{Run: func(ctx context.Context, _ *runnertest.Workload) forge.Result {
		<-ctx.Done()
		return forge.Result{Class: forge.Succeeded}
	}}, nil)
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.cancel()
	<-s.ended
	if s.machine.Alive() != 0 {
		t.Error("the workload outlives its agent")
	}
	select {
	case got := <-s.reports:
		t.Errorf("%s was reported after the end", got.what)
	default:
	}
	if _, err := os.Stat(filepath.Join(s.work, s.Context().Attempt.String())); err != nil {
		t.Errorf("the workspace: %v", err)
	}
}

func TestADiskThatTakesNoLogTakesNoAttempt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := begin(t, &runnertest.Machine{}, func(c *attempt.Config) { c.SpoolDir = filepath.Join(file, "spool") })
	if o := s.want(t, "ended").outcome; o.Result.Class.Fault() != forge.FaultInfrastructure {
		t.Errorf("the outcome is %+v", o)
	}
	s.Deliver()
	if got := s.want(t, "delivered"); got.seal != (forge.LogSeal{}) {
		t.Errorf("delivered %+v", got)
	}
	s.end(t)
}
