//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
)

// idleAgents is how many agents are connected and have nothing to do.
const idleAgents = 500

// dialing is how many of them connect at the same time.
const dialing = 8

// tight has the garbage collector of both servers run often, so that what is measured is what they need, and not what the
// handshakes have left until the next collection.
const tight = "GOGC=10"

// idleFigure is what an agent that is registered and idle costs its daemon in memory, against a connection of a program
// that has only the road. The connections of both are opened at the same pace, which is as many as a daemon takes from one
// network.
var idleFigure = figure{
	name: "agents.idle", unit: "KiB", limitIs: "resident memory of one bare mutually authenticated connection with one stream",
	begin: func(context.Context, options) (pair, error) {
		return pair{ours: idleDaemon, limit: idleBare, end: func() {}}, nil
	},
}

// idleDaemon measures a daemon, a process of its own, without agents and with them.
func idleDaemon(ctx context.Context) (float64, error) {
	f, end, err := newFleet(ctx, tight)
	if err != nil {
		return 0, err
	}
	defer end()
	agents, err := enrolled(ctx, f)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, a := range agents {
			a.close()
		}
	}()
	pace := newDialRate()
	capabilities := forge.Capabilities{SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"}}
	return perConnection(ctx, f.Daemon.PID(), func(ctx context.Context, i int) error {
		return agents[i].patiently(ctx, pace, f.Daemon.Endpoint(), capabilities)
	})
}

// enrolled makes the agents.
func enrolled(ctx context.Context, f *fleet.Fleet) ([]*scriptedAgent, error) {
	client, err := f.Daemon.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ca, err := caOf(f)
	if err != nil {
		return nil, err
	}
	agents := make([]*scriptedAgent, idleAgents)
	for i := range agents {
		if agents[i], err = newScripted(ctx, client, ca, fmt.Sprintf("idle-%d", i), 1); err != nil {
			return nil, err
		}
	}
	return agents, nil
}

// idleBare measures a bare server, a process of its own, without clients and with them.
func idleBare(ctx context.Context) (float64, error) {
	server, err := startBare(ctx, tight)
	if err != nil {
		return 0, err
	}
	defer func() { _ = server.close() }() // its end is asked for, its code means nothing
	clients := make([]*bare.Client, idleAgents)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	pace := newDialRate()
	return perConnection(ctx, server.pid(), func(ctx context.Context, i int) (err error) {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		if clients[i], err = server.dial(ctx); err != nil {
			return err
		}
		return clients[i].Echo(64)
	})
}

// perConnection opens connections to a process, and returns by how many KiB it has grown for each.
func perConnection(ctx context.Context, pid int, open func(ctx context.Context, i int) error) (float64, error) {
	before, err := settled(ctx, pid)
	if err != nil {
		return 0, err
	}
	work, workCtx := errgroup.WithContext(ctx)
	work.SetLimit(dialing)
	for i := range idleAgents {
		work.Go(func() error { return open(workCtx, i) })
	}
	if err := work.Wait(); err != nil {
		return 0, err
	}
	after, err := settled(ctx, pid)
	return float64(after-before) / 1024 / idleAgents, err
}

// The memory of a process has settled when it was no less in some looks than it is.
const (
	settleEvery = 500 * time.Millisecond
	settleLooks = 8
)

// settled waits until a process gives no more memory back, and returns how much it has then.
func settled(ctx context.Context, pid int) (int64, error) {
	least, err := resident(pid)
	for looks := 0; err == nil && looks < settleLooks; looks++ {
		select {
		case <-time.After(settleEvery):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		now, lookErr := resident(pid)
		if now < least-least/200 {
			looks = 0
		}
		least, err = min(least, now), lookErr
	}
	return least, err
}

// resident is the memory of a process in bytes, as the system counts it.
func resident(pid int) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(content), &size, &pages); err != nil {
		return 0, err
	}
	return pages * int64(os.Getpagesize()), nil
}
