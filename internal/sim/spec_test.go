package sim

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

func TestTheSimulatedMachineCanRunEverySimulatedJob(t *testing.T) {
	id := forge.JobID{ULID: forge.ULID{15: 1}}
	spec, err := jobspec.Open(forge.SpecID(specOf(id)), specOf(id))
	if err != nil {
		t.Fatal(err)
	}
	a := admission
	if reason, err := a.Check(&spec); reason != 0 || err != nil {
		t.Fatalf("rejected: %v, %v", reason, err)
	}
}
