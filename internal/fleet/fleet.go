//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

// ReadyWithin is how long a program may take until it does its work, on a machine that is busy with others.
const ReadyWithin = 60 * time.Second

// pollEvery is how often something is looked at that nobody announces.
const pollEvery = 20 * time.Millisecond

// Scale is the time scale of a fleet's leases. Fast is the shortest that there is: a lost lease costs some eight seconds.
type Scale struct {
	TTL, Grace, Renew, Margin, KillLead, SoftGrace, OfferTTL, Request time.Duration
}

// Fast is a hard TTL of 6 s, ten times shorter than the default.
var Fast = Scale{
	TTL: 6 * time.Second, Renew: time.Second, Margin: 2 * time.Second, KillLead: 2 * time.Second,
	SoftGrace: time.Second, OfferTTL: 4 * time.Second, Request: 2 * time.Second,
}

// Patient has leases that outlive what breaks connections, and an agent that notices a broken one within some three seconds.
var Patient = Scale{
	TTL: 60 * time.Second, Renew: time.Second, Margin: 2 * time.Second, KillLead: 3 * time.Second,
	SoftGrace: 2 * time.Second, OfferTTL: 10 * time.Second, Request: 2 * time.Second,
}

// Usual is the default.
var Usual = Scale{
	TTL: 60 * time.Second, Grace: 60 * time.Second, Renew: 15 * time.Second, Margin: 2 * time.Second,
	KillLead: 3 * time.Second, SoftGrace: 2 * time.Second, OfferTTL: 10 * time.Second, Request: 10 * time.Second,
}

// Fleet is a daemon, its agents, and the folder that they live in.
type Fleet struct {
	Folder   string
	Programs Programs
	Scale    Scale
	Daemon   *Daemon
	Witness  *Witness // of what workloads do; its files are in Folder
	Shows    []string // files of this machine that jobs may read, as SOURCE:TARGET; set before agents are added

	log   io.Writer
	forks *forks

	mu     sync.Mutex
	agents []*Agent
	roads  []*Road
}

// New makes a fleet in a folder, which should be short: a socket has its path in it. Whatever the programs say goes to
// files in the folder; log gets one line for each thing that is done to them.
func New(folder string, programs Programs, scale Scale, log io.Writer) (*Fleet, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	w, err := newWitness(folder)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Folder: folder, Programs: programs, Scale: scale, log: log, Witness: w, forks: newForks()}
	f.Daemon = &Daemon{
		fleet: f, Folder: filepath.Join(folder, "daemon"), Port: port,
		process: process{name: "daemon", folder: folder, log: log, forks: f.forks},
	}
	if err := f.Daemon.configure(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close kills every process and waits until nothing of the fleet is alive. It is called once.
func (f *Fleet) Close() error {
	for _, a := range f.Agents() {
		a.Kill()
	}
	f.Daemon.Kill()
	f.forks.close()
	problem := f.Witness.close()
	f.mu.Lock()
	roads := f.roads
	f.roads = nil
	f.mu.Unlock()
	for _, r := range roads {
		problem = errors.Join(problem, r.close())
	}
	for _, pid := range f.Leftovers() {
		if err := killPID(pid); err != nil {
			problem = errors.Join(problem, fmt.Errorf("kill process %d: %w", pid, err))
		}
	}
	return problem
}

// Agents lists the agents in the order in which they were added.
func (f *Fleet) Agents() []*Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.agents)
}

// Leftovers lists the processes that have to do with the fleet's folder, but for the programs themselves: workloads, and
// whatever keeps watch over them. A launcher of sandboxes counts once its agent is dead, with what it has ready.
func (f *Fleet) Leftovers() []int {
	own := map[int]bool{os.Getpid(): true, f.Daemon.PID(): true}
	for _, a := range f.Agents() {
		own[a.PID()] = true
	}
	var left []int
	for _, pid := range processesOf(f.Folder, own) {
		if !own[pid] {
			left = append(left, pid)
		}
	}
	return left
}

// AwaitNoLeftovers waits until no workload is alive.
func (f *Fleet) AwaitNoLeftovers(ctx context.Context) error {
	return Await(ctx, "every workload to be gone", func() (bool, error) { return len(f.Leftovers()) == 0, nil })
}

// Run executes the command against this fleet's daemon and returns what it printed and its exit code.
func (f *Fleet) Run(ctx context.Context, args ...string) (stdout, stderr string, code int, err error) {
	cmd := exec.CommandContext(ctx, f.Programs.Command, args...)
	cmd.Env = append(os.Environ(), "FORGEYARD_SERVER=unix://"+f.Daemon.Socket(), "NO_COLOR=1", "HOME="+f.Folder)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), errs.String(), exit.ExitCode(), nil
	}
	return out.String(), errs.String(), 0, err
}

// Await polls until done says so, it fails, or ctx ends. what completes "waited for".
func Await(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("waited for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// freePort returns a UDP port of the loopback that nobody has at the moment. A daemon that is started again wants the same
// one, so the system cannot choose each time.
func freePort() (int, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := conn.LocalAddr().(*net.UDPAddr).Port
	return port, conn.Close()
}

// Shell is a run of one job with one script, for bash, in a sandbox with the host's network. Edits change what is not as wanted.
func Shell(script string, edits ...func(*api.JobSpec)) *api.RunRequest {
	spec := api.JobSpec{
		Steps:        []api.Step{{Script: script, Shell: []string{"bash", "-c"}}},
		Network:      "host",
		Connectivity: &api.Connectivity{Mode: "continuous"},
	}
	for _, edit := range edits {
		edit(&spec)
	}
	return &api.RunRequest{Jobs: []api.JobRequest{{Key: "job", Spec: spec}}}
}
