package control

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// A runner that says something else of itself all the time, or a large fleet, does not keep the loop busy without end.
func TestNewsOfRunnersWaitsAsLongAsARoundHasTaken(t *testing.T) {
	w := newWorld(t)
	var now atomic.Int64
	w.Control.now = func() forge.Instant { return forge.Instant(now.Add(int64(Every))) } // each round seems to take long
	w.run()
	for {
		w.Nudge()
		_, nudged, ticked := w.Rounds()
		if nudged > ticked+2 {
			t.Fatalf("%d rounds by nudges beside %d by time", nudged, ticked)
		}
		if ticked == 2 {
			return
		}
		runtime.Gosched()
	}
}
