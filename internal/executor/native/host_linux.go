package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// host is the sandbox of one workload.
type host struct {
	e       *Executor
	attempt forge.AttemptID
	box     *sandbox.Box
	disk    *disk // nil where the keeper's watch is all that bounds what is written

	mu   sync.Mutex
	seen cgroup.Usage // at the end of the last step
}

// open makes the sandbox of an order.
func (e *Executor) open(ctx context.Context, order *executor.Order, ends keeper.Ends) (*host, error) {
	r := &order.Spec.Resources
	o := &sandbox.Order{
		Name: order.Context.Attempt.String(), Folder: order.Folder, Network: order.Spec.Network,
		Limits: sandbox.Limits{Memory: r.Memory, CPU: r.CPU, Pids: int(order.Spec.Processes), Disk: r.Disk},
		Policy: order.Policy, Deadline: order.Deadline,
		Keeper: ends.Agent, Stdout: ends.Stdout, Stderr: ends.Stderr, Need: needs(order), Layers: layers(order),
	}
	box, err := e.make(ctx, order, o)
	if err != nil {
		return nil, err
	}
	return &host{e: e, attempt: order.Context.Attempt, box: box, disk: watchDisk(box.Disk(), box.Dead())}, nil
}

// make makes a sandbox in which the order's inputs are layers, or copies where layers cannot be had: not on this machine,
// or not where this attempt's folder is.
func (e *Executor) make(ctx context.Context, order *executor.Order, o *sandbox.Order) (*sandbox.Box, error) {
	if len(o.Layers) > 0 && !e.flat.Load() {
		box, err := e.launchers.make(ctx, o)
		if !errors.Is(err, sandbox.ErrNoLayers) || slices.Contains(o.Need, sandbox.LevelOverlay) {
			return box, err
		}
		e.flat.Store(true)
		e.cfg.Log.Warn("inputs are copied for each attempt from now on", "error", err)
	}
	if len(order.Inputs) > 0 && slices.Contains(o.Need, sandbox.LevelDiskImage) {
		return nil, fmt.Errorf("the job insists on the wall %q, which a job has only with inputs that are layers", sandbox.LevelDiskImage)
	}
	if err := keeper.CopyInputs(ctx, order); err != nil {
		return nil, err
	}
	o.Layers = nil
	if len(order.Inputs) > 0 {
		o.Limits.Disk = 0 // the copies are on the machine's
	}
	return e.launchers.make(ctx, o)
}

func layers(order *executor.Order) []sandbox.Layer {
	var layers []sandbox.Layer
	for _, in := range order.Inputs {
		layers = append(layers, sandbox.Layer{Mount: in.Mount, Folder: in.Tree, Writable: in.Mode == forge.InputCopyOnWrite})
	}
	return layers
}

func needs(order *executor.Order) []sandbox.Level {
	var levels []sandbox.Level
	for _, name := range order.Spec.Sandbox.Levels {
		levels = append(levels, sandbox.Level(name))
	}
	return levels
}

// Gone closes once nothing of the sandbox is alive.
func (h *host) Gone() <-chan struct{} { return h.box.Dead() }

// Wait waits until its launcher has taken the sandbox apart.
func (h *host) Wait() keeper.Death {
	<-h.box.Done()
	h.disk.wait()
	end := h.box.End()
	if end.Exit == 0 && end.Signal == 0 {
		return keeper.Death{}
	}
	h.e.cfg.Log.Warn("a sandbox ended before its attempt", "attempt", h.attempt, "exit", end.Exit, "signal", end.Signal.String(),
		"error", end.SetupErr)
	d := keeper.Death{Signal: uint8(end.Signal), Bitten: end.Bitten}
	if !end.Killed { // pid 1 may end of the want itself: it needs threads and memory too
		d.Finding = h.finding(end.Usage)
	}
	return d
}

// Kill kills pid 1, and with it everything.
func (h *host) Kill() { h.box.Kill() }

// Bounded reports whether the attempt has a disk of its own.
func (h *host) Bounded() bool { return h.disk != nil }

// Pid is pid 1.
func (h *host) Pid() int { return h.box.Pid() }

// Files opens the attempt's folder with its inputs, which needs neither the sandbox nor its launcher.
func (h *host) Files() (*os.Root, error) { return h.box.Files() }

// Close gives back the mounts that Files needs.
func (h *host) Close() error { return h.box.Close() }

// MoveDeadline tells the launcher, which holds one too.
func (h *host) MoveDeadline(deadline forge.Instant) { h.box.MoveDeadline(deadline) }

// usageWithin bounds the question what a sandbox has used.
const usageWithin = 2 * time.Second

// Finished looks for what the kernel has refused the step.
func (h *host) Finished(step forge.StepResult) keeper.Finding {
	f := h.used()
	if step.Class != forge.ExitCode && step.Class != forge.Signal {
		f.Class, f.Limit, f.Peak = 0, 0, 0
	}
	h.disk.ended(step.Class, &f)
	return f
}

// used looks for it in what the sandbox has used.
func (h *host) used() keeper.Finding {
	ctx, cancel := context.WithTimeout(context.Background(), usageWithin) // the pump has no context
	defer cancel()
	usage, err := h.box.Usage(ctx)
	if err != nil {
		if !errors.Is(err, sandbox.ErrEnded) {
			h.e.cfg.Log.Warn("what a step has used cannot be told", "attempt", h.attempt, "error", err)
		}
		return keeper.Finding{}
	}
	return h.finding(usage)
}

// finding says what has been refused since the last call.
func (h *host) finding(now cgroup.Usage) keeper.Finding {
	h.mu.Lock()
	before := h.seen
	h.seen = now
	h.mu.Unlock()
	return find(before, now)
}

// find says what was refused between two readings: memory counts before processes, whose want often follows from it.
func find(before, now cgroup.Usage) keeper.Finding {
	var f keeper.Finding
	if n := now.PidsRefused - before.PidsRefused; now.PidsRefused > before.PidsRefused {
		f.Class, f.Limit, f.Peak = forge.PidsExhausted, uint64(now.PidsLimit), uint64(now.PidsPeak)
		f.Notices = append(f.Notices, fmt.Sprintf(
			"Too many processes: the system refused to start one %s. At most %d run at a time here; the peak was %d. Ask for more with processes:.",
			times(n), now.PidsLimit, now.PidsPeak))
	}
	if n := now.OOMKills - before.OOMKills; now.OOMKills > before.OOMKills {
		f.Class, f.Limit, f.Peak = forge.OutOfMemory, uint64(now.MemoryLimit), uint64(now.MemoryPeak)
		f.Notices = append(f.Notices, fmt.Sprintf(
			"Out of memory: the system killed %s. The limit is %v; the peak was %v. Ask for more with resources: memory.",
			processes(n), now.MemoryLimit, now.MemoryPeak))
	}
	return f
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func processes(n uint64) string {
	if n == 1 {
		return "a process"
	}
	return fmt.Sprintf("%d processes", n)
}

// hint says what a job without a network should have asked for.
func hint(names []string) string {
	shown := names[:min(len(names), mostNames)]
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("This job has no network, and asked for %s. If it needs one, ask for network: host.", text)
}

// mostNames bounds the names in one hint.
const mostNames = 5

var _ keeper.Host = (*host)(nil)
