package logs

import (
	"context"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// closeEvery is how often Run looks for logs that nobody will seal.
const closeEvery = time.Minute

// Run closes, until ctx ends, the logs of attempts that ended without a seal, CloseAfter later. How long that is ago is
// counted by this process itself, so that a clock that steps closes nothing early. Meanwhile it packs the segments that will
// not grow any more. It returns nil.
func (s *Store) Run(ctx context.Context) error {
	var packer sync.WaitGroup
	defer packer.Wait()
	packer.Go(func() { s.packAll(ctx) })
	seen := map[forge.AttemptID]forge.Instant{}
	for {
		s.closeEnded(ctx, clock.Boot(), seen)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(closeEvery):
		}
	}
}

// closeEnded closes what was seen to be ended for long enough. seen remembers since when.
func (s *Store) closeEnded(ctx context.Context, now forge.Instant, seen map[forge.AttemptID]forge.Instant) {
	ended, err := s.cfg.Rows.Unsealed(ctx, clock.Wall())
	if err != nil {
		if ctx.Err() == nil {
			s.cfg.Log.Warn("logs without a seal were not looked for", telemetry.KeyError, err)
		}
		return
	}
	still := make(map[forge.AttemptID]bool, len(ended))
	for _, e := range ended {
		still[e.Attempt] = true
		since, known := seen[e.Attempt]
		if !known {
			seen[e.Attempt] = now
			continue
		}
		if now.Sub(since) < CloseAfter {
			continue
		}
		if _, err := s.end(ctx, e.Attempt, &authority.CloseLog{Lease: e.Lease, Attempt: e.Attempt}); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("a log was not closed", telemetry.KeyAttempt, e.Attempt.String(), telemetry.KeyError, err)
		}
	}
	for attempt := range seen {
		if !still[attempt] {
			delete(seen, attempt)
		}
	}
}
