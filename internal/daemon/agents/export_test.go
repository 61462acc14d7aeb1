package agents

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
)

// Bounds of what a log stream has in memory.
const (
	MaxBatch   = maxBatch
	FrameBytes = frameBytes
)

// Gather adds a frame to what waits for the disk until there is no room, and says how often it has.
func Gather(ctx context.Context, budget int64, in *link.Inbound, f forge.LogFrame) (n int) {
	s := &Server{serving: ctx, budget: semaphore.NewWeighted(budget)}
	i := &intake{server: s, in: in, wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	for i.frame(f) {
		n++
	}
	return n
}

// Advance makes the server's clock jump ahead, as that of a machine that slept.
func (s *Server) Advance(by forge.Instant) {
	s.call(func() {
		boot := s.boot
		s.boot = func() forge.Instant { return boot() + by }
	})
}
