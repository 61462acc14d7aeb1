//go:build linux

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// readySandboxes is how many sandboxes an agent keeps ready for jobs to come.
const readySandboxes = 1

// Remains names what is left of attempts, each with its place: nothing, once they have ended and were cleaned up. An agent that
// runs is asked as well as looked at, and is expected to hold nothing, so that no attempt may be under way. It looks at
//
//   - files of attempts: workspaces, those that are being removed too, logs, records; and trees and objects that are half made
//   - pins of objects and of trees, and what is reserved, on the agent and with the daemon
//   - processes, mounts on this machine or in front of a launcher, loop devices, and control groups
func (f *Fleet) Remains(ctx context.Context, attempts []string) (left []string, err error) {
	left, err = loops(f.Folder)
	for _, pid := range f.Leftovers() {
		left = append(left, fmt.Sprintf("process %d", pid))
	}
	mounted, mountErr := mounts(os.Getpid(), f.Folder, attempts)
	left, err = append(left, mounted...), errors.Join(err, mountErr)
	for _, a := range f.Agents() {
		files, fileErr := a.files()
		groups, groupErr := a.groups()
		held, heldErr := a.holding(ctx, attempts)
		left, err = slices.Concat(left, files, groups, held), errors.Join(err, fileErr, groupErr, heldErr)
	}
	return left, err
}

// AwaitNoRemains waits until nothing is left of attempts that have ended. Its error names what is.
func (f *Fleet) AwaitNoRemains(ctx context.Context, attempts []string) error {
	var left []string
	err := Await(ctx, "nothing to be left of the attempts", func() (done bool, err error) {
		left, err = f.Remains(ctx, attempts)
		return len(left) == 0, err
	})
	if err != nil && len(left) > 0 {
		return fmt.Errorf("%w; there are %d things, like %q", err, len(left), left[:min(len(left), 20)])
	}
	return err
}

// underway begin the names of what is half made, or on its way out.
var underway = []string{".gone-", ".new-", ".tmp-"}

// files names what attempts have left in the agent's folder: whatever bears the name of one, and what is not whole. Caches are
// kept for the attempts to come.
func (a *Agent) files() (left []string, err error) {
	err = filepath.WalkDir(a.Folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != a.Folder:
			return nil // gone meanwhile
		case err != nil:
			return err
		case !ofAttempt(entry.Name()) && !half(path):
			return nil
		}
		left = append(left, path)
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return left, err
}

// ofAttempt reports whether a name is that of something of an attempt, with or without an ending.
func ofAttempt(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	_, err := forge.ParseID[forge.AttemptID](name)
	return err == nil
}

// half reports whether a file is in the making, or set aside as broken.
func half(path string) bool {
	name := filepath.Base(path)
	if slices.ContainsFunc(underway, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return true
	}
	return slices.Contains([]string{"tmp", "parts", "quarantine"}, filepath.Base(filepath.Dir(path)))
}

// holding names what an agent that runs keeps for attempts, and what its daemon keeps of it.
func (a *Agent) holding(ctx context.Context, attempts []string) (left []string, err error) {
	if !a.Alive() {
		return nil, nil
	}
	for _, pid := range a.Keepers() {
		seen, mountErr := mounts(pid, "", attempts)
		left, err = append(left, seen...), errors.Join(err, mountErr)
	}
	own := admin.NewClient(a.Folder)
	defer own.Close()
	status, statusErr := own.Status(ctx)
	if errors.Is(statusErr, admin.ErrNotRunning) {
		return append(left, a.name+" is not at work yet, and may find what an earlier process has left"), err
	}
	for _, t := range status.Attempts {
		left = append(left, a.name+" holds attempt "+t.ID+", which is "+t.State)
	}
	if status.Active != (admin.Amounts{}) {
		left = append(left, fmt.Sprintf("%s has reserved %+v", a.name, status.Active))
	}
	if status.InUse != (admin.InUse{}) {
		left = append(left, fmt.Sprintf("%s keeps %+v", a.name, status.InUse))
	}
	reserved, reservedErr := a.reserved(ctx)
	return append(left, reserved...), errors.Join(err, statusErr, reservedErr)
}

// reserved names what is not free of the agent by its daemon's books, beside what the agent keeps for its host and holds back under
// pressure. Disks are left out: they are free or not for reasons of others.
func (a *Agent) reserved(ctx context.Context) (left []string, err error) {
	client, err := a.fleet.Daemon.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	runner, err := a.runner(ctx, client)
	if err != nil {
		return nil, err
	}
	why, err := client.ExplainRunner(ctx, runner.ID)
	if err != nil {
		return nil, err
	}
	if runner.Capabilities == nil || runner.Load == nil {
		return []string{a.name + " has not said yet what it has"}, nil
	}
	all, load, free := amountsOf(runner.Capabilities.Resources), runner.Load, amountsOf(why.Free)
	for i, total := range amountsOf(load.Total) {
		reserve, active, offered := amountsOf(load.Reserved)[i], amountsOf(load.Active)[i], amountsOf(load.Free)[i]
		heldBack := max(0, total-reserve-active-offered)
		if want := all[i] - reserve - heldBack; free[i] < want {
			left = append(left, fmt.Sprintf("by its daemon there are free of %s %d %s, and %d would be without attempts", a.name, free[i], units[i], want))
		}
	}
	return left, nil
}

// amounts are in the units.
type amounts [3]int64

var units = [3]string{"thousandths of a core", "bytes of memory", "slots"}

func amountsOf(r *api.Resources) (n amounts) {
	if r == nil {
		return n
	}
	if r.CPU != nil {
		n[0] = int64(*r.CPU)
	}
	if r.Memory != nil {
		n[1] = int64(*r.Memory) //nolint:gosec // no machine has so much
	}
	if r.Slots != nil {
		n[2] = int64(*r.Slots)
	}
	return n
}

// groups names the agent's control groups but for those of the sandboxes that it has ready. Once it has ended of itself, it has
// none, nor a place for them.
func (a *Agent) groups() (left []string, err error) {
	state := filepath.Join(a.Folder, "executor", "native")
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was never started
	}
	made, err := cgroup.Made(state)
	ready := map[string]bool{}
	for _, path := range made {
		name := filepath.Base(path)
		switch {
		case a.Alive() && strings.HasPrefix(name, "forgeyard-"):
		case a.Alive() && len(ready) < readySandboxes || ready[name]:
			ready[name] = true // one folder in each hierarchy
		default:
			left = append(left, "control group "+path)
		}
	}
	return left, err
}

// loops names the devices that show files of a folder as disks.
func loops(folder string) (left []string, err error) {
	backing, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range backing {
		if name, err := os.ReadFile(file); err == nil && bytes.HasPrefix(name, []byte(folder+"/")) { // else it was let go
			left = append(left, fmt.Sprintf("%s, which is %s", file, bytes.TrimSpace(name)))
		}
	}
	return left, err
}

// mounts names the mounts that a process sees of a folder, or of attempts. A process that ends sees none.
func mounts(pid int, folder string, attempts []string) (left []string, err error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EINVAL) { // the last: a zombie
		return nil, nil
	}
	for line := range bytes.Lines(info) {
		has := func(word string) bool { return bytes.Contains(line, []byte(word)) }
		if folder != "" && has(folder+"/") || slices.ContainsFunc(attempts, has) {
			left = append(left, fmt.Sprintf("for process %d: mount %s", pid, bytes.TrimSpace(line)))
		}
	}
	return left, err
}
