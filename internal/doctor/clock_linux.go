package doctor

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
)

const (
	timeError  = 5               // the kernel's answer when nobody keeps its clock
	weakSkew   = 5 * time.Second // between two times of day that people compare
	badSkew    = 5 * time.Minute // beyond which certificates are refused
	syncClock  = "timedatectl set-ntp true, or run chrony or ntpd"
	checkSync  = "clock synchronised"
	checkBoot  = "clock of deadlines"
	checkDrift = "clock against the daemon's"
)

// clocks looks at the time of day and at the clock of deadlines.
func clocks(ctx context.Context, date func(context.Context) (time.Time, error)) []Finding {
	all := []Finding{synchronised(unix.Adjtimex(new(unix.Timex))), boot()}
	if date != nil {
		all = append(all, against(ctx, date))
	}
	return all
}

// synchronised judges the kernel's own word about its clock.
func synchronised(state int, err error) Finding {
	switch {
	case err != nil:
		return weak(checkSync, "the kernel does not say: "+err.Error(), syncClock)
	case state == timeError:
		return weak(checkSync, "nobody keeps the clock of this machine; times in logs can be wrong, leases cannot", syncClock)
	}
	return ok(checkSync, "")
}

// boot looks whether the clock of deadlines runs on while the machine sleeps: it is then never
// behind the one that stands still.
func boot() Finding {
	var awake unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake); err != nil {
		return missing(checkBoot, err.Error(), "")
	}
	var all unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &all); err != nil {
		return missing(checkBoot, err.Error(), "")
	}
	asleep := time.Duration(all.Nano() - awake.Nano())
	if asleep < 0 {
		return missing(checkBoot, "CLOCK_BOOTTIME is behind CLOCK_MONOTONIC; deadlines cannot be kept", "report this to whoever makes the kernel or the container")
	}
	if now := clock.Boot(); clock.Boot() < now {
		return missing(checkBoot, "CLOCK_BOOTTIME runs backwards", "report this to whoever makes the kernel")
	}
	return ok(checkBoot, fmt.Sprintf("%s of sleep since the start", asleep.Round(time.Second)))
}

// against compares the time of day with the daemon's. Half of the time that the question took
// may be the answer's way.
func against(ctx context.Context, date func(context.Context) (time.Time, error)) Finding {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	before := clock.Wall()
	theirs, err := date(ctx)
	after := clock.Wall()
	if err != nil {
		return weak(checkDrift, "the daemon cannot be asked: "+err.Error(), "")
	}
	return skewOf(before.Add(after.Sub(before) / 2).Sub(theirs))
}

// skewOf judges how far this clock is ahead of the daemon's, negative when it is behind.
func skewOf(ahead time.Duration) Finding {
	way, size := "ahead", ahead
	if ahead < 0 {
		way, size = "behind", -ahead
	}
	detail := fmt.Sprintf("%s %s", size.Round(time.Second), way)
	switch {
	case size >= badSkew:
		return missing(checkDrift, detail+"; certificates are refused", syncClock)
	case size >= weakSkew:
		return weak(checkDrift, detail, syncClock)
	}
	return ok(checkDrift, detail)
}
