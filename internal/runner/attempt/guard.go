package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/redact"
)

// guarded looks for the job's secrets in what it keeps, names of files included. In what steps wrote as their outputs it
// masks them, since those become the environment of other jobs and stand in plans and answers; files are kept as they are, and
// somebody is told (case B68).
type guarded struct {
	Outputs
	redactor *redact.Redactor
	masks    bool
	found    atomic.Bool
}

// guard returns the sink of an output that looks for secrets, where there are any.
func (a *Attempt) guard(out forge.Output, sink Outputs) Outputs {
	a.out.mu.Lock()
	defer a.out.mu.Unlock()
	if a.out.redactor == nil {
		return sink
	}
	return &guarded{Outputs: sink, redactor: a.out.redactor, masks: out.Base == executor.StepOutputs}
}

// found tells the reader of the log what was found in an output.
func (a *Attempt) found(out forge.Output, sink Outputs) {
	g, ok := sink.(*guarded)
	switch {
	case !ok || !g.found.Load():
	case g.masks:
		a.out.notice(forge.LevelWarning, "a step has written a secret into its outputs; other jobs get "+redact.Mask+" in its place")
	case out.Dispensable():
		a.out.notice(forge.LevelWarning, "a cache that is kept has the value of a secret in it: whoever uses it can read that")
	default:
		a.out.notice(forge.LevelWarning, fmt.Sprintf("the artifact %s has the value of a secret in it: whoever may read it can read that", out.Name))
	}
}

// errLargeOutput is no output of steps that a pipeline can use.
var errLargeOutput = errors.New("outputs of steps are too large to be masked")

// Add keeps a file, in outputs of steps without secrets.
func (g *guarded) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	if !g.masks {
		seen := g.redactor.Stream(io.Discard)
		ref, err := g.Outputs.Add(ctx, io.TeeReader(r, seen))
		return ref, errors.Join(err, g.see(seen))
	}
	var clean bytes.Buffer
	seen := g.redactor.Stream(&clean)
	n, err := io.Copy(seen, io.LimitReader(r, int64(executor.MaxStepOutputs)+1))
	switch err = errors.Join(err, g.see(seen)); {
	case err != nil:
		return digest.Ref{}, err
	case n > int64(executor.MaxStepOutputs):
		return digest.Ref{}, errLargeOutput
	}
	return g.Outputs.Add(ctx, &clean)
}

// Put keeps a folder, whose names are looked at.
func (g *guarded) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	seen := g.redactor.Stream(io.Discard)
	err := g.Outputs.Put(ctx, ref, io.TeeReader(r, seen))
	return errors.Join(err, g.see(seen))
}

// see takes down whether there was a secret, once all bytes have passed.
func (g *guarded) see(s *redact.Stream) error {
	err := s.Flush()
	if s.Masked() {
		g.found.Store(true)
	}
	return err
}
