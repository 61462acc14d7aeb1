package runner

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
)

// Rows 07-G02 and 09-I13: every start of one state folder is the same runner with a session that no start before it had, and the
// connections of one process all have its session.
func TestASessionIsThatOfAProcessAndNotOfAFolderOrAConnection(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	had := map[forge.AgentSessionID]bool{}
	for start := range uint64(3) {
		a := y.start(nil)
		c := y.daemon.Synced()
		first := y.daemon.Peer(c)
		if had[first.Session] || first.Session.IsZero() || first.Runner != y.runner || first.StartCounter != start+1 {
			t.Errorf("start %d registered as %+v; the sessions before were %v", start+1, first, had)
		}
		had[first.Session] = true
		y.daemon.Cut()
		again := y.daemon.Peer(y.daemon.Synced(c))
		if again.Session != first.Session || again.Runner != first.Runner || again.TransportSeq <= first.TransportSeq {
			t.Errorf("the same process registered as %+v and then as %+v", first, again)
		}
		a.Stop()
		a.end(core.ExitStopped)
	}
}
