package httpapi

import (
	"context"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	// lagFrom is how many bytes a follower may be behind before it is told, and lagEvery how much it reads before that is looked at.
	lagFrom  = 1 << 20
	lagEvery = 256 << 10
	// lagPause is the least time between two events that say how much it still is.
	lagPause = time.Second
)

// lag tells the follower of a log when it reads more slowly than the log grows. Nothing is left out for that: what it has not
// read stays on the disk, and costs neither memory nor the time of whoever writes.
type lag struct {
	server  *Server
	events  *events
	attempt forge.AttemptID
	off     bool // it does not follow

	since int // bytes since the last look
	told  time.Time
}

// sent is called after each frame.
func (l *lag) sent(ctx context.Context, f *forge.LogFrame) error {
	if l.since += len(f.Bytes); l.off || l.since < lagEvery {
		return nil
	}
	l.since = 0
	frames, bytes, err := l.server.cfg.Logs.Behind(ctx, l.attempt, f.Seq+1)
	if err != nil {
		return err
	}
	switch {
	case bytes >= lagFrom && time.Since(l.told) >= lagPause:
		l.told = time.Now()
	case bytes < lagFrom && !l.told.IsZero():
		l.told = time.Time{}
		frames, bytes = 0, 0
	default:
		return nil
	}
	return l.events.send(0, api.EventLag, api.LogLag{Seq: uint64(f.Seq), Frames: frames, Bytes: bytes})
}
