//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// counts counts faults, and the states that a run has reached.
type counts map[string]int

func (c counts) add(other counts) {
	for k, v := range other {
		c[k] += v
	}
}

// settle waits, with every fault over, until all jobs have ended and nothing of them is alive, and takes the record.
func (g *game) settle(ctx context.Context) ([]observedJob, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for i, a := range g.agents {
		if !a.Alive() {
			// An agent that has ended by itself was told to: by the daemon, for a clone that looked newer. An operator looks,
			// finds that it is the right one, and starts it again.
			g.count("agent ended by itself")
			if err := a.Start(); err != nil {
				return nil, fmt.Errorf("agent %d: %w", i, err)
			}
		}
	}
	run, err := g.fleet.Daemon.AwaitRun(ctx, g.client, g.run.ID)
	if err != nil {
		fmt.Fprintf(g.out, "%v\n", err) // check says which job it is
	} else if err := g.fleet.AwaitNoLeftovers(ctx); err != nil {
		return nil, fmt.Errorf("I14: %w: %v", err, g.fleet.Leftovers())
	}
	if run == nil {
		return nil, errors.New("the daemon says nothing")
	}
	return g.observe(ctx, run)
}

// observe asks the daemon about each job, and reads what the workloads have left.
func (g *game) observe(ctx context.Context, run *api.Run) ([]observedJob, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fleet.ReadyWithin)
	defer cancel()
	var jobs []observedJob
	for i := range run.Jobs {
		job, err := g.client.Job(ctx, run.Jobs[i].ID)
		if err != nil {
			return nil, err
		}
		o := observedJob{name: job.Key, ended: job.Ended, succeeded: job.State == forge.JobSucceeded.String()}
		o.cancelAt, o.cancelled = g.cancelled[i]
		o.sum = g.sum
		if o.artifacts, err = g.artifacts(ctx, job.ID); err != nil {
			return nil, err
		}
		for _, a := range job.AllAttempts {
			attempt, err := g.observeAttempt(ctx, a)
			if err != nil {
				return nil, err
			}
			o.attempts = append(o.attempts, attempt)
		}
		g.note(o, job)
		jobs = append(jobs, o)
	}
	return jobs, nil
}

func (g *game) observeAttempt(ctx context.Context, a api.Attempt) (observedAttempt, error) {
	o := observedAttempt{
		id: a.ID, number: int(a.Number), ended: a.Ended, lost: a.State == forge.AttemptLost.String(),
		accepted: a.Lease != nil && a.Lease.State == forge.LeaseReleased.String(), logSealed: a.Log != nil && a.Log.Sealed,
	}
	o.cut = a.Class != forge.Succeeded.String() && a.Class != forge.ExitCode.String()
	o.decided = o.accepted && a.Fault != "infrastructure"
	var err error
	if o.log, err = g.fleet.Log(ctx, g.client, a.ID); err != nil {
		return o, fmt.Errorf("log of attempt %s: %w", a.ID, err)
	}
	o.transcript, err = os.ReadFile(filepath.Join(g.fleet.Folder, a.ID+transcriptSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil // it never started
	}
	if err != nil {
		return o, err
	}
	alive, err := os.ReadFile(filepath.Join(g.fleet.Folder, a.ID+aliveSuffix))
	if err == nil && len(alive) == 16 {
		o.started = true
		o.first = forge.Instant(binary.LittleEndian.Uint64(alive[:8]))
		o.last = forge.Instant(binary.LittleEndian.Uint64(alive[8:]))
	}
	return o, nil
}

// note counts the interesting states that a job has been in.
func (g *game) note(o observedJob, job *api.Job) {
	g.count("jobs")
	if len(o.artifacts) > 0 {
		g.count("job with an artifact")
	}
	g.count("job " + strings.ToLower(job.State))
	for _, a := range o.attempts {
		switch {
		case a.accepted:
			g.count("result recorded")
		case a.lost && a.started:
			g.count("lost while it ran")
		case a.lost:
			g.count("lost before it ran")
		}
		if a.lost && len(a.log) > 0 && !bytes.Equal(a.log, a.transcript) {
			g.count("log of a lost attempt is a part of its transcript")
		}
	}
	if len(o.attempts) > 1 {
		g.count("job with several attempts")
	}
}
