// Package executortest is the suite that each executor passes. It runs real commands of a Unix system: sh, and the usual
// small tools.
//
// Every test counts on its executor leaving nothing behind: no process, no file outside of the attempt's folder, no
// descriptor, no goroutine.
package executortest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// Options say what is tested.
type Options struct {
	// New returns an executor on a state folder. One that is an io.Closer is closed before the suite looks for what is left.
	New func(t *testing.T, state string) executor.Executor
	// Kind is what a spec asks for to be run by it.
	Kind forge.SandboxKind
	// Supervised says that a process stands between agent and steps, so that none of them can get away and nothing of the
	// agent comes through.
	Supervised bool
	// Keeps names the files of the state folder that stay.
	Keeps []string
	// Work and Temp are where the steps see the attempt's folder and the one for temporary files, if that is not where they
	// are on this machine.
	Work, Temp string
	// Confined says that steps are confined, so that their log does not begin with a warning.
	Confined bool
}

// patience bounds every wait of the suite. Nothing of it is meant to take so long.
const patience = 3 * time.Minute

// Run runs the whole suite.
func Run(t *testing.T, o Options) {
	for _, group := range []struct {
		name  string
		tests []testCase
	}{
		{"ends", ends},
		{"steps", steps},
		{"output", output},
		{"environment", environment},
		{"stop", stops},
		{"deadline", deadlines},
		{"leftovers", leftovers},
		{"inputs", inputs},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) {
					if c.supervised && !o.Supervised {
						t.Skip("this executor has no supervisors")
					}
					c.run(newBench(t, o))
				})
			}
		})
	}
}

type testCase struct {
	name       string
	run        func(b *bench)
	supervised bool // needs Options.Supervised
}

// bench is one test's executor, order and sink.
type bench struct {
	*testing.T
	exec       executor.Executor
	sink       *Sink
	order      executor.Order
	secret     []executor.Secret
	options    Options
	goroutines goleak.Option // those before the test
	unique     string        // in the environment of all steps, and nowhere else on the machine
}

// removable lets whoever runs the test remove the folders of read-only inputs, root or not.
func removable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}

func newBench(t *testing.T, o Options) *bench {
	b := &bench{T: t, sink: NewSink(), options: o}
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // never fails
	b.unique = "forgeyard-test-" + hex.EncodeToString(raw)
	dir := t.TempDir()
	before := resources(t)
	b.goroutines = goleak.IgnoreCurrent()
	b.exec = o.New(t, filepath.Join(dir, "state"))
	b.order = executor.Order{
		Context:  newContext(),
		Spec:     forge.DefaultJobSpec(),
		Folder:   filepath.Join(dir, "work"),
		Policy:   forge.DefaultLeasePolicy(),
		Deadline: clock.Boot().Add(time.Hour),
		Output:   b.sink,
	}
	b.order.Spec.Job = "suite"
	b.order.Spec.Sandbox.Kind = o.Kind
	b.order.Spec.Env = []forge.EnvVar{{Name: "UNIQUE", Value: b.unique}}
	b.order.Spec.Timeouts.Grace = 30 * time.Second
	t.Cleanup(func() {
		if c, ok := b.exec.(io.Closer); ok {
			if err := c.Close(); err != nil {
				t.Error("close the executor: ", err)
			}
		}
		if !t.Failed() {
			b.leftNothing(dir, before)
		}
		removable(dir)
	})
	return b
}

func newContext() forge.AttemptContext {
	return forge.AttemptContext{
		Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
		Spec: forge.SpecID([]byte("spec")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
	}
}

// script is a step of the shell.
func script(text string) forge.Step {
	return forge.Step{Script: text, Shell: []string{"sh", "-c"}, Dir: forge.SourceDir, When: forge.WhenSuccess}
}

// argv is a step of a program.
func argv(args ...string) forge.Step {
	return forge.Step{Argv: args, Dir: forge.SourceDir, When: forge.WhenSuccess}
}

// prepare makes a workload of steps.
func (b *bench) prepare(steps ...forge.Step) executor.Workload {
	b.Helper()
	b.order.Spec.Steps = steps
	if err := b.order.Spec.Validate(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w, err := b.exec.Prepare(ctx, b.order)
	if err != nil {
		b.Fatal("prepare: ", err)
	}
	b.Cleanup(func() {
		b.sink.Hold(false)
		if err := w.Close(); err != nil {
			b.Error("close: ", err)
		}
	})
	return w
}

// start prepares and starts.
func (b *bench) start(steps ...forge.Step) executor.Workload {
	b.Helper()
	w := b.prepare(steps...)
	if err := w.Start(b.secret); err != nil {
		b.Fatal("start: ", err)
	}
	return w
}

// outcome waits for the end.
func (b *bench) outcome(w executor.Workload) executor.Outcome {
	b.Helper()
	select {
	case <-w.Done():
		o := w.Outcome()
		if err := o.Result.Validate(); err != nil {
			b.Error("result: ", err)
		}
		return o
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		b.Fatalf("the workload does not end\n%s", stacks[:runtime.Stack(stacks, true)])
		panic("unreachable")
	}
}

// run starts steps and waits for their end.
func (b *bench) run(steps ...forge.Step) executor.Outcome {
	b.Helper()
	return b.outcome(b.start(steps...))
}

// want checks class and detail of a result.
func (b *bench) want(got forge.Result, class forge.Class, exitCode, signal uint8) {
	b.Helper()
	if got.Class != class || got.ExitCode != exitCode || got.Signal != signal {
		b.Errorf("ended %v, exit code %d, signal %d; want %v, %d, %d\noutput: %s\nerrors: %s", got.Class, got.ExitCode, got.Signal,
			class, exitCode, signal, b.sink.Text(forge.LogStdout), b.sink.Text(forge.LogStderr))
	}
}

func (b *bench) stdout(want string) {
	b.Helper()
	if got := b.sink.Text(forge.LogStdout); got != want {
		b.Errorf("output %q, want %q", got, want)
	}
}

// readFile reads a file of the attempt's folder.
func (b *bench) readFile(path string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.order.Folder, path))
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}
