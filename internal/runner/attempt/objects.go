package attempt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Objects moves what an attempt reads and what it leaves. Its methods may be called from several goroutines at once.
type Objects interface {
	// Tree brings a tree to this machine, whole and verified, as a folder that nobody writes to, and keeps it until release is
	// called. An error is a *executor.SetupError of the class that fits.
	Tree(ctx context.Context, of forge.AttemptContext, t forge.TreeRef) (folder string, release func(), err error)
	// Outputs returns where the outputs of an attempt go.
	Outputs(of forge.AttemptContext) Outputs
}

// Outputs takes the files of an attempt and delivers them.
type Outputs interface {
	capture.Sink
	// Deliver returns once the daemon has everything that was taken. It goes on over lost connections until ctx ends.
	Deliver(ctx context.Context) error
	// Close forgets what was taken. It must be called.
	Close()
}

// inputs brings the trees of the spec to this machine.
func (a *Attempt) inputs(ctx context.Context) ([]executor.Input, error) {
	var inputs []executor.Input
	for _, in := range a.cfg.Spec.Inputs {
		if a.cfg.Objects == nil {
			return nil, &executor.SetupError{Class: forge.InputFetch, Err: errors.New("this agent fetches no inputs")}
		}
		folder, release, err := a.cfg.Objects.Tree(ctx, a.cfg.Context, in.Tree)
		if err != nil {
			return nil, err
		}
		a.releases = append(a.releases, release)
		inputs = append(inputs, executor.Input{Mount: filepath.FromSlash(in.Mount), Tree: folder, Mode: in.Mode})
	}
	return inputs, nil
}

// release gives the trees back. The workload is closed before.
func (a *Attempt) releaseInputs() {
	for _, release := range a.releases {
		release()
	}
	a.releases = nil
}

// delivery is what an attempt has delivered.
type delivery struct {
	outputs []forge.OutputRef
	capture forge.Class
	seal    forge.LogSeal
}

// deliverAll captures and uploads the outputs, and ends the log behind what there is to say about them.
func (a *Attempt) deliverAll(ctx context.Context) delivery {
	var d delivery
	d.outputs, d.capture = a.deliverOutputs(ctx)
	class, seal := a.seal()
	if d.capture == forge.Succeeded {
		d.capture = class
	}
	d.seal = seal
	return d
}

// deliverOutputs captures the outputs that are wanted after such an end, and uploads them. What could be captured is
// uploaded even where something else could not. It returns the first class that says why something is missing.
func (a *Attempt) deliverOutputs(ctx context.Context) ([]forge.OutputRef, forge.Class) {
	if !a.captures() {
		return nil, forge.Succeeded
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Spec.Timeouts.Upload)
	defer cancel()
	if a.cfg.Objects == nil {
		return nil, a.undelivered(forge.UploadFailed, errors.New("this agent uploads no outputs"))
	}
	root, err := a.workload.Files()
	if err != nil {
		return nil, a.undelivered(forge.UploadFailed, fmt.Errorf("the job's files cannot be read any more: %w", err))
	}
	defer func() { _ = root.Close() }()
	sink := a.cfg.Objects.Outputs(a.cfg.Context)
	defer sink.Close()
	refs, class := a.capture(ctx, root, sink)
	if len(refs) == 0 {
		return nil, class
	}
	if err := sink.Deliver(ctx); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("they were not uploaded within %v: %w", a.cfg.Spec.Timeouts.Upload, err)
		}
		return nil, a.undelivered(forge.UploadFailed, err)
	}
	return refs, class
}

// capture captures the outputs, each by itself.
func (a *Attempt) capture(ctx context.Context, root *os.Root, sink Outputs) (refs []forge.OutputRef, class forge.Class) {
	class = forge.Succeeded
	for i, out := range a.cfg.Spec.Outputs {
		if !wanted(out.When, a.outcome.Result.Class) {
			continue
		}
		r, err := capture.Take(ctx, root, out, sink, capture.Limits{})
		for _, warning := range r.Warnings {
			a.out.notice(forge.LevelWarning, warning)
		}
		if err != nil {
			if c := a.undelivered(captureClass(err), err); class == forge.Succeeded {
				class = c
			}
			continue
		}
		if !r.Tree.Root.IsZero() {
			refs = append(refs, forge.OutputRef{Output: uint16(i), Ref: r.Tree.Root, Tree: true})
		}
	}
	return refs, class
}

// captures reports whether there is anything to capture: something ran, and an output is wanted after an end like its.
func (a *Attempt) captures() bool {
	if !a.started || a.outcome.Bitten || a.outcome.Result.Class == forge.Lost {
		return false
	}
	for _, out := range a.cfg.Spec.Outputs {
		if wanted(out.When, a.outcome.Result.Class) {
			return true
		}
	}
	return false
}

// wanted reports whether something is wanted after a workload that ended like that. A cancelled one has neither succeeded
// nor failed.
func wanted(when forge.When, c forge.Class) bool {
	switch when {
	case forge.WhenSuccess:
		return c == forge.Succeeded
	case forge.WhenFailure:
		return c != forge.Succeeded && c != forge.Cancelled
	default:
		return when == forge.WhenAlways
	}
}

func captureClass(err error) forge.Class {
	var known *capture.Error
	if errors.As(err, &known) && known.Class.Valid() {
		return known.Class
	}
	return forge.UploadFailed
}

// undelivered says why outputs are missing.
func (a *Attempt) undelivered(class forge.Class, err error) forge.Class {
	a.out.notice(forge.LevelError, "the job's outputs could not be kept: "+err.Error())
	a.cfg.Log.Warn("outputs of an attempt were not delivered", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(),
		telemetry.KeyClass, class.String(), telemetry.KeyError, err)
	return class
}
