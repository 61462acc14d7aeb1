//go:build linux

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/forgeyard/forgeyard/internal/fleet"
)

// programs are compiled once for all figures.
var programs = struct {
	once   sync.Once
	folder string
	built  fleet.Programs
	err    error
}{}

// buildPrograms compiles them, or returns what was compiled before.
func buildPrograms(ctx context.Context) (fleet.Programs, error) {
	p := &programs
	p.once.Do(func() {
		if p.folder, p.err = os.MkdirTemp("", "fybin"); p.err == nil {
			p.built, p.err = fleet.Build(ctx, p.folder)
		}
	})
	return p.built, p.err
}

// newFleet starts a daemon in a folder of its own, with leases of the default length. The settings are added to its
// environment. The function that it returns ends both.
func newFleet(ctx context.Context, settings ...string) (*fleet.Fleet, func(), error) {
	built, err := buildPrograms(ctx)
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

// removePrograms takes away what was compiled. It is called once nothing runs any more.
func removePrograms() {
	if programs.folder != "" {
		_ = os.RemoveAll(programs.folder)
	}
}
