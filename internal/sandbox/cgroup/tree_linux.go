package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/opencontainers/cgroups"
)

// Names of controllers, as the kernel and the library spell them.
const (
	ctrlMemory  = "memory"
	ctrlCPU     = "cpu"
	ctrlCPUAcct = "cpuacct"
	ctrlPids    = "pids"
	ctrlFreezer = "freezer"
	ctrlUnified = "" // the one hierarchy of version 2
)

const (
	dirMode      = 0o755
	maxNameBytes = 128    // of a group's name
	maxSwept     = 20_000 // folders that one sweep looks at, in each hierarchy
	maxDepth     = 16     // of those folders below a hierarchy's root
)

// Tree is where one agent makes its groups. A nil Tree stands for a machine that gives no
// rights; only its Close may be called.
type Tree struct {
	log  *slog.Logger
	mark string
	host hierarchy

	mu     sync.Mutex
	groups map[string]bool // names of those that are made and not yet removed
}

// hierarchy is what differs between the versions.
type hierarchy struct {
	report Report
	roots  map[string]string // controller to its mount point: where a sweep begins
	base   map[string]string // controller to the folder below which groups are made
	held   []*os.File        // those folders, locked, so that others see that we live
	manage func(dirs map[string]string, r *cgroups.Resources) (manager, error)
}

// manager is what we need of the library, of either version.
type manager interface {
	Set(*cgroups.Resources) error
	AddPid(subgroup string, pid int) error
	Freeze(cgroups.FreezerState) error
	Stats(*cgroups.StatsOptions) (*cgroups.Stats, error)
	OOMKillCount() (uint64, error)
}

// Open finds out what this machine gives and prepares the place for groups. The Tree is nil
// when nothing is given; the report then says why. Open removes nothing: call Sweep.
func Open(cfg Config) (*Tree, Report) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	mark, err := markOf(cfg.State)
	if err != nil {
		return nil, denied(err.Error(), "")
	}
	host := find(cfg, mark)
	if !host.report.Any() {
		return nil, host.report
	}
	return &Tree{log: log, mark: mark, host: host, groups: map[string]bool{}}, host.report
}

// Report is what Open said.
func (t *Tree) Report() Report { return t.host.report }

// Make makes an empty group with limits. A limit whose controller is not given is not set;
// whoever insists on it reads the report first. The name is a plain word of at most 128
// letters, digits, dots and hyphens, and is not in use.
func (t *Tree) Make(name string, limits Limits) (*Group, error) {
	if !plain(name) {
		return nil, fmt.Errorf("%w: %q", ErrName, name)
	}
	if !t.reserve(name) {
		return nil, fmt.Errorf("make cgroup %s: %w", name, fs.ErrExist)
	}
	g, err := t.make(name, limits)
	if err != nil {
		t.forget(name)
		return nil, fmt.Errorf("make cgroup %s: %w", name, err)
	}
	return g, nil
}

// make is Make without the books.
func (t *Tree) make(name string, limits Limits) (*Group, error) {
	dirs := map[string]string{}
	for controller, base := range t.host.base {
		dirs[controller] = filepath.Join(base, name)
	}
	resources := t.resources(limits)
	m, err := t.host.manage(dirs, resources)
	if err != nil {
		return nil, err
	}
	g := &Group{tree: t, name: name, dirs: dirs, manager: m, limits: limits}
	if err := g.create(resources); err != nil {
		return nil, errors.Join(err, g.rmdir())
	}
	return g, nil
}

// Close removes the folders below which groups were made. Groups that were not removed stay,
// and the next Sweep of any agent takes them. Closing twice is harmless.
func (t *Tree) Close() error {
	if t == nil {
		return nil
	}
	if t.inUse() {
		return t.host.release()
	}
	errs := []error{t.host.release()}
	for _, dir := range t.host.base {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("close cgroups: %w", err))
		}
	}
	return errors.Join(errs...)
}

// reserve enters a name into the books, unless it is in them.
func (t *Tree) reserve(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.groups[name] {
		return false
	}
	t.groups[name] = true
	return true
}

// inUse says whether a group is in the books.
func (t *Tree) inUse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.groups) > 0
}

// forget takes a removed group out of the books.
func (t *Tree) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, name)
}

// plain says whether a name can be a folder of its own.
func plain(name string) bool {
	if name == "" || len(name) > maxNameBytes || name[0] == '.' {
		return false
	}
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return true
}
