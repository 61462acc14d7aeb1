package clock_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestBootNeverRunsBackwardAndKeepsPaceWithTheRuntime(t *testing.T) {
	begin, mono := clock.Boot(), time.Now()
	if begin <= 0 {
		t.Fatalf("Boot() = %d: an instant of zero means nothing", begin)
	}
	last := begin
	for time.Since(mono) < 20*time.Millisecond {
		now := clock.Boot()
		if now < last {
			t.Fatalf("Boot() went from %d to %d", last, now)
		}
		last = now
	}
	if took := clock.Boot().Sub(begin); took < 15*time.Millisecond { // a busy machine may have lain between last and now
		t.Errorf("Boot() advanced by %v in 20 ms", took)
	}
}

func TestNapEndsAtTheInstantAndNeverLastsLongerThanMaxNap(t *testing.T) {
	now := clock.Boot()
	if got := clock.Nap(now - 1); got != 0 {
		t.Errorf("Nap(past) = %v, want 0", got)
	}
	if got := clock.Nap(now.Add(10 * time.Minute)); got != clock.MaxNap {
		t.Errorf("Nap(in ten minutes) = %v, want %v", got, clock.MaxNap)
	}
	if got := clock.Nap(forge.Never); got != clock.MaxNap {
		t.Errorf("Nap(never) = %v, want %v", got, clock.MaxNap)
	}
	if got := clock.Nap(now.Add(500 * time.Millisecond)); got <= 0 || got > 500*time.Millisecond {
		t.Errorf("Nap(in half a second) = %v", got)
	}
}
