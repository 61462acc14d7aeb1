package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Examine looks at everything, one after the other, which takes a few seconds. It has no
// error: what cannot be looked at is a finding.
func Examine(ctx context.Context, o Options) Report {
	base, real := o.places()
	scratch, err := os.MkdirTemp(base, ".forgeyard-doctor-")
	if err != nil {
		return Report{Findings: []Finding{missing("folder", err.Error(), "name a folder that this user can write to")}}
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	walls, confined := o.walls(ctx, scratch)
	all := walls
	all = append(all, settings(readSetting, os.Geteuid() == 0)...)
	all = append(all, kernel()...)
	all = append(all, groups(scratch)...)
	all = append(all, o.mounts(ctx, scratch)...)
	all = append(all, datagrams()...)
	for _, endpoint := range o.Endpoints {
		all = append(all, path(ctx, endpoint))
	}
	all = append(all, clocks(ctx, o.Date)...)
	all = append(all, disk(real)...)
	all = append(all, toolchains(o.Path, o.Home, o.Toolchains)...)
	return Report{Confined: confined, Findings: all}
}

// places are a folder to try things in, and the one whose disk jobs will use: the first of
// Folder's parents that is there. They differ when this user cannot write to it.
func (o *Options) places() (scratch, real string) {
	real = o.Folder
	for {
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			break
		}
		up := filepath.Dir(real)
		if up == real {
			break
		}
		real = up
	}
	if unix.Access(real, unix.W_OK) == nil {
		return real, real
	}
	return os.TempDir(), real
}

// ids of the sandbox that is built here, above those of an agent that may be running.
const doctorIDs = sandbox.DefaultUIDBase + (sandbox.MaxSlots-8)*sandbox.SlotIDs

// build builds the first sandbox of a launcher and lets it go.
func build(ctx context.Context, state string) (report sandbox.Report, err error) {
	l, err := sandbox.Open(ctx, sandbox.Config{State: state, Slots: 1, UIDBase: doctorIDs})
	if err != nil {
		return report, err
	}
	report = l.Report()
	return report, l.Close()
}

// walls builds a sandbox and says which walls it has, and whether there is one.
func (o *Options) walls(ctx context.Context, scratch string) ([]Finding, bool) {
	one := o.Build
	if one == nil {
		one = build
	}
	state := filepath.Join(scratch, "launcher")
	if err := os.Mkdir(state, 0o700); err != nil {
		return []Finding{missing("sandbox", err.Error(), "")}, false
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("no answer within "+within.String()))
	defer cancel()
	report, err := one(ctx, state)
	if err != nil {
		return []Finding{missing("sandbox", "jobs cannot be confined here: "+err.Error(),
			"see the findings below; until then jobs run only where --allow-unsandboxed (policy.allow_unconfined of an agent) says so")}, false
	}
	return wallsOf(report), true
}

// wallsOf turns a sandbox's report into findings, except for control groups, which are looked
// at by themselves.
func wallsOf(r sandbox.Report) []Finding {
	all := []Finding{ok("sandbox", fmt.Sprintf("built, with %d of %d walls", len(r.Levels), len(sandbox.Levels())))}
	for _, level := range sandbox.Levels() {
		if isGroup(level) {
			continue
		}
		if r.Has(level) {
			all = append(all, ok("wall "+string(level), ""))
			continue
		}
		f := weak("wall "+string(level), "not given here", "")
		for _, m := range r.Missing {
			if m.Level == level {
				f.Detail, f.Mend = m.Why, m.Mend
			}
		}
		all = append(all, f)
	}
	return all
}

// isGroup says whether a wall is one of control groups.
func isGroup(level sandbox.Level) bool {
	return level == sandbox.LevelCgroupMemory || level == sandbox.LevelCgroupCPU || level == sandbox.LevelCgroupPids
}
