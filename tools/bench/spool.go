//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zeebo/blake3"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

// spoolBytes is about how much a child prints.
const spoolBytes = forge.GiB

// spoolFigure is how fast an attempt takes what a program prints line by line while no daemon takes any of it: through the
// executor's pipe and the masking, with no secret to mask, into a spool that holds its writer back where it is full, and is
// large enough that it never is. Neither side waits until the disk has synced.
var spoolFigure = figure{
	name: "log.spool", unit: "MB/s", limitIs: "the same child, seq, whose output is a file",
	begin: func(context.Context, options) (pair, error) {
		y, err := newSpoolYard(child{"seq", "1000000000", "1097612893"}) // lines of eleven bytes
		if err != nil {
			return pair{}, err
		}
		return pair{ours: y.attempt, limit: y.file, end: y.close}, nil
	},
}

// pourFigure is the same for a child that costs nothing itself, against the least that can be done with what it prints.
var pourFigure = figure{
	name: "log.pour", unit: "MB/s", limitIs: "dd into a pipe, from there through BLAKE3 into a file, 256 KiB at a time",
	begin: func(context.Context, options) (pair, error) {
		y, err := newSpoolYard(child{"dd", "if=/dev/zero", "bs=64k", "count=16384", "status=none"})
		if err != nil {
			return pair{}, err
		}
		return pair{ours: y.attempt, limit: y.pipe, end: y.close}, nil
	},
}

// child is a command that prints spoolBytes, and its arguments.
type child []string

// spoolYard is what both sides need.
type spoolYard struct {
	folder   string
	child    child
	executor executor.Executor
	root     *workspace.Root
}

func newSpoolYard(c child) (*spoolYard, error) {
	folder, err := os.MkdirTemp("", "fybench")
	if err != nil {
		return nil, err
	}
	y := &spoolYard{folder: folder, child: c}
	if y.executor, err = process.New(process.Config{State: filepath.Join(folder, "state")}); err != nil {
		return nil, err
	}
	y.root, err = workspace.Open(filepath.Join(folder, "work"), workspace.Options{})
	return y, err
}

func (y *spoolYard) close() {
	_ = y.root.Close()
	_ = os.RemoveAll(y.folder)
}

// output makes the file that a limit writes, and the function that takes it away and says how fast it was written.
func (y *spoolYard) output() (*os.File, func(begun time.Time, err error) (float64, error), error) {
	name := filepath.Join(y.folder, "output")
	out, err := os.Create(name)
	if err != nil {
		return nil, nil, err
	}
	return out, func(begun time.Time, err error) (float64, error) {
		took := time.Since(begun)
		info, statErr := out.Stat()
		if err := errors.Join(err, statErr, out.Close(), os.Remove(name)); err != nil {
			return 0, err
		}
		return megabytes(uint64(info.Size()), took), nil
	}, nil
}

// file lets the child print into a file.
func (y *spoolYard) file(ctx context.Context) (float64, error) {
	out, done, err := y.output()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, y.child[0], y.child[1:]...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	begun := time.Now()
	return done(begun, cmd.Run())
}

// pipe lets it print into a pipe, and hashes and writes what comes.
func (y *spoolYard) pipe(ctx context.Context) (float64, error) {
	out, done, err := y.output()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, y.child[0], y.child[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err = cmd.Start(); err != nil {
		return done(begun, err)
	}
	hash, buffer := blake3.New(), make([]byte, executor.MaxWrite)
	for {
		n, readErr := in.Read(buffer)
		_, _ = hash.Write(buffer[:n]) // never fails
		_, writeErr := out.Write(buffer[:n])
		if readErr != nil || writeErr != nil {
			break
		}
	}
	return done(begun, cmd.Wait())
}

// attempt lets it print into the spool of an attempt. What is measured begins when the attempt may start and ends when
// its log is sealed.
func (y *spoolYard) attempt(ctx context.Context) (float64, error) {
	spec := forge.DefaultJobSpec()
	spec.Job, spec.Network, spec.LogLimit = "print", forge.NetworkHost, 2*spoolBytes
	spec.Sandbox.Kind = forge.SandboxProcess
	spec.Steps = []forge.Step{{Argv: y.child, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	heard := make(heard, 8)
	a := attempt.New(attempt.Config{
		Context: forge.AttemptContext{
			Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
			Spec: forge.SpecID([]byte("bench")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
		},
		Spec: spec, Deadline: clock.Boot().Add(time.Hour), Policy: forge.DefaultLeasePolicy(),
		Executor: y.executor, Workspaces: y.root, SpoolDir: filepath.Join(y.folder, "spool"),
		Spool:    logspool.Config{Bound: 2 * spoolBytes, Policy: logspool.Block},
		Reporter: heard, Log: slog.New(slog.DiscardHandler),
		Wall: func() forge.WallTime { return forge.WallTime(clock.Wall().UnixNano()) },
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx)
	}()
	speed, err := printed(ctx, a, heard)
	if err == nil {
		a.CleanUp()
		_, err = heard.next(ctx)
	} else {
		a.Kill()
	}
	if err == nil {
		<-ended
	}
	return speed, err
}

// printed walks an attempt from its preparation to its seal.
func printed(ctx context.Context, a *attempt.Attempt, told heard) (float64, error) {
	if _, err := told.next(ctx); err != nil { // it is prepared
		return 0, err
	}
	begun := time.Now()
	a.Start()
	if _, err := told.next(ctx); err != nil { // it runs
		return 0, err
	}
	end, err := told.next(ctx)
	if err != nil {
		return 0, err
	}
	if end.outcome.Result.Class != forge.Succeeded {
		return 0, fmt.Errorf("the child ended with %v", end.outcome.Result.Class)
	}
	a.Deliver()
	sealed, err := told.next(ctx)
	if err != nil {
		return 0, err
	}
	took := time.Since(begun)
	if sealed.seal.Bytes < uint64(spoolBytes) {
		return 0, fmt.Errorf("the log has only %d bytes", sealed.seal.Bytes)
	}
	return megabytes(sealed.seal.Bytes, took), nil
}

// megabytes is a speed in 10⁶ bytes a second.
func megabytes(bytes uint64, took time.Duration) float64 {
	return float64(bytes) / 1e6 / took.Seconds()
}

// told is one report of an attempt.
type told struct {
	outcome executor.Outcome
	seal    forge.LogSeal
	err     error
}

// heard collects the reports of an attempt.
type heard chan told

func (h heard) Prepared(forge.AttemptID)                    { h <- told{} }
func (h heard) Started(forge.AttemptID)                     { h <- told{} }
func (h heard) Ended(_ forge.AttemptID, o executor.Outcome) { h <- told{outcome: o} }
func (h heard) CleanedUp(_ forge.AttemptID, err error)      { h <- told{err: err} }
func (h heard) Redelivered(_ forge.AttemptID, err error)    { h <- told{err: err} }

func (h heard) Delivered(_ forge.AttemptID, _ []forge.OutputRef, _ forge.Class, seal forge.LogSeal) {
	h <- told{seal: seal}
}

func (h heard) next(ctx context.Context) (told, error) {
	select {
	case t := <-h:
		return t, t.err
	case <-ctx.Done():
		return told{}, context.Cause(ctx)
	}
}
