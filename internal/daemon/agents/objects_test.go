package agents_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
)

// remote is the daemon's store as a process has it for an attempt.
func (p *process) remote(c forge.AttemptContext) cas.Store {
	return remote.New(remote.ClientConfig{Link: func(context.Context) (*link.Link, error) { return p.link, nil }}).For(c)
}

// made puts a tree of one file into a store and returns it, with the file.
func (w *world) made(sink cas.Sink, content string) (forge.TreeRef, digest.Ref) {
	w.t.Helper()
	put := func(b []byte) digest.Ref {
		ref := digest.RefOf(b)
		w.must(sink.Put(w.ctx, ref, bytes.NewReader(b)))
		return ref
	}
	file := put([]byte(content))
	var b tree.Builder
	w.must(b.Add("file", tree.Entry{Name: "file", Kind: tree.File, Ref: file}))
	root, _, err := b.Build(func(_ digest.Ref, encoded []byte) error {
		put(encoded)
		return nil
	})
	w.must(err)
	return root, file
}

func read(ctx context.Context, src cas.Source, ref digest.Ref) (string, error) {
	r, err := src.Open(ctx, ref)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	return string(b), err
}

// logged writes a log and returns what is to be completed with it.
func (p *process) logged(c forge.AttemptContext) *forge.Completion {
	p.w.t.Helper()
	p.w.must(p.openLog(c, 1).write("log"))
	p.acked(c.Attempt, 2)
	return p.completion(c, []byte("log"), 1)
}

func withInput(t forge.TreeRef) func(*forge.JobSpec) {
	return func(s *forge.JobSpec) {
		s.Inputs = []forge.Input{{Mount: forge.SourceDir, Tree: t, Mode: forge.InputReadOnly}}
	}
}

func withOutput(s *forge.JobSpec) {
	s.Outputs = []forge.Output{{Name: "bin", Base: forge.SourceDir, Patterns: []string{"*"}, When: forge.WhenSuccess, MaxBytes: forge.MiB, MaxFiles: 4}}
}

// TestAnAttemptReadsItsInputsAndNothingElse: row 09-A26, threat S16. What the same daemon has for others looks absent, and so
// does everything behind an attempt of somebody else.
func TestAnAttemptReadsItsInputsAndNothingElse(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		mine, file := w.made(w.objects.Project("default"), "mine")
		other, secret := w.made(w.objects.Project("default"), "not in any input")
		p, c := w.running(withInput(mine))
		_, theirs := w.running(withInput(other))
		store := p.remote(c)
		for _, ref := range []digest.Ref{mine.Root, file} {
			if _, err := read(w.ctx, store, ref); err != nil {
				t.Errorf("an input cannot be had: %v", err)
			}
		}
		for name, ref := range map[string]digest.Ref{"of another job": secret, "of nobody": digest.RefOf([]byte("nothing"))} {
			if text, err := read(w.ctx, store, ref); !errors.Is(err, cas.ErrNotFound) {
				t.Errorf("an object %s: %q, %v", name, text, err)
			}
		}
		if text, err := read(w.ctx, p.remote(theirs), secret); err == nil {
			t.Errorf("through another's attempt it reads %q", text)
		}
		w.audited("foreign_attempt", p.runner)
	})
}

// TestACompletionNamesWhatIsThere walks the answers about outputs: NOT_YET while something below is missing, then Accepted;
// Invalid for what the job does not declare.
func TestACompletionNamesWhatIsThere(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		p, c := w.running(withOutput)
		elsewhere := w.objects.Project("elsewhere")
		root, file := w.made(elsewhere, "built")
		done := p.logged(c)
		done.Outputs = []forge.OutputRef{{Output: 0, Ref: root.Root, Tree: true}}
		p.complete(done)
		if got := hear[*forge.Error](p); got.Code != forge.ErrorNotYetRef {
			t.Errorf("of what another project has it is told %+v", got)
		}
		w.must(cas.Copy(w.ctx, p.remote(c), elsewhere, []digest.Ref{file, root.Root}))
		if got := p.answer(done); got != forge.CompletionAccepted {
			t.Errorf("the answer is %v", got)
		}
		if got := p.answer(done); got != forge.CompletionDuplicate {
			t.Errorf("the second answer is %v", got)
		}
		if got := w.attempt(c.Attempt).Outputs; len(got) != 1 || got[0].Ref != root.Root {
			t.Errorf("the attempt has %+v", got)
		}
		if err := p.remote(c).Put(w.ctx, digest.RefOf([]byte("late")), bytes.NewReader([]byte("late"))); !errors.Is(err, remote.ErrStale) {
			t.Errorf("after its end something was taken, or %v", err)
		}
	})
	for name, out := range map[string]forge.OutputRef{
		"an output that is not declared": {Output: 1, Tree: true}, "a file that is no tree": {Output: 0, Tree: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.begin()
			p, c := w.running(withOutput)
			out.Ref = digest.RefOf([]byte("\xff no tree"))
			w.must(p.remote(c).Put(w.ctx, out.Ref, bytes.NewReader([]byte("\xff no tree"))))
			done := p.logged(c)
			done.Outputs = []forge.OutputRef{out}
			if got := p.answer(done); got != forge.CompletionInvalid {
				t.Errorf("the answer is %v", got)
			}
		})
	}
}

// TestACompletionWhoseOutputsCannotBeLookedAtIsNotRefused: a fault of the daemon's disk is no fault of the result, and passes.
func TestACompletionWhoseOutputsCannotBeLookedAtIsNotRefused(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p, c := w.running(withOutput)
	root, file := w.made(p.remote(c), "built")
	done := p.logged(c)
	done.Outputs = []forge.OutputRef{{Output: 0, Ref: root.Root, Tree: true}}
	folder := filepath.Join(w.dir, "cas", "b3", file.Digest.String()[len("b3:"):][:2])
	w.must(os.Rename(folder, folder+".aside"))
	if err := os.Symlink(folder, folder); err != nil { // nobody can say what is behind it
		t.Skip("no links can be made here:", err)
	}
	p.complete(done)
	if got := hear[*forge.Error](p); got.Code != forge.ErrorNotYetRef {
		t.Errorf("it is told %+v", got)
	}
	w.must(os.Remove(folder))
	w.must(os.Rename(folder+".aside", folder))
	if got := p.answer(done); got != forge.CompletionAccepted {
		t.Errorf("the answer is %v", got)
	}
}
