//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// noopLatencyFigure is a job of one step that does nothing, by a daemon and an agent that have done such jobs before: from its
// submission by a client until that has read that its result was accepted. It includes everything that a job is: both
// programs' decisions, each of them durable, the sandbox, the log and its seal.
var noopLatencyFigure = figure{
	name: "noop.latency", unit: "ms", limitIs: "bubblewrap, as in spawn.cold",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := beginNoop(ctx, 1)
		if err != nil {
			return pair{}, err
		}
		return pair{ours: each(y.job), limit: each(y.bubble), end: y.close}, nil
	},
}

// noopRateFigure is how many of them are done in a second when eight are always under way. Each client waits for its job before
// it submits the next.
var noopRateFigure = figure{
	name: "noop.rate", unit: "jobs/s", limitIs: "bubblewrap, as in spawn.cold, 8 at a time as well",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := beginNoop(ctx, spawnsAtOnce)
		if err != nil {
			return pair{}, err
		}
		return pair{ours: manyAtOnce(y.job), limit: manyAtOnce(y.bubble), end: y.close}, nil
	},
}

// quietLogs has the programs of a fleet write down what they would by default, and no more.
const quietLogs = "LOG_LEVEL=info"

// noopYard is a daemon with an agent, and bubblewrap.
type noopYard struct {
	*spawnYard
	client   *api.Client
	endFleet func()
}

// beginNoop starts them, with an agent of so many slots.
func beginNoop(ctx context.Context, slots int) (_ *noopYard, err error) {
	y := &noopYard{}
	defer func() {
		if err != nil {
			y.close()
		}
	}()
	if y.spawnYard, err = newSpawnYard(ctx, native.Config{Slots: 1}); err != nil {
		return nil, err
	}
	var f *fleet.Fleet
	if f, y.endFleet, err = newFleet(ctx, "FORGEYARD_DAEMON_"+quietLogs); err != nil {
		return nil, err
	}
	agent, err := f.AddAgent(ctx, "one", slots, "")
	if err != nil {
		return nil, err
	}
	agent.Env = []string{"FORGEYARD_AGENT_" + quietLogs, "FORGEYARD_AGENT_SANDBOX_POOL=2"} // the default
	if err := agent.Start(); err != nil {
		return nil, err
	}
	if err := agent.AwaitOnline(ctx); err != nil {
		return nil, err
	}
	y.client, err = f.Daemon.Client()
	return y, err
}

func (y *noopYard) close() {
	if y.client != nil {
		y.client.Close()
	}
	if y.endFleet != nil {
		y.endFleet()
	}
	if y.spawnYard != nil {
		y.spawnYard.close()
	}
}

// idleRun is a run of one job that does nothing, and that leaves room for seven more like it.
func idleRun() *api.RunRequest {
	cores, little := api.Cores(runtime.NumCPU()*1000/spawnsAtOnce), api.Size(64*forge.MiB) //nolint:gosec // few
	spec := api.JobSpec{
		Steps: []api.Step{{Argv: []string{nothing}}}, Resources: &api.Resources{CPU: &cores, Memory: &little, Disk: &little},
	}
	return &api.RunRequest{Jobs: []api.JobRequest{{Key: "nothing", Spec: spec}}}
}

// job is one of them, from its submission until its end was heard of.
func (y *noopYard) job(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	begun := time.Now()
	run, err := y.client.Submit(ctx, idleRun(), ident.New[forge.MessageID]().String())
	if err != nil {
		return 0, err
	}
	for e, err := range y.client.Watch(ctx, run.ID) {
		if err != nil {
			return 0, err
		}
		if e.Name != api.EventChange {
			continue
		}
		var change api.RunEvent
		if err := e.Decode(&change); err != nil {
			return 0, err
		}
		switch {
		case change.Kind != "job":
		case change.To == forge.JobSucceeded.String():
			return time.Since(begun), nil
		case change.To == forge.JobFailed.String():
			return 0, fmt.Errorf("the job failed: %s", change.Why)
		}
	}
	return 0, errors.New("the run ended, and its job had no result")
}
