package native

import (
	"fmt"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// A disk is looked at as often as it takes to see it full: a program that was told so may end a moment later, and take what
// it has written away before.
const (
	diskSpeed    = 2 * forge.GiB // that nobody writes in a second
	seldomLooks  = 500 * time.Millisecond
	oftenLooks   = 5 * time.Millisecond
	fullBytes    = 256 * forge.KiB // less is no room that a step could use
	fullNames    = 8
	noFurther    = "has room for no further files, whatever their size: it takes a name for each 4 KiB of its limit of %v"
	noFurtherYet = "is full: it holds %v"
)

// disk is an attempt's own, of which the kernel says no more than what is left of it now.
type disk struct {
	on       *sandbox.Disk
	watching sync.WaitGroup

	mu    sync.Mutex
	bytes forge.Bytes // left at the fullest moment since the last step's end
	names uint64
}

// watchDisk watches a disk until nothing can write it any more; wait joins it. nil is watched by nobody.
func watchDisk(on *sandbox.Disk, until <-chan struct{}) *disk {
	if on == nil {
		return nil
	}
	d := &disk{on: on, bytes: on.Limit, names: fullNames}
	d.watching.Go(func() {
		pause := time.NewTimer(oftenLooks)
		defer pause.Stop()
		for {
			select {
			case <-until:
				return
			case <-pause.C:
			}
			pause.Reset(pauseFor(d.look()))
		}
	})
	return d
}

// wait returns when nobody looks any more.
func (d *disk) wait() {
	if d != nil {
		d.watching.Wait()
	}
}

// pauseFor is how long it takes at least to write so much, between bounds.
func pauseFor(left forge.Bytes) time.Duration {
	if left >= diskSpeed {
		return seldomLooks
	}
	return min(max(time.Duration(left)*time.Second/time.Duration(diskSpeed), oftenLooks), seldomLooks)
}

// look notes what is left now, and returns that.
func (d *disk) look() forge.Bytes {
	bytes, names, err := d.on.Room()
	if err != nil {
		return diskSpeed // nothing is known
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes, d.names = min(d.bytes, bytes), min(d.names, names)
	return bytes
}

// ended says what a step should know that has ended with a class, unless something else is known to be to blame.
func (d *disk) ended(class forge.Class, f *keeper.Finding) {
	if d == nil {
		return
	}
	d.look()
	d.mu.Lock()
	bytes, names := d.bytes, d.names
	d.bytes, d.names = d.on.Limit, fullNames // the next step may find it as full
	d.mu.Unlock()
	if bytes >= fullBytes && names >= fullNames {
		return
	}
	what := fmt.Sprintf(noFurtherYet, d.on.Limit)
	if bytes >= fullBytes {
		what = fmt.Sprintf(noFurther, d.on.Limit)
	}
	if class != forge.ExitCode && class != forge.Signal {
		f.Notices = append(f.Notices, fmt.Sprintf("The job's disk %s. The step has gone on without what it could not write (ENOSPC).", what))
		return
	}
	f.Notices = append(f.Notices, fmt.Sprintf("The job's disk %s. Ask for more with resources: disk.", what))
	if f.Class == 0 {
		f.Class, f.Limit, f.Peak = forge.DiskFull, uint64(d.on.Limit), uint64(d.on.Limit)
	}
}
