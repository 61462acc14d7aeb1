//go:build linux

package main

import (
	"context"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
)

// wireYard is a daemon with a scripted agent, and a bare server with a client: each pair over a road of its own, each server
// in a process of its own.
type wireYard struct {
	fleet    *fleet.Fleet
	endFleet func()
	client   *api.Client
	agent    *scriptedAgent
	server   *bareProcess
	bare     *bare.Client
}

// begin starts all of it, the bare server with settings. It is to be closed after an error too.
func (y *wireYard) begin(ctx context.Context, slots uint32, settings ...string) (err error) {
	if y.server, err = startBare(ctx, settings...); err != nil {
		return err
	}
	if y.bare, err = y.server.dial(ctx); err != nil {
		return err
	}
	if y.fleet, y.endFleet, err = newFleet(ctx); err != nil {
		return err
	}
	if y.client, err = y.fleet.Daemon.Client(); err != nil {
		return err
	}
	ca, err := caOf(y.fleet)
	if err != nil {
		return err
	}
	y.agent, err = newScripted(ctx, y.client, ca, "sender", slots)
	return err
}

func (y *wireYard) close() {
	if y.agent != nil {
		y.agent.close()
	}
	if y.client != nil {
		y.client.Close()
	}
	if y.endFleet != nil {
		y.endFleet()
	}
	if y.bare != nil {
		y.bare.Close()
	}
	if y.server != nil {
		_ = y.server.close() // its end is asked for, its code means nothing
	}
}

// bulk is how fast so many bytes go over one stream of the bare road, in megabytes a second.
func (y *wireYard) bulk(total int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		begun := time.Now()
		if err := y.bare.Bulk(ctx, bare.Blank(total)); err != nil {
			return 0, err
		}
		return megabytes(uint64(total), time.Since(begun)), nil //nolint:gosec // a constant
	}
}
