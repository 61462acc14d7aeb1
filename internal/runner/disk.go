package runner

import (
	"log/slog"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/localstate"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// The wait before something is written to the journal again.
const (
	diskRetry    = 200 * time.Millisecond
	maxDiskRetry = 5 * time.Second
)

// disk writes the journal, in the order in which it is asked to. What cannot be written is tried until it can, or until
// the process ends: its next one cleans up. What waits is bounded by the attempts that an agent may hold: of each the
// latest record, since a newer one makes those before it useless.
type disk struct {
	folder  *localstate.Folder
	log     *slog.Logger
	written func(forge.AttemptID, uint64)
	state   *diskState
}

type diskState struct {
	wake chan struct{} // has room for one

	mu     sync.Mutex
	queue  []diskOp
	closed bool
	fault  error // of the latest try
}

// diskOp is a record to write, or one to drop.
type diskOp struct {
	attempt forge.AttemptID
	record  *core.Record
}

func newDisk(folder *localstate.Folder, log *slog.Logger, written func(forge.AttemptID, uint64)) disk {
	return disk{folder: folder, log: log, written: written, state: &diskState{wake: make(chan struct{}, 1)}}
}

func (d disk) write(r core.Record) { d.push(diskOp{attempt: r.Context.Attempt, record: &r}) }

func (d disk) drop(id forge.AttemptID) { d.push(diskOp{attempt: id}) }

func (d disk) push(op diskOp) {
	s := d.state
	s.mu.Lock()
	replaced := false
	for i := range s.queue {
		if s.queue[i].attempt == op.attempt {
			s.queue[i], replaced = op, true
		}
	}
	if !replaced {
		s.queue = append(s.queue, op)
	}
	s.mu.Unlock()
	d.kick()
}

func (d disk) kick() {
	select {
	case d.state.wake <- struct{}{}:
	default:
	}
}

// end lets run return once nothing waits any more, or at its first fault.
func (d disk) end() {
	d.state.mu.Lock()
	d.state.closed = true
	d.state.mu.Unlock()
	d.kick()
}

// err is the fault of the latest try, if it was one.
func (d disk) err() error {
	d.state.mu.Lock()
	defer d.state.mu.Unlock()
	return d.state.fault
}

// run writes until end.
func (d disk) run() {
	wait := diskRetry
	for {
		op, waits, closed := d.next()
		if !waits {
			if closed {
				return
			}
			<-d.state.wake
			continue
		}
		err := d.carryOut(op)
		d.state.mu.Lock()
		d.state.fault = err
		d.state.mu.Unlock()
		if err == nil {
			wait = diskRetry
			continue
		}
		d.log.Error("the journal cannot be written", telemetry.KeyAttempt, op.attempt.String(), telemetry.KeyError, err)
		if closed {
			return
		}
		d.again(op)
		select {
		case <-time.After(wait):
		case <-d.state.wake: // there is something newer, or the end
		}
		wait = min(2*wait, maxDiskRetry)
	}
}

func (d disk) next() (op diskOp, waits, closed bool) {
	s := d.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return diskOp{}, false, s.closed
	}
	op = s.queue[0]
	s.queue = s.queue[1:]
	return op, true, s.closed
}

// again puts what failed back in front, unless something newer about its attempt waits.
func (d disk) again(op diskOp) {
	s := d.state
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.queue {
		if other.attempt == op.attempt {
			return
		}
	}
	s.queue = append([]diskOp{op}, s.queue...)
}

func (d disk) carryOut(op diskOp) error {
	if op.record == nil {
		return d.folder.Drop(op.attempt)
	}
	if err := d.folder.Write(*op.record); err != nil {
		return err
	}
	d.written(op.attempt, op.record.Version)
	return nil
}
