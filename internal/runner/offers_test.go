package runner

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
)

// TestAnOfferThatCannotBeDeliveredIsRefusedBeforeAnythingStarts holds what this agent does not do yet to its word.
func TestAnOfferThatCannotBeDeliveredIsRefusedBeforeAnythingStarts(t *testing.T) {
	y := newYard(t, &runnertest.Machine{Run: func(context.Context, *runnertest.Workload) forge.Result {
		t.Error("it was started")
		return forge.Result{}
	}})
	y.start(nil)
	s := spec()
	s.Caches = []forge.Cache{{Key: "go", Paths: []string{"home/.cache"}}}
	job := y.daemon.Offer(y.daemon.Synced(), s)
	got := runnertest.Await(y.daemon, "the offer is refused", func(m *forge.LeaseReject) bool { return m.Context == job })
	if got.Reason != forge.RejectUnsupportedSpec {
		t.Errorf("refused for %v", got.Reason)
	}
}

// TestMoreThanTheMachineHasIsRefusedAndNotQueued: cases T58, T07.
func TestMoreThanTheMachineHasIsRefusedAndNotQueued(t *testing.T) {
	release := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Run: func(context.Context, *runnertest.Workload) forge.Result {
		<-release
		return forge.Result{Class: forge.Succeeded}
	}})
	y.start(func(c *Config) { c.Slots = 1 })
	c := y.daemon.Synced()
	first := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the first job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	for range 9 {
		job := y.daemon.Offer(c, spec())
		got := runnertest.Await(y.daemon, "the offer is refused", func(m *forge.LeaseReject) bool { return m.Context == job })
		if got.Reason != forge.RejectResourcePressure {
			t.Errorf("refused for %v", got.Reason)
		}
	}
	close(release)
	runnertest.Await(y.daemon, "the first job is completed", of(first))
}

// The files of a job go after the job is counted out, and the machine is looked at every ten seconds only. Whoever waits for the
// disk that they have had waits for no such look.
func TestTheDiskOfAJobIsGivenAwayAsSoonAsItsFilesAreGone(t *testing.T) {
	release := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		<-release
		return forge.Result{Class: forge.Succeeded}
	}})
	a := y.start(nil)
	c := y.daemon.Synced()
	first := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the first job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	a.mu.Lock()
	a.reading.Disk = 0 // as a look finds it while the job has filled the disk
	a.mu.Unlock()
	y.must(a.call(t.Context(), a.admit))
	early := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "there is no disk for a second job", func(m *forge.LeaseReject) bool {
		return m.Context == early && m.Reason == forge.RejectDiskInsufficient
	})
	close(release)
	runnertest.Await(y.daemon, "the first job is completed", of(first))
	second := y.daemon.Offer(c, spec())
	runnertest.Await(y.daemon, "the second job is completed", of(second))
}

// brimming is a machine whose disk may be full when an attempt is prepared.
type brimming struct {
	*runnertest.Machine
	full atomic.Bool
}

func (m *brimming) Prepare(ctx context.Context, order executor.Order) (executor.Workload, error) {
	if m.full.Load() {
		return nil, &executor.SetupError{Class: forge.DiskInsufficient, Err: syscall.ENOSPC}
	}
	return m.Machine.Prepare(ctx, order)
}

// Case B46.
func TestPreparationsThatFailGiveTheirSlotBack(t *testing.T) {
	machine := &brimming{Machine: &runnertest.Machine{}}
	machine.full.Store(true)
	y := newYard(t, machine.Machine)
	a := y.start(func(c *Config) {
		c.Slots = 1
		c.Executors = func(string) ([]executor.Executor, error) { return []executor.Executor{machine}, nil }
	})
	c := y.daemon.Synced()
	for range 10 {
		got := runnertest.Await(y.daemon, "it ends", of(y.daemon.Offer(c, spec())))
		if got.Result.Class != forge.DiskInsufficient {
			t.Errorf("it ended %v", got.Result.Class)
		}
		a.untilIdle()
	}
	machine.full.Store(false)
	if got := runnertest.Await(y.daemon, "the next one ends", of(y.daemon.Offer(c, spec()))); got.Result.Class != forge.Succeeded {
		t.Errorf("with room on the disk it ended %v", got.Result.Class)
	}
	a.untilIdle()
	y.nothingLeft()
}
