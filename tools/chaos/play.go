//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

// settleWithin is how long jobs may take to end once every fault is over: the longest lease, what a daemon watches beyond
// it, all retries, and a machine with other work.
const settleWithin = 4 * time.Minute

// game is one run of a plan.
type game struct {
	plan   plan
	fleet  *fleet.Fleet
	client *api.Client
	roads  []*fleet.Road
	agents []*fleet.Agent
	run    *api.Run
	sum    string // of the source of all jobs
	out    io.Writer
	begun  time.Time

	mu        sync.Mutex
	cancelled map[int]forge.Instant // tasks that were cancelled, and when the daemon had said so
	counts    counts
}

// play runs a plan and returns what was observed.
func play(ctx context.Context, p plan, seed uint64, folder string, programs fleet.Programs, out io.Writer) (_ []observedJob, _ counts, err error) {
	g := &game{plan: p, out: out, cancelled: map[int]forge.Instant{}, counts: counts{}}
	g.fleet, err = fleet.New(filepath.Join(folder, "f"), programs, fleet.Fast, out)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, g.fleet.Close()) }()
	if err := g.begin(ctx, seed); err != nil {
		return nil, nil, err
	}
	defer g.client.Close()
	if err := g.suffer(ctx); err != nil {
		return nil, nil, err
	}
	jobs, err := g.settle(ctx)
	return jobs, g.counts, err
}

// begin starts everything and submits the jobs.
func (g *game) begin(ctx context.Context, seed uint64) error {
	if err := g.fleet.Daemon.Start(ctx); err != nil {
		return err
	}
	client, err := g.fleet.Daemon.Client()
	if err != nil {
		return err
	}
	g.client = client
	self, err := os.Executable()
	if err != nil {
		return err
	}
	g.fleet.Shows = []string{self + ":" + programInside}
	for i := range g.plan.agents {
		road, err := g.fleet.Road(seed + uint64(i))
		if err != nil {
			return err
		}
		agent, err := g.fleet.AddAgent(ctx, fmt.Sprintf("agent-%d", i), g.plan.slots, road.Addr())
		if err != nil {
			return err
		}
		if err := agent.Start(); err != nil {
			return err
		}
		g.roads, g.agents = append(g.roads, road), append(g.agents, agent)
	}
	files := sourceOf(seed)
	source, err := plant(ctx, client.Objects(""), files)
	if err != nil {
		return err
	}
	g.sum = sumOf(files)
	request := &api.RunRequest{}
	for i, t := range g.plan.tasks {
		job := fleet.Shell("", func(s *api.JobSpec) { t.spec(s, g.fleet.Witness.Address(), source) }).Jobs[0]
		job.Key = "job-" + strconv.Itoa(i)
		request.Jobs = append(request.Jobs, job)
	}
	g.run, err = g.client.Submit(ctx, request, "")
	g.begun = time.Now()
	return err
}

// programInside is where jobs see this program.
const programInside = "/chaos"

// spec is the job of a task: this program, as a workload.
func (t task) spec(s *api.JobSpec, witness string, source api.Tree) {
	infra := uint8(forge.MaxRetries)
	grace := api.Duration(time.Second)
	s.Steps = []api.Step{{Argv: []string{
		programInside, "-workload", witness, "-lines", strconv.Itoa(t.lines), "-lasts", t.lasts.String(),
		"-exit", strconv.Itoa(t.exit), "-deaf=" + strconv.FormatBool(t.deaf),
	}}}
	s.Inputs = []api.Input{{Mount: forge.SourceDir, Mode: "cow", Tree: source}}
	s.Outputs = []api.Output{{Name: "made", Base: "outputs", Patterns: []string{madeName}, Required: true}}
	s.Retry = &api.Retry{Infra: &infra}
	s.Timeouts = &api.Timeouts{Grace: &grace}
}

