package forge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// The numbers are stored. A line may grow at its end; nothing in it may change. A * marks states that are over.
var frozenStates = []string{
	"run 1 Planned, 2 Running, 3 Succeeded*, 4 Failed*, 5 Cancelled*, 6 Error*",
	"job 1 Waiting, 2 Ready, 3 Offered, 4 Active, 5 Succeeded*, 6 Failed*, 7 Cancelled*, 8 Skipped*",
	"attempt 1 Offered, 2 Accepted, 3 Preparing, 4 Running, 5 Uploading, 6 Completing, 7 Succeeded*, 8 Failed*, 9 Cancelled*, 10 Lost*, 11 Refused*",
	"lease 1 Offered, 2 Accepted, 3 Released*, 4 Refused*, 5 Revoked*, 6 Expired*, 7 Lost*",
	"agent 1 Starting, 2 Connecting, 3 Registering, 4 Online, 5 Draining, 6 Reconnecting, 7 ShuttingDown, 8 Offline",
	"connection 1 Connecting, 2 Authenticating, 3 Negotiating, 4 Registering, 5 Resyncing, 6 Active, 7 Draining, 8 Closing, 9 Closed",
}

// states writes the states of a kind until one has no name.
func states[S interface {
	~uint8
	fmt.Stringer
}](kind string, ended func(S) bool,
) string {
	var all []string
	for s := S(1); s.String() != fmt.Sprintf("invalid(%d)", uint8(s)); s++ {
		one := fmt.Sprintf("%d %v", uint8(s), s)
		if ended(s) {
			one += "*"
		}
		all = append(all, one)
	}
	return kind + " " + strings.Join(all, ", ")
}

func TestStatesKeepTheirNumbersAndTheirEnds(t *testing.T) {
	got := []string{
		states("run", forge.RunState.Ended),
		states("job", forge.JobState.Ended),
		states("attempt", forge.AttemptState.Ended),
		states("lease", forge.LeaseState.Ended),
		states("agent", func(forge.AgentState) bool { return false }),
		states("connection", func(forge.ConnectionState) bool { return false }),
	}
	if diff := cmp.Diff(frozenStates, got); diff != "" {
		t.Error(diff)
	}
}

func TestZeroIsNoState(t *testing.T) {
	for _, s := range []fmt.Stringer{
		forge.RunState(0), forge.JobState(0), forge.AttemptState(0), forge.LeaseState(0), forge.AgentState(0), forge.ConnectionState(0),
	} {
		if s.String() != "invalid(0)" {
			t.Errorf("%T 0 is called %v", s, s)
		}
	}
}

func TestAWorkloadIsOverOnceItsOutputsAreUploaded(t *testing.T) {
	for s := forge.AttemptOffered; s <= forge.AttemptRefused; s++ {
		if got, want := s.WorkloadOver(), s >= forge.AttemptUploading; got != want {
			t.Errorf("%v: %v", s, got)
		}
		if s.Ended() && !s.WorkloadOver() {
			t.Errorf("%v has ended and its workload has not", s)
		}
	}
}
