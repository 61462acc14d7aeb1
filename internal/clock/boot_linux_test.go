package clock_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
)

// Case T61: the clock of deadlines is the one that runs on while the machine sleeps. Go's timers stand still then.
func TestBootIsTheClockThatCountsSleep(t *testing.T) {
	read := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	before, now, after := read(), time.Duration(clock.Boot()), read()
	if now < before || now > after {
		t.Errorf("Boot() = %v, CLOCK_BOOTTIME went from %v to %v", now, before, after)
	}
}
