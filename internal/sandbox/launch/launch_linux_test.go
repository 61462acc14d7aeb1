package launch_test

import (
	"testing"
)

func helper(string) int { return 0 }

const helperArg = "helper-of-tests="

func TestAGuestRunsInsideTheWalls(t *testing.T) {
	y := open(t, nil)
	r := y.make("id; pwd; ls -la / /work /tmp /proc; cat /proc/self/status; hostname; exit 7", nil)
	end := r.wait(t)
	t.Log(r.output())
	t.Logf("%+v %+v", end, y.Report())
	if end.Exit != 7 {
		t.Errorf("%+v", end)
	}
}