// suffer lets the faults happen at their moments and waits until the last of them is over.
func (g *game) suffer(ctx context.Context) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	for _, f := range g.plan.faults {
		select {
		case <-time.After(time.Until(g.begun.Add(f.at))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		fmt.Fprintf(g.out, "fault: %v\n", f)
		wait.Go(func() {
			if err := g.inflict(ctx, f); err != nil {
				fmt.Fprintf(g.out, "fault %v came to nothing: %v\n", f, err)
				return
			}
			g.count(string(f.kind))
		})
	}
	return nil
}

func (g *game) count(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[what]++
}

// inflict does one fault from its beginning to its end. Two of them may meet: then the second finds a process that does
// not run, and comes to nothing.
func (g *game) inflict(ctx context.Context, f fault) error {
	switch f.kind {
	case killAgent:
		return g.killed(ctx, f.lasts, g.agents[f.agent])
	case killDaemon:
		return g.killed(ctx, f.lasts, g.daemon(ctx))
	case killBoth:
		return errors.Join(g.killed(ctx, 0, g.agents[f.agent]), g.killed(ctx, f.lasts, g.daemon(ctx)))
	case stopAgent:
		return stopped(ctx, f.lasts, g.agents[f.agent])
	case stopDaemon:
		return stopped(ctx, f.lasts, g.fleet.Daemon)
	case cutLink, cutToDaemon, cutToAgent, badLink:
		return g.disturb(ctx, f)
	case cancelJob:
		return g.cancel(ctx, f.job)
	case drainAgent:
		return g.drained(ctx, f)
	case cloneAgent:
		return g.cloned(ctx, f)
	case killKeeper:
		return g.keeperKilled(f.agent)
	}
	return fmt.Errorf("unknown fault %q", f.kind)
}

// mortal is what can be killed and started again.
type mortal interface {
	Kill()
	Start() error
	Alive() bool
}

// starter makes Start of the daemon one without a wait.
type starter struct {
	*fleet.Daemon
	ctx context.Context
}

func (s starter) Start() error { return s.Daemon.Start(s.ctx) }

func (g *game) daemon(ctx context.Context) mortal { return starter{g.fleet.Daemon, ctx} }

func (g *game) killed(ctx context.Context, lasts time.Duration, m mortal) error {
	if !m.Alive() {
		return errors.New("it does not run")
	}
	m.Kill()
	pause(ctx, lasts)
	return m.Start()
}

// signalled is what can be stopped.
type signalled interface{ Signal(s syscall.Signal) error }

func stopped(ctx context.Context, lasts time.Duration, s signalled) error {
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, lasts)
	return s.Signal(syscall.SIGCONT)
}

// disturb makes a road bad for a while.
func (g *game) disturb(ctx context.Context, f fault) error {
	road := g.roads[f.agent]
	switch f.kind {
	case cutToDaemon:
		road.Cut(relay.Up)
	case cutToAgent:
		road.Cut(relay.Down)
	case badLink:
		bad := relay.Settings{Loss: 0.1, Duplicate: 0.1, Reorder: 0.2, Delay: 20 * time.Millisecond, Jitter: 50 * time.Millisecond}
		if err := road.Set(bad); err != nil {
			return err
		}
	default:
		road.Break()
	}
	pause(ctx, f.lasts)
	if f.kind == badLink {
		return road.Set(relay.Settings{})
	}
	road.Mend()
	return nil
}

func (g *game) cancel(ctx context.Context, job int) error {
	if _, err := g.client.CancelJob(ctx, g.run.Jobs[job].ID); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, twice := g.cancelled[job]; !twice {
		g.cancelled[job] = clock.Boot()
	}
	return nil
}

func (g *game) drained(ctx context.Context, f fault) error {
	runner, err := g.agents[f.agent].Runner(ctx)
	if err != nil {
		return err
	}
	if _, err := g.client.SetRunner(ctx, runner.ID, api.RunnerDrain); err != nil {
		return err
	}
	pause(ctx, f.lasts)
	return fleet.Await(ctx, "the daemon to take the end of a drain", func() (bool, error) {
		_, err := g.client.SetRunner(ctx, runner.ID, api.RunnerResume)
		return err == nil, nil
	})
}

// cloned starts an agent on a copy of a state folder, as if a disk image had been restored on a second machine.
func (g *game) cloned(ctx context.Context, f fault) error {
	copied := filepath.Join(g.fleet.Folder, fmt.Sprintf("clone-%d-%d", f.agent, g.begun.UnixNano()))
	if out, err := exec.CommandContext(ctx, "cp", "-a", g.agents[f.agent].Folder, copied).CombinedOutput(); err != nil {
		return fmt.Errorf("copy: %w: %s", err, out)
	}
	clone, err := g.fleet.Clone(g.agents[f.agent], filepath.Base(copied), g.plan.slots)
	if err != nil {
		return err
	}
	if err := clone.Start(); err != nil {
		return err
	}
	pause(ctx, f.lasts)
	clone.Kill()
	return nil
}

// keeperKilled kills one process that keeps watch over workloads, if there is any: the first of a sandbox, or a launcher.
func (g *game) keeperKilled(agent int) error {
	pids := g.agents[agent].Keepers()
	if len(pids) == 0 {
		return errors.New("there is none")
	}
	return syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL)
}

// pause lets a fault last.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
