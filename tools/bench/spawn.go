//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// How much is measured in one run.
const (
	spawnsPerRun     = 40
	spawnsPerRateRun = 160
	spawnsAtOnce     = 8
	heldBytes        = 1 << 30
)

// coldFigure is a whole attempt of one step that does nothing, in a sandbox that is made for it: from its order until nothing
// of it is left.
var coldFigure = figure{
	name: "spawn.cold", unit: "ms", limitIs: "bubblewrap with the same namespaces and mounts, without a filter, Landlock and a control group",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newSpawnYard(ctx, native.Config{Slots: 1})
		if err != nil {
			return pair{}, err
		}
		return pair{ours: each(y.cold), limit: each(y.bubble), end: y.close}, nil
	},
}

// poolFigure is what is left of that when its sandbox waits for it: from the release of the step until nothing of it is left.
// No other sandbox is made meanwhile, as it would be to fill the pool again.
var poolFigure = figure{
	name: "spawn.pool", unit: "ms", limitIs: "fork, exec and wait for the same program",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newSpawnYard(ctx, native.Config{Slots: 1})
		if err != nil {
			return pair{}, err
		}
		return pair{ours: each(y.released), limit: each(y.plain), end: y.close}, nil
	},
}

// heapFigure is the first one by an agent that holds much memory, which must not be copied for each child.
var heapFigure = figure{
	name: "spawn.heap", unit: "ms", limitIs: "the same without 1 GiB that the agent holds",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newSpawnYard(ctx, native.Config{Slots: 1})
		if err != nil {
			return pair{}, err
		}
		return pair{ours: heavy(each(y.cold)), limit: each(y.cold), end: y.close}, nil
	},
}

// rateFigure is how many of them there are in a second.
var rateFigure = figure{
	name: "spawn.rate", unit: "jobs/s", limitIs: "bubblewrap, as in spawn.cold, 8 at a time as well",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newSpawnYard(ctx, native.Config{Slots: spawnsAtOnce, Pool: sandbox.DefaultPool})
		if err != nil {
			return pair{}, err
		}
		return pair{ours: manyAtOnce(y.cold), limit: manyAtOnce(y.bubble), end: y.close}, nil
	},
}

// spawn makes one process, waits until it is over, and says how long the part of it took that is measured.
type spawn func(ctx context.Context) (time.Duration, error)

// each is the median in milliseconds of many spawns, one after the other.
func each(one spawn) func(context.Context) (float64, error) { return several(spawnsPerRun, one) }

// several is each for so many.
func several(spawns int, one spawn) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		var took []float64
		for range spawns {
			d, err := one(ctx)
			if err != nil {
				return 0, err
			}
			took = append(took, float64(d)/float64(time.Millisecond))
		}
		return median(took), nil
	}
}

// manyAtOnce is how many spawns there are in a second when several are under way.
func manyAtOnce(one spawn) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		var workers sync.WaitGroup
		var mu sync.Mutex
		var failed error
		begun := time.Now()
		for range spawnsAtOnce {
			workers.Go(func() {
				for range spawnsPerRateRun / spawnsAtOnce {
					if _, err := one(ctx); err != nil {
						mu.Lock()
						failed = errors.Join(failed, err)
						mu.Unlock()
						return
					}
				}
			})
		}
		workers.Wait()
		return spawnsPerRateRun / time.Since(begun).Seconds(), failed
	}
}

// heavy measures while this process holds memory that it uses.
func heavy(measure func(context.Context) (float64, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		held := make([]byte, heldBytes)
		for i := 0; i < len(held); i += os.Getpagesize() {
			held[i] = 1
		}
		value, err := measure(ctx)
		held[0]++ // it is held until here
		held = nil
		debug.FreeOSMemory()
		return value, err
	}
}

// spawnYard is what both sides need.
type spawnYard struct {
	folder   string
	executor *native.Executor
	bwrap    string
}

func newSpawnYard(ctx context.Context, cfg native.Config) (*spawnYard, error) {
	bwrap, err := bubblewrap(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "fybench")
	if err != nil {
		return nil, err
	}
	y := &spawnYard{folder: folder, bwrap: bwrap}
	if y.executor, err = openNative(ctx, folder, cfg); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return y, nil
}

// openNative opens an executor with its state and its helper in a folder.
func openNative(ctx context.Context, folder string, cfg native.Config) (*native.Executor, error) {
	cfg.State, cfg.Program = filepath.Join(folder, "state"), filepath.Join(folder, "forgeyard-sandbox")
	if err := buildHelper(ctx, cfg.Program); err != nil {
		return nil, err
	}
	return native.Open(ctx, cfg)
}

// buildHelper builds the program that stands beside an agent's, as it is shipped. This one is bigger and starts more slowly.
func buildHelper(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/forgeyard/forgeyard/cmd/forgeyard-sandbox")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build forgeyard-sandbox: %w\n%s", err, out)
	}
	return nil
}

func (y *spawnYard) close() {
	_ = y.executor.Close()
	_ = os.RemoveAll(y.folder)
}

// workFolder makes a folder for one spawn, which takes no part of what is measured.
func workFolder(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "work")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Mkdir(filepath.Join(dir, "home"), 0o700), os.Mkdir(filepath.Join(dir, "tmp"), 0o700), os.Mkdir(filepath.Join(dir, "src"), 0o700))
}

// cold is an attempt from its preparation to its end.
func (y *spawnYard) cold(ctx context.Context) (time.Duration, error) {
	whole, _, err := y.attempt(ctx)
	return whole, err
}

// released is one from the release of its step.
func (y *spawnYard) released(ctx context.Context) (time.Duration, error) {
	_, released, err := y.attempt(ctx)
	return released, err
}

// attempt runs a program that does nothing in a sandbox.
func (y *spawnYard) attempt(ctx context.Context) (whole, released time.Duration, err error) {
	folder, err := workFolder(y.folder)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	w, err := y.executor.Prepare(ctx, idleOrder(folder))
	if err != nil {
		return 0, 0, err
	}
	ready := time.Now()
	if err := w.Start(nil); err != nil {
		return 0, 0, errors.Join(err, w.Close())
	}
	<-w.Done()
	ended := time.Now()
	if class := w.Outcome().Result.Class; class != forge.Succeeded {
		err = fmt.Errorf("the step ended with %v", class)
	}
	return ended.Sub(begun), ended.Sub(ready), errors.Join(err, w.Close(), os.RemoveAll(folder))
}

// idleOrder is the order for an attempt of one step that does nothing.
func idleOrder(folder string, inputs ...executor.Input) executor.Order {
	spec := forge.DefaultJobSpec()
	spec.Job, spec.Network = "nothing", forge.NetworkNone
	spec.Steps = []forge.Step{{Argv: []string{"/bin/true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	return executor.Order{
		Context: forge.AttemptContext{
			Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
			Spec: forge.SpecID([]byte("bench")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
		},
		Spec: spec, Folder: folder, Inputs: inputs, Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(time.Hour), Output: silence{},
	}
}

// silence is the log of an attempt that prints nothing.
type silence struct{}

func (silence) Write(forge.LogStream, []byte) {}
func (silence) Event(forge.StepEvent)         {}
