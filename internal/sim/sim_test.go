package sim_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/sim"
)

func TestManySchedules(t *testing.T) {
	n := 2000
	steps := 0
	for seed := range uint64(n) {
		r := sim.Run(sim.Options{Seed: seed})
		steps += r.Steps
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
	}
	t.Log("steps", steps/n)
}
