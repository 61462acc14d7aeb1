package attempt_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
)

// shelf is objects in memory.
type shelf struct {
	tree    func(context.Context) error // before a tree is given
	deliver func(context.Context) error
	full    bool // of the next file there is no room

	mu       sync.Mutex
	held     int // trees
	objects  map[digest.Ref]bool
	delivers int
	open     int // outputs that were not closed
}

func (s *shelf) Tree(ctx context.Context, _ forge.AttemptContext, _ forge.TreeRef) (string, func(), error) {
	if s.tree != nil {
		if err := s.tree(ctx); err != nil {
			return "", nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held++
	return "/trees/one", func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held--
	}, nil
}

func (s *shelf) Outputs(forge.AttemptContext) attempt.Outputs {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return (*box)(s)
}

type box shelf

func (b *box) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return digest.Ref{}, err
	}
	b.mu.Lock()
	full := b.full
	b.full = false
	b.mu.Unlock()
	if full {
		return digest.Ref{}, cas.ErrFull
	}
	ref := digest.RefOf(all)
	return ref, b.Put(ctx, ref, nil)
}

func (b *box) Put(_ context.Context, ref digest.Ref, _ io.Reader) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects == nil {
		b.objects = map[digest.Ref]bool{}
	}
	b.objects[ref] = true
	return nil
}

func (b *box) Deliver(ctx context.Context) error {
	b.mu.Lock()
	b.delivers++
	b.mu.Unlock()
	if b.deliver == nil {
		return nil
	}
	return b.deliver(ctx)
}

func (b *box) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
}

// given returns what is not given back.
func (s *shelf) given() (trees, outputs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.open
}

func output(name string, when forge.When, patterns ...string) forge.Output {
	return forge.Output{Name: name, Base: forge.SourceDir, Patterns: patterns, When: when, MaxBytes: forge.MiB, MaxFiles: 10}
}

func TestInputsAreThereBeforeTheWorkloadAndHeldUntilItsCleanUp(t *testing.T) {
	var found []executor.Input
	objects := &shelf{}
	s := begin(t, &runnertest.Machine{Preparing: func(_ context.Context, o executor.Order) error {
		found = o.Inputs
		return nil
	}}, func(c *attempt.Config) {
		c.Objects = objects
		c.Spec.Inputs = []forge.Input{{Mount: "source", Mode: forge.InputCopyOnWrite}, {Mount: "needs/a/b", Mode: forge.InputReadOnly}}
	})
	s.want(t, "prepared")
	if len(found) != 2 || found[1] != (executor.Input{Mount: filepath.Join("needs", "a", "b"), Tree: "/trees/one", Mode: forge.InputReadOnly}) {
		t.Errorf("the workload finds %+v", found)
	}
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	if trees, _ := objects.given(); trees != 2 {
		t.Errorf("%d trees are held while the workspace is there", trees)
	}
	s.Deliver()
	s.want(t, "delivered")
	s.end(t)
	if trees, _ := objects.given(); trees != 0 {
		t.Errorf("%d trees are held after the clean-up", trees)
	}
}

// TestAnInputThatCannotBeHadEndsTheAttemptBeforeAnythingRuns also holds that the class says whose fault it is. 07§54 07§55.
func TestAnInputThatCannotBeHadEndsTheAttemptBeforeAnythingRuns(t *testing.T) {
	objects := &shelf{tree: func(context.Context) error {
		return &executor.SetupError{Class: forge.CorruptInput, Err: errors.New("object b3:12 is damaged")}
	}}
	s := begin(t, &runnertest.Machine{Preparing: func(context.Context, executor.Order) error {
		t.Error("the executor was asked")
		return nil
	}}, func(c *attempt.Config) {
		c.Objects, c.Spec.Inputs = objects, []forge.Input{{Mount: "source", Mode: forge.InputReadOnly}}
	})
	if o := s.want(t, "ended").outcome; o.Result.Class != forge.CorruptInput {
		t.Errorf("the outcome is %+v", o)
	}
	s.Deliver()
	s.want(t, "delivered")
	if log := s.log(t); !strings.Contains(log, "b3:12 is damaged") {
		t.Errorf("the log does not name the object: %q", log)
	}
	s.end(t)
}

