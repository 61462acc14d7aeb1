package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// Bounds of the background.
const (
	// maxWaiting is how many trees may wait to be removed before whoever removes another one waits too.
	maxWaiting = 64
	// closeWithin is how long Close goes on with what waits.
	closeWithin = 2 * time.Second
)

// errStopped ends a removal that Close cannot wait for. The next process goes on with it.
var errStopped = errors.New("the agent ends")

// enqueue lets a tree be removed, unless it waits already, and reports whether it does so. The error is os.ErrClosed.
func (r *Root) enqueue(gone string) (added bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false, os.ErrClosed
	}
	if slices.Contains(r.queue, gone) {
		return false, nil
	}
	r.queue = append(r.queue, gone)
	if !r.removing {
		r.removing = true
		r.removes.Go(r.removeAll)
	}
	return true, nil
}

// Waiting is how many trees wait to be removed, the one that is being removed among them.
func (r *Root) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// throttle waits until fewer trees wait than may, or nothing is removed any more.
func (r *Root) throttle() { _ = r.wait(context.Background(), maxWaiting) }

// Idle returns once nothing waits to be removed. The error is the cause with which ctx ended before.
func (r *Root) Idle(ctx context.Context) error { return r.wait(ctx, 0) }

// wait returns once no more trees wait than most.
func (r *Root) wait(ctx context.Context, most int) error {
	for {
		r.mu.Lock()
		enough, moved := len(r.queue) <= most || r.closed, r.moved
		r.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// removeAll removes what waits until nothing does.
func (r *Root) removeAll() {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.removing = false
			r.mu.Unlock()
			return
		}
		gone := r.queue[0]
		r.mu.Unlock()
		err := r.remove(gone)
		r.removed(gone, err)
	}
}

// removed notes the end of a removal.
func (r *Root) removed(gone string, err error) {
	r.mu.Lock()
	_, known := r.failed[gone]
	delete(r.failed, gone)
	failed := err != nil && !errors.Is(err, errStopped)
	if failed {
		err = fmt.Errorf("remove %s/%s: %w", r.path, gone, err)
		r.failed[gone] = err
	}
	r.queue = r.queue[1:]
	r.tellLocked()
	r.mu.Unlock()
	switch {
	case failed && !known && r.opts.Failed != nil:
		r.opts.Failed(err)
	case err == nil && r.opts.Removed != nil:
		r.opts.Removed()
	}
}

// tellLocked wakes those who wait.
func (r *Root) tellLocked() {
	close(r.moved)
	r.moved = make(chan struct{})
}

// failures are what could not be removed until now, in the order of the names.
func (r *Root) failures() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, gone := range slices.Sorted(maps.Keys(r.failed)) {
		errs = append(errs, r.failed[gone])
	}
	return errs
}

// stopped reports whether removing has to end where it is.
func (r *Root) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// Close gives the root back. Workspaces stay. What waits to be removed still is, if that takes no longer than closeWithin; else it stays
// too, for the next process to sweep. It may be called more than once.
func (r *Root) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.tellLocked()
	r.mu.Unlock()
	if !first {
		return nil
	}
	late := time.AfterFunc(closeWithin, func() { close(r.stop) })
	r.removes.Wait()
	late.Stop()
	return r.root.Close()
}
