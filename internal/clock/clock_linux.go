package clock

import (
	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func bootNow() forge.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock: CLOCK_BOOTTIME: " + err.Error()) // every kernel since 2.6.39 has it
	}
	return forge.Instant(ts.Nano())
}
