package objects

import (
	"context"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	// watchEvery is how often Watch looks at the disk.
	watchEvery = 15 * time.Second
	// lowTimes is how many times the free space that is kept there has to be, or people are told.
	lowTimes = 4

	// partsEvery is how often Watch looks for uploads that were given up.
	partsEvery = time.Hour
	// partLife is for how long what has come of an upload waits for the rest.
	partLife = 7 * 24 * time.Hour
)

// Room is what is left of the disk.
type Room struct {
	Free    forge.Bytes
	MinFree forge.Bytes // below which nothing is taken
	Low     bool        // somebody should look after it
	Full    bool        // nothing is taken
}

// Room looks at the disk.
func (o *Objects) Room() (Room, error) {
	free, err := free(o.dir)
	if err != nil {
		return Room{}, fmt.Errorf("look at the free space of %s: %w", o.dir, err)
	}
	return Room{Free: free, MinFree: o.minFree, Low: free < lowTimes*o.minFree, Full: free <= o.minFree}, nil
}

// Watch says in the log when the disk becomes low or full, and when it is not any more, until ctx ends: this is the owner's
// time to act. Nothing is deleted but what has come of uploads that nobody went on with for partLife.
func (o *Objects) Watch(ctx context.Context) {
	var last Room
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	parts := time.NewTicker(partsEvery)
	defer parts.Stop()
	o.dropParts(time.Now())
	for {
		if now, err := o.Room(); err != nil {
			o.log.Warn("the disk of the store cannot be looked at", "error", err)
		} else {
			o.tell(last, now)
			last = now
		}
		select {
		case <-ticker.C:
		case now := <-parts.C:
			o.dropParts(now)
		case <-ctx.Done():
			return
		}
	}
}

// dropParts gives up uploads that nobody has gone on with for partLife.
func (o *Objects) dropParts(now time.Time) {
	count, bytes, err := o.disk.DropParts(now.Add(-partLife))
	if err != nil {
		o.log.Warn("uploads that nobody went on with cannot be removed", "path", o.dir, "error", err)
	}
	if count > 0 {
		o.log.Info("removed uploads that nobody went on with", "objects", count, "bytes", uint64(bytes), "for", partLife)
	}
}

// tell says what has changed.
func (o *Objects) tell(last, now Room) {
	attrs := []any{"path", o.dir, "free", uint64(now.Free), "kept_free", uint64(now.MinFree)}
	switch {
	case now.Full && !last.Full:
		o.log.Error("the store is full: uploads wait until there is room; free some on this disk, or move the daemon's folder to a larger one", attrs...)
	case now.Low && !now.Full && (!last.Low || last.Full):
		o.log.Warn("the store's disk is filling up", attrs...)
	case !now.Low && last.Low:
		o.log.Info("the store has room again", attrs...)
	}
}
