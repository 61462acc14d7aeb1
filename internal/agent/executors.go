package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Sandbox says how jobs are confined.
type Sandbox struct {
	Need       bool     // an agent that cannot confine jobs does not start: Run returns *NoSandbox
	ReadOnly   []string // files and folders of this machine that jobs may read besides the system's
	Hide       []string // files and folders that jobs never see, even if they are below one that they may read
	Toolchains []string // likewise, and their programs come first in PATH; see native.Config
	Pool       int      // sandboxes that wait ready
	UIDBase    uint32   // as root: first of the machine's ids that sandboxes use; 0 is the default
	Rootless   bool     // a single id even though this is root
	DiskImages bool     // each job has a disk of its own, where that can be
	// Tell, if set, hears before any job is taken whether jobs can be confined: nil, or why not.
	Tell func(why error)
}

// NoSandbox says that jobs cannot be confined on this machine.
type NoSandbox struct{ Err error }

func (e *NoSandbox) Error() string {
	return fmt.Sprintf("jobs cannot be confined on this machine: %v", e.Err)
}

// Unwrap returns the cause.
func (e *NoSandbox) Unwrap() error { return e.Err }

// openWithin bounds how long it may take until the first sandbox stands, leftovers of an earlier agent ended first.
const openWithin = 30 * time.Second

// nativeDir is the sandboxes' own folder within that of the executors.
const nativeDir = "native"

// executors are what an agent runs jobs with. close gives back what they hold, once no workload is left.
type executors struct {
	o      Options
	native *native.Executor // nil where jobs cannot be confined
}

// open makes the executors on a folder of their own: sandboxes where they can be had, and plain processes where the
// owner allows them.
func (x *executors) open(ctx context.Context, state string) ([]executor.Executor, error) {
	log := x.o.log().With(telemetry.KeyComponent, "executor")
	var all []executor.Executor
	why := x.openNative(ctx, filepath.Join(state, nativeDir))
	switch bad := (*native.BadView)(nil); {
	case errors.As(why, &bad):
		return nil, fmt.Errorf("what jobs may read: %w", why)
	case why == nil:
		all = append(all, x.native)
	case x.o.Sandbox.Need:
		return nil, &NoSandbox{Err: why}
	default:
		log.Warn("jobs cannot be confined on this machine; those that ask for it go elsewhere", telemetry.KeyError, why)
	}
	if x.o.Policy.AllowUnconfined {
		e, err := process.New(process.Config{State: state, Toolchains: x.path(), Log: log})
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, &NoSandbox{Err: why}
	}
	if x.o.Sandbox.Tell != nil {
		x.o.Sandbox.Tell(why)
	}
	return all, nil
}

func (x *executors) openNative(ctx context.Context, state string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, errors.New("no sandbox came to stand in time"))
	defer cancel()
	o := &x.o
	program, err := helper()
	if err != nil {
		o.log().Warn("sandboxes are built by the agent's own program, which starts more slowly than the one for that", "error", err)
	}
	e, err := native.Open(ctx, native.Config{
		State: state, Program: program, ReadOnly: o.Sandbox.ReadOnly, Toolchains: o.Sandbox.Toolchains, Path: o.Path,
		Hide:  append([]string{o.State}, o.Sandbox.Hide...),
		Slots: spareSlots * o.Slots, Pool: o.Sandbox.Pool, UIDBase: o.Sandbox.UIDBase, Rootless: o.Sandbox.Rootless,
		DiskImages: o.Sandbox.DiskImages,
		Policy:     o.Policy, Log: o.log().With(telemetry.KeyComponent, "sandbox"),
	})
	if err != nil {
		return err
	}
	x.native = e
	return nil
}

// spareSlots is how many sandboxes there may be for each job at a time: one that is on its way out must not hold up the next.
const spareSlots = 2

// path are the folders that come first in the PATH of plain processes.
func (x *executors) path() []string {
	return slices.Concat(native.Path(x.o.Sandbox.Toolchains), x.o.Path)
}

func (x *executors) close() error {
	if x.native == nil {
		return nil
	}
	return x.native.Close()
}
