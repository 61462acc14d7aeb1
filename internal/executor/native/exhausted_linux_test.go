package native_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// leaveBombs leaves four that take every process there is from then on, and succeeds.
const leaveBombs = `for i in 1 2 3 4; do
	setsid perl -e '$SIG{TERM} = "IGNORE"; while (1) { my $p = fork; if (defined $p && !$p) { sleep 1000 } }' &
done 2>/dev/null
sleep 0.5`

// A pid 1 that finds no thread left would end, and its attempt for a reason that is not the job's and so is tried again.
func TestStepsThatLeaveNoProcessToTheirKeeperAreNamedForIt(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip(err)
	}
	e := openExecutor(t, native.Config{})
	if r := e.Report(); !r.Has(sandbox.LevelCgroupPids) {
		t.Skip("this machine does not bound processes")
	}
	spec := forge.DefaultJobSpec()
	spec.Job, spec.Processes = "bombs", 64
	for range 8 {
		spec.Steps = append(spec.Steps, forge.Step{Script: leaveBombs, Shell: []string{"/bin/sh", "-c"}, Dir: ".", When: forge.WhenAlways})
	}
	w, err := e.Prepare(t.Context(), executor.Order{
		Context: forge.AttemptContext{
			Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
			Spec: forge.SpecID([]byte("bombs")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
		},
		Spec: spec, Folder: t.TempDir(), Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(10 * time.Minute), Output: &printer{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	<-w.Done()
	if r := w.Outcome().Result; r.Class != forge.PidsExhausted || r.Limit != 64 {
		t.Errorf("%+v", r)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
