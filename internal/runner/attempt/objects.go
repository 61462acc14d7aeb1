package attempt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/capture"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Objects moves what an attempt reads and what it leaves. Its methods may be called from several goroutines at once.
type Objects interface {
	// Tree brings a tree to this machine, whole and verified, as a folder that nobody writes to, and keeps it until release is
	// called. An error is a *executor.SetupError of the class that fits.
	Tree(ctx context.Context, of forge.AttemptContext, t forge.TreeRef) (folder string, release func(), err error)
	// Outputs returns where an output of an attempt goes.
	Outputs(of forge.AttemptContext) Outputs
}

// Outputs takes the files of an output and delivers them. What it has taken is kept on this machine until Close.
type Outputs interface {
	capture.Sink
	// Deliver returns once the daemon has everything that was taken. It goes on over lost connections until ctx ends. It may
	// be called again, and then sends what the daemon misses. The error is cas.ErrNotFound or a *cas.CorruptError where an object is
	// missing that this machine cannot give any more; taking it again mends that.
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

// captured is an output that was captured, until the completion that names it is answered. Until then its sink keeps what
// is in it on this machine.
type captured struct {
	index int // in the spec
	root  digest.Ref
	sink  Outputs
}

// deliverOutputs captures the outputs that are wanted after such an end, and uploads them. What could be captured is
// uploaded even where something else could not. It returns the first class that says why something is missing.
func (a *Attempt) deliverOutputs(ctx context.Context) ([]forge.OutputRef, forge.Class) {
	if !a.captures() {
		return nil, forge.Succeeded
	}
	limit := a.cfg.Spec.Timeouts.Upload
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if a.cfg.Objects == nil {
		return nil, a.undelivered(forge.UploadFailed, errors.New("this agent uploads no outputs"))
	}
	class, err := a.capture(ctx)
	if err == nil {
		err = a.bring(ctx, limit)
	}
	if err != nil {
		a.releaseOutputs()
		return nil, a.undelivered(forge.UploadFailed, err)
	}
	var refs []forge.OutputRef
	for _, out := range a.outputs {
		refs = append(refs, forge.OutputRef{Output: uint16(out.index), Ref: out.root, Tree: true})
	}
	return refs, class
}

// deliverAgain uploads what the daemon misses of what it was given. The log has ended, so its reader hears nothing of it.
func (a *Attempt) deliverAgain(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	log := a.cfg.Log.With(telemetry.KeyAttempt, a.cfg.Context.Attempt.String())
	err := a.bring(ctx, within)
	if err != nil {
		log.Warn("the daemon misses outputs of an attempt and cannot get them any more", telemetry.KeyError, a.out.masked(err.Error()))
		return err
	}
	log.Info("the daemon missed outputs of an attempt and has them again")
	return nil
}

// bring uploads the outputs that were captured. What this machine has lost of them meanwhile is captured once more: the
// job's files are there, and nothing changes them.
func (a *Attempt) bring(ctx context.Context, limit time.Duration) error {
	for _, out := range a.outputs {
		err := out.sink.Deliver(ctx)
		if lost(err) && ctx.Err() == nil {
			a.cfg.Log.Warn("an output is captured once more", telemetry.KeyAttempt, a.cfg.Context.Attempt.String(), telemetry.KeyError, a.out.masked(err.Error()))
			if err = a.recapture(ctx, out); err == nil {
				err = out.sink.Deliver(ctx)
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
			return fmt.Errorf("they were not uploaded within %v: %w", limit, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lost reports whether an upload failed for an object that is not what it was, or not there any more.
func lost(err error) bool {
	var corrupt *cas.CorruptError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt)
}

// recapture fills the sink of an output anew.
func (a *Attempt) recapture(ctx context.Context, out captured) error {
	root, err := a.files()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r, err := capture.Take(ctx, root, a.cfg.Spec.Outputs[out.index], out.sink, capture.Limits{})
	if err == nil && r.Tree.Root != out.root {
		err = fmt.Errorf("output %s was %v and is %v now", a.cfg.Spec.Outputs[out.index].Name, out.root, r.Tree.Root)
	}
	return err
}

// files opens what the job has left.
func (a *Attempt) files() (*os.Root, error) {
	root, err := a.workload.Files()
	if err != nil {
		return nil, fmt.Errorf("the job's files cannot be read any more: %w", err)
	}
	return root, nil
}

// capture captures the outputs, each by itself and into a sink of its own, so that nothing is uploaded or kept of one that
// is refused.
func (a *Attempt) capture(ctx context.Context) (class forge.Class, err error) {
	root, err := a.files()
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	class = forge.Succeeded
	for i, out := range a.cfg.Spec.Outputs {
		if !wanted(out.When, a.outcome.Result.Class) {
			continue
		}
		sink := a.guard(out, a.cfg.Objects.Outputs(a.cfg.Context))
		r, err := capture.Take(ctx, root, out, sink, capture.Limits{})
		a.found(out, sink)
		for _, warning := range r.Warnings {
			if out.Dispensable() {
				break // an empty cache is no news
			}
			a.out.notice(forge.LevelWarning, warning)
		}
		if err == nil && !r.Tree.Root.IsZero() {
			a.outputs = append(a.outputs, captured{index: i, root: r.Tree.Root, sink: sink})
			continue
		}
		sink.Close()
		switch {
		case err == nil:
			continue
		case out.Dispensable() && ctx.Err() == nil:
			a.out.notice(forge.LevelWarning, "a cache is not kept: "+err.Error())
			continue
		}
		if c := a.undelivered(captureClass(err), err); class == forge.Succeeded {
			class = c
		}
	}
	return class, nil
}

// releaseOutputs gives up what was captured.
func (a *Attempt) releaseOutputs() {
	for _, out := range a.outputs {
		out.sink.Close()
	}
	a.outputs = nil
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
		telemetry.KeyClass, class.String(), telemetry.KeyError, a.out.masked(err.Error()))
	return class
}
