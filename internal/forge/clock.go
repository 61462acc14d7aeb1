package forge

import "time"

// Instant is a reading of a local clock that never steps and runs while the machine sleeps (CLOCK_BOOTTIME), in
// nanoseconds since an arbitrary origin. Instants of two machines, or of two boots, cannot be compared; only durations
// counted on one of them mean anything. Nothing of authority is ever decided on another clock.
type Instant int64

// Add returns i + d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the duration from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Never is later than every instant.
const Never Instant = 1<<63 - 1

// WallTime is a wall clock reading in milliseconds since 1970, for people: display, logs, diagnostics (09§146).
// It may step in any direction and decides nothing.
type WallTime int64
