// Package clock reads the clocks of this machine. Boot is the one that decides: it never steps and it runs while the
// machine sleeps, so that a lease ends when it ends. Wall is for people and for certificates.
package clock

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxNap bounds every wait that is to end at an instant of Boot: the timers of the runtime stand still while a machine
// sleeps, so whoever waits for an instant looks again at least this often.
const MaxNap = time.Second

// Boot reads the clock on which deadlines stand. It starts somewhere above zero and is the same for all processes of one
// boot.
func Boot() forge.Instant { return bootNow() }

// Wall reads the time of day in UTC.
func Wall() time.Time { return time.Now().UTC() }

// Nap returns how long to sleep until an instant, at most MaxNap and at least zero.
func Nap(until forge.Instant) time.Duration {
	if until == forge.Never {
		return MaxNap
	}
	return max(0, min(until.Sub(Boot()), MaxNap))
}
