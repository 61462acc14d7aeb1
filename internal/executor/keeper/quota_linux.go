package keeper

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/folder"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// The watch over an attempt's disk costs a call of the system each quotaPause, and a walk through the attempt's folder only
// where the disk has lost so much since the last walk that the attempt may be over its limit soon, or after quotaLeast.
const (
	quotaPause    = 500 * time.Millisecond
	quotaLeast    = 30 * time.Second
	quotaShare    = 20               // walks take at most one part in so many of the time
	measureWithin = 10 * time.Second // after which what was counted has to do
)

// nameBytes is what a name takes of an attempt's disk at least: an empty file has no blocks, and yet some disks run out of
// room for further files long before they run out of blocks.
const nameBytes = 4096

// quota is what an attempt may write, and what it has. One goroutine uses it at a time.
type quota struct {
	folder string
	disk   uint64 // its device
	pid    int    // from whom every process of the attempt descends
	limit  uint64 // 0: none
	base   uint64 // what the folder took before the first step
	used   uint64 // at the last walk, without base
	free   uint64 // of the disk then
	names  uint64 // that the disk had room for then
	at     time.Time
	took   time.Duration // by the last walk
}

// newQuota looks at a folder in which nothing is at work yet. With an error it returns one that has no limit.
func newQuota(ctx context.Context, dir string, pid int, limit forge.Bytes) (*quota, error) {
	q := &quota{folder: dir, pid: pid, limit: uint64(limit)}
	if limit == 0 {
		return q, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return &quota{}, fmt.Errorf("look at %s: %w", dir, err)
	}
	size, err := folder.Measure(ctx, dir)
	if err != nil {
		return &quota{}, err
	}
	q.disk, q.base, q.at = st.Dev, taken(size), time.Now()
	q.free, q.names, err = room(dir)
	return q, err
}

// taken is what counts of a folder.
func taken(size folder.Size) uint64 { return max(size.Bytes, nameBytes*size.Files) }

// room is how many bytes and names the disk of a folder has left.
func room(dir string) (bytes, names uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	if s.Files == 0 {
		s.Ffree = ^uint64(0) // it makes them as they are needed
	}
	return s.Bavail * uint64(s.Bsize), s.Ffree, nil
}

// look reports whether the attempt has written more than its limit, as far as is known.
func (q *quota) look(ctx context.Context, now time.Time) (over bool, err error) {
	free, names, err := room(q.folder)
	if err != nil || !q.due(free, names, now) {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, measureWithin)
	defer cancel()
	size, err := folder.Measure(ctx, q.folder)
	all := taken(size)
	q.used, q.free, q.names, q.at = all-min(all, q.base)+held(ctx, q.pid, q.disk), free, names, now
	q.took = time.Since(now)
	return q.used > q.limit, err // of what was counted that is true in any case
}

// due reports whether it is time to walk: the attempt may be half the way from what it had to its limit, as the disk says.
func (q *quota) due(free, names uint64, now time.Time) bool {
	since := now.Sub(q.at)
	lost := max(q.free-min(q.free, free), nameBytes*(q.names-min(q.names, names)))
	left := q.limit - min(q.limit, q.used)
	return since >= quotaShare*q.took && (lost > left/2 || since >= quotaLeast)
}

// overran is what the keeper is told, and the reader of the log.
func (q *quota) overran() *Overrun { return &Overrun{Limit: q.limit, Peak: q.used} }

// watch ends an attempt that writes more than it may.
func (w *workload) watch(ctx context.Context) {
	if w.quota.limit == 0 {
		return
	}
	pause := time.NewTicker(quotaPause)
	defer pause.Stop()
	complained := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		over, err := w.quota.look(ctx, time.Now())
		if err != nil && ctx.Err() == nil && !complained {
			complained = true
			w.job.Log.Warn("what an attempt has written cannot be measured", "attempt", w.job.Order.Context.Attempt, "error", err)
		}
		if over {
			w.overflow(w.quota.overran())
			return
		}
	}
}

// overflow ends the attempt at once: what it writes while it is asked to end would be more still.
func (w *workload) overflow(o *Overrun) {
	w.mu.Lock()
	w.full = o
	w.mu.Unlock()
	_ = w.tell(&Request{Full: o}) // else the enforcer does it
	w.hasten()
}

// Below these, a disk has no room that a step could use.
const (
	noRoom  = 256 << 10 // bytes
	noNames = 8
)

// noDisk says what the reader of a log should know of the disk when a step has failed: nothing if it has room.
func (w *workload) noDisk() []string {
	bytes, names, err := room(w.job.Order.Folder)
	switch {
	case err != nil:
		return nil
	case bytes < noRoom:
		return []string{fmt.Sprintf("The disk of this machine is full: %v are left, so that programs cannot write (ENOSPC). It is not this job's limit.",
			forge.Bytes(bytes))}
	case names < noNames:
		return []string{"The disk of this machine has no room for further files (ENOSPC), whatever their size. It is not this job's limit."}
	}
	return nil
}
