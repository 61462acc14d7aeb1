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

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
)

// library is objects of which a test reads the files.
type library struct {
	shelf
	mu    sync.Mutex
	files []string
}

func (l *library) Outputs(of forge.AttemptContext) attempt.Outputs {
	return &reading{l.shelf.Outputs(of), l}
}

type reading struct {
	attempt.Outputs
	l *library
}

func (r *reading) Add(ctx context.Context, from io.Reader) (digest.Ref, error) {
	all, err := io.ReadAll(from)
	if err != nil {
		return digest.Ref{}, err
	}
	r.l.mu.Lock()
	r.l.files = append(r.l.files, string(all))
	r.l.mu.Unlock()
	return r.Outputs.Add(ctx, strings.NewReader(string(all)))
}

// Put reads what it is given, as stores do.
func (r *reading) Put(ctx context.Context, ref digest.Ref, from io.Reader) error {
	_, err := io.Copy(io.Discard, from)
	return errors.Join(err, r.Outputs.Put(ctx, ref, nil))
}

// leaves runs an attempt with a secret that says and leaves something, and returns its log and the files that were kept.
func leaves(t *testing.T, outputs []forge.Output, files map[string]string, events ...forge.StepEvent) (log string, kept []string) {
	t.Helper()
	objects := &library{}
	s := begin(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		for name, text := range files {
			at := filepath.Join(w.Folder, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
				t.Error(err)
			}
		}
		for _, e := range events {
			w.Output.Event(e)
		}
		return forge.Result{Class: forge.Succeeded}
	}}, func(c *attempt.Config) {
		c.Objects, c.Spec.Outputs = objects, outputs
		c.Spec.Secrets = []forge.SecretUse{{Env: "PASSWORD", Ref: forge.SecretRef{Name: "db/password"}}}
		c.Secrets = func(_ context.Context, _ forge.AttemptContext, uses []forge.SecretUse) ([]executor.Secret, error) {
			return []executor.Secret{{Use: uses[0], Value: forge.NewSecret([]byte("hunter2-hunter2"))}}, nil
		}
	})
	s.want(t, "prepared")
	s.Start()
	s.want(t, "started")
	s.want(t, "ended")
	s.Deliver()
	s.want(t, "delivered")
	log = s.log(t)
	s.end(t)
	slices.Sort(objects.files)
	return log, objects.files
}

// Case B68.
func TestWhatAnAttemptPointsAtHasNoSecret(t *testing.T) {
	log, _ := leaves(t, nil, nil,
		forge.Annotation{Level: forge.LevelError, File: "dir-hunter2-hunter2/a.go", Line: 3, Text: "password=hunter2-hunter2 is wrong"},
		forge.Notice{Level: forge.LevelNotice, Text: "tried hunter2-hunter2"})
	if strings.Contains(log, "hunter2") || !strings.Contains(log, "password=*** is wrong") || !strings.Contains(log, "tried ***") {
		t.Errorf("the log is %q", log)
	}
}

// Case B68. Other jobs get the outputs of steps as their environment, and expressions as their values.
func TestOutputsOfStepsHaveNoSecret(t *testing.T) {
	steps := output("steps", forge.WhenAlways, "**")
	steps.Base = executor.StepOutputs
	log, kept := leaves(t, []forge.Output{steps}, map[string]string{
		".forgeyard/steps/0/output":       "url=https://me:hunter2-hunter2@db/\nplain=x\n",
		".forgeyard/steps/1/outputs/text": "aHVudGVyMi1odW50ZXIy", // in base64
	})
	if !slices.Equal(kept, []string{"***", "url=https://me:***@db/\nplain=x\n"}) {
		t.Errorf("kept: %q", kept)
	}
	if !strings.Contains(log, "a step has written a secret into its outputs") {
		t.Errorf("the log is %q", log)
	}
	if log, _ := leaves(t, []forge.Output{steps}, map[string]string{".forgeyard/steps/0/output": "plain=x\n"}); strings.Contains(log, "secret into") {
		t.Errorf("of nothing, the log is %q", log)
	}
}

// Case B68. Files are kept as they are, and somebody is told.
func TestAnArtifactWithASecretIsKeptAndFlagged(t *testing.T) {
	for name, text := range map[string]string{"report.xml": "<p>hunter2-hunter2</p>", "hunter2-hunter2.txt": "nothing"} {
		log, kept := leaves(t, []forge.Output{output("report", forge.WhenAlways, "**")}, map[string]string{forge.SourceDir + "/" + name: text})
		if !slices.Equal(kept, []string{text}) {
			t.Errorf("kept: %q", kept)
		}
		if !strings.Contains(log, "the artifact report has the value of a secret in it") || strings.Contains(log, "hunter2") {
			t.Errorf("the log is %q", log)
		}
	}
	log, _ := leaves(t, []forge.Output{output("report", forge.WhenAlways, "**")}, map[string]string{forge.SourceDir + "/a": "hunter"})
	if strings.Contains(log, "has the value") {
		t.Errorf("of nothing, the log is %q", log)
	}
}