// leaving is a workload that leaves files and ends like that.
func leaving(class forge.Class, files ...string) *runnertest.Machine {
	return &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(w.Folder, forge.SourceDir, name), []byte(name), 0o600); err != nil {
				panic(err)
			}
		}
		r := forge.Result{Class: class}
		if class == forge.ExitCode {
			r.ExitCode = 1
		}
		return r
	}}
}

// TestWhichOutputsAreKeptDependsOnTheEnd: B80 too: what matches is kept where something else is missing.
func TestWhichOutputsAreKeptDependsOnTheEnd(t *testing.T) {
	outputs := []forge.Output{
		output("good", forge.WhenSuccess, "good"), output("bad", forge.WhenFailure, "bad"), output("any", forge.WhenAlways, "any"),
	}
	required := output("there", forge.WhenAlways, "nowhere")
	required.Required = true
	for _, test := range []struct {
		name    string
		end     forge.Class
		outputs []forge.Output
		want    []uint16
		capture forge.Class
		says    string
	}{
		{"success", forge.Succeeded, outputs, []uint16{0, 2}, forge.Succeeded, ""},
		{"failure", forge.ExitCode, outputs, []uint16{1, 2}, forge.Succeeded, ""},
		{"one is missing", forge.Succeeded, append(outputs, required), []uint16{0, 2}, forge.OutputMissing, "nowhere"},
		{"an optional one is missing", forge.Succeeded, []forge.Output{output("opt", forge.WhenAlways, "opt", "any")}, []uint16{0}, forge.Succeeded, "nothing matches \"opt\""},
		{"lost", forge.Lost, outputs, nil, forge.Succeeded, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := &shelf{}
			s := begin(t, leaving(test.end, "good", "bad", "any"), func(c *attempt.Config) { c.Objects, c.Spec.Outputs = objects, test.outputs })
			s.want(t, "prepared")
			s.Start()
			s.want(t, "started")
			s.want(t, "ended")
			s.Deliver()
			got := s.want(t, "delivered")
			var kept []uint16
			for _, o := range got.outputs {
				if kept = append(kept, o.Output); !o.Tree || !objects.objects[o.Ref] {
					t.Errorf("output %d is reported as %+v and is not there", o.Output, o)
				}
			}
			if !slices.Equal(kept, test.want) || got.capture != test.capture {
				t.Errorf("kept %v, capture %v; want %v, %v", kept, got.capture, test.want, test.capture)
			}
			if log := s.log(t); !strings.Contains(log, test.says) {
				t.Errorf("the log does not say %q: %q", test.says, log)
			}
			s.end(t)
			if _, open := objects.given(); open != 0 {
				t.Errorf("%d outputs were not closed", open)
			}
		})
	}
}

// TestAnUploadHasItsTime holds 07§87 too: what the workload did stands, and no step runs again.
func TestAnUploadHasItsTime(t *testing.T) {
	objects := &shelf{deliver: func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	s := begin(t, leaving(forge.Succeeded, "good"), func(c *attempt.Config) {
		c.Objects, c.Spec.Outputs, c.Spec.Timeouts.Upload = objects, []forge.Output{output("good", forge.WhenSuccess, "good")}, 50*time.Millisecond
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	if got := s.want(t, "delivered"); got.capture != forge.UploadFailed || len(got.outputs) != 0 {
		t.Errorf("delivered %+v", got)
	}
	if log := s.log(t); !strings.Contains(log, "not uploaded within 50ms") {
		t.Errorf("the log does not say why: %q", log)
	}
	s.end(t)
}

func TestACleanUpGivesAnUploadUp(t *testing.T) {
	uploading := make(chan struct{})
	objects := &shelf{deliver: func(ctx context.Context) error {
		close(uploading)
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	s := begin(t, leaving(forge.Succeeded, "good"), func(c *attempt.Config) {
		c.Objects, c.Spec.Outputs = objects, []forge.Output{output("good", forge.WhenSuccess, "good")}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	<-uploading
	s.end(t)
}
