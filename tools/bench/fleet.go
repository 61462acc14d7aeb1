//go:build linux

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/forgeyard/forgeyard/internal/fleet"
)

// programs are compiled once for all figures.
var programs fleet.Build

// newFleet starts a daemon in a folder of its own, with leases of the default length. The settings are added to its
// environment. The function that it returns ends both.
func newFleet(ctx context.Context, settings ...string) (*fleet.Fleet, func(), error) {
	built, err := programs.Programs(ctx)
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "fy")
	if err != nil {
		return nil, nil, err
	}
	f, err := fleet.New(filepath.Join(folder, "f"), built, fleet.Usual, io.Discard)
	if err != nil {
		return nil, nil, err
	}
	end := func() {
		_ = f.Close()
		_ = os.RemoveAll(folder)
	}
	if err := f.Daemon.StartWith(ctx, settings...); err != nil {
		end()
		return nil, nil, err
	}
	return f, end, nil
}
