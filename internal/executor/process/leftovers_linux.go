package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	recordSuffix = ".json"
	bootFile     = "/proc/sys/kernel/random/boot_id"

	// farewell is how long a supervisor whose agent has gone may take to kill everything by itself.
	farewell = 2 * time.Second
	// sweepPause is between two looks at processes that are to be dead.
	sweepPause = 5 * time.Millisecond
	// calmSweeps is how many looks in a row must find nothing.
	calmSweeps = 2
)

// memoryDir is where folders of secrets are made.
const memoryDir = "/dev/shm"

// supervised is what stands on disk about a supervisor while it may live.
type supervised struct {
	Boot string
	proc
}

func (e *Executor) recordPath(attempt string) string {
	return filepath.Join(e.cfg.State, attempt+recordSuffix)
}

// unfinished is behind the name of a record that is being written: of a supervisor that has been told nothing yet.
const unfinished = ".new"

// record notes a supervisor. It need not outlive the machine.
func (e *Executor) record(attempt forge.AttemptID, p proc) error {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return err
	}
	text, err := json.Marshal(supervised{Boot: strings.TrimSpace(string(boot)), proc: p})
	if err != nil {
		return err
	}
	path := e.recordPath(attempt.String())
	if err := os.WriteFile(path+unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+unfinished, path)
}

// forget removes what is left of an attempt that is over.
func (e *Executor) forget(attempt forge.AttemptID) {
	if err := e.tidy(attempt.String()); err != nil {
		e.cfg.Log.Error("something of an attempt stays behind", "attempt", attempt, "error", err)
	}
	e.live.Drop(attempt)
}

func (e *Executor) tidy(attempt string) error {
	path := e.recordPath(attempt)
	return errors.Join(os.RemoveAll(path), os.RemoveAll(path+unfinished), os.RemoveAll(filepath.Join(memoryDir, e.secretsName(attempt))))
}

// KillLeftovers ends what earlier agents on this state folder have left.
func (e *Executor) KillLeftovers(ctx context.Context) error {
	entries, err := os.ReadDir(e.cfg.State)
	if err != nil {
		return fmt.Errorf("kill leftovers: %w", err)
	}
	var attempts []string
	for _, entry := range entries {
		attempt, ok := strings.CutSuffix(strings.TrimSuffix(entry.Name(), unfinished), recordSuffix)
		if !ok || e.live.Has(attempt) {
			continue
		}
		attempts = append(attempts, attempt)
		if p, ok := e.recorded(attempt); ok {
			farewellTo(ctx, p)
		}
	}
	if err := e.sweepUntilCalm(ctx); err != nil {
		return fmt.Errorf("kill leftovers: %w", err)
	}
	for _, attempt := range attempts {
		err = errors.Join(err, e.tidy(attempt))
	}
	return errors.Join(err, e.tidySecrets())
}

// recorded reads a record. One of an earlier boot, or one that was cut off, names no process. One that came here with a copy
// of a state folder names a process of the agent on the other, which has the mark of that place and may be alive and well.
func (e *Executor) recorded(attempt string) (proc, bool) {
	text, err := os.ReadFile(e.recordPath(attempt))
	if err != nil {
		return proc{}, false
	}
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return proc{}, false
	}
	var s supervised
	if json.Unmarshal(text, &s) != nil || s.Boot != strings.TrimSpace(string(boot)) || s.PID <= 1 {
		return proc{}, false
	}
	_, ours := s.hasMark(e.mark + ".")
	return s.proc, ours
}

// farewellTo waits for a supervisor that has lost its agent, and kills it with all that is below it if it does not end.
func farewellTo(ctx context.Context, p proc) {
	end := time.NewTimer(farewell)
	defer end.Stop()
	look := time.NewTicker(sweepPause)
	defer look.Stop()
	for p.alive() {
		select {
		case <-look.C:
			continue
		case <-end.C:
		case <-ctx.Done():
		}
		killTree(p)
		return
	}
}

// killTree kills all that descends from a supervisor, and then the supervisor. What is left of it then has its mark.
func killTree(root proc) {
	for range treeSweeps {
		all, err := snapshot()
		if err != nil || !root.alive() || killAll(below(all, root.PID)) == 0 {
			break
		}
	}
	_ = root.signal(unix.SIGKILL) // an error means that it has gone
}

// treeSweeps bounds the looks at what descends from a supervisor that is stopped.
const treeSweeps = 100

// sweepUntilCalm kills what has the mark of this state folder, except what belongs to living workloads.
func (e *Executor) sweepUntilCalm(ctx context.Context) error {
	mine := func(attempt string) bool { return !e.live.Has(attempt) }
	look := time.NewTicker(sweepPause)
	defer look.Stop()
	for calm := 0; calm < calmSweeps; {
		n, err := e.sweepOnce(mine, nil)
		if err != nil {
			return err
		}
		if calm++; n > 0 {
			calm = 0
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// sweep kills what is left of attempts until nothing is.
func (e *Executor) sweep(mine func(attempt string) bool, pipes map[string]bool) {
	look := time.NewTicker(sweepPause)
	defer look.Stop()
	for calm := 0; calm < calmSweeps; <-look.C {
		n, err := e.sweepOnce(mine, pipes)
		if err != nil {
			e.cfg.Log.Error("the processes of an attempt cannot be listed", "error", err)
			return
		}
		if calm++; n > 0 {
			calm = 0
		}
	}
}

// sweepOnce kills the processes that have the mark of an attempt that is to end, or one of its pipes; their descendants;
// and whoever shares a session with one of them. It returns how many lived.
func (e *Executor) sweepOnce(mine func(attempt string) bool, pipes map[string]bool) (int, error) {
	syscall.ForkLock.RLock() // a child of ours that has not called execve yet would seem to hold the pipes
	defer syscall.ForkLock.RUnlock()
	all, err := snapshot()
	if err != nil {
		return 0, err
	}
	spared := spare(all)
	sessions := map[int]bool{}
	var roots []int
	for _, p := range all {
		if spared[p.PID] || p.dead || !e.matches(p, mine, pipes) {
			continue
		}
		sessions[p.session] = true
		roots = append(roots, p.PID)
	}
	self, err := readProc(os.Getpid())
	if err != nil {
		return 0, err
	}
	delete(sessions, self.session)
	var victims []proc
	found := map[int]bool{}
	for _, p := range below(all, roots...) {
		found[p.PID] = true
	}
	for _, root := range roots {
		found[root] = true
	}
	for _, p := range all {
		if !spared[p.PID] && (found[p.PID] || sessions[p.session]) {
			victims = append(victims, p)
		}
	}
	return killAll(victims), nil
}

func (e *Executor) matches(p proc, mine func(string) bool, pipes map[string]bool) bool {
	if attempt, ok := p.hasMark(e.mark + "."); ok {
		return mine(attempt)
	}
	return len(pipes) > 0 && p.holdsAny(pipes)
}

// spare returns this process and all that it descends from.
func spare(all []proc) map[int]bool {
	parents := map[int]int{}
	for _, p := range all {
		parents[p.PID] = p.parent
	}
	spared := map[int]bool{0: true, 1: true}
	for pid := os.Getpid(); !spared[pid]; pid = parents[pid] {
		spared[pid] = true
	}
	return spared
}

// tidySecrets removes folders of secrets whose attempts have no record any more.
func (e *Executor) tidySecrets() error {
	prefix := e.secretsName("")
	entries, err := os.ReadDir(memoryDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if attempt, ok := strings.CutPrefix(entry.Name(), prefix); ok && !e.live.Has(attempt) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(memoryDir, entry.Name())))
		}
	}
	return err
}
